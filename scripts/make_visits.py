"""Make the synthetic hospital visits that the demo and the tutorial use. Nobody in them exists.

Skew as in real hospitals: most patients come once or twice, a few very often; two large hospitals and
several small ones; stays are short with a long tail; a tenth of the stays is missing. Run: python
scripts/make_visits.py
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np

PATIENTS, SEED = 6_000, 20_240_229
HOSPITALS = ["Ahorn", "Birke", "Buche", "Eiche", "Erle", "Fichte", "Linde", "Ulme"]
CODES = [
    "A09",
    "E11",
    "F32",
    "I10",
    "I21",
    "I50",
    "J18",
    "J44",
    "K35",
    "M54",
    "N39",
    "O80",
    "R07",
    "S72",
    "U07",
    "Z38",
]
HERE = Path(__file__).parent.parent / "src" / "tacit" / "tables" / "data" / "visits.parquet"


def main() -> None:
    """Write the file."""
    draw = np.random.default_rng(SEED)
    visits = np.minimum(1 + draw.pareto(1.6, PATIENTS), 60).astype(int)
    patient = np.repeat(np.arange(1, PATIENTS + 1), visits)
    n = patient.size
    home = draw.choice(len(HOSPITALS), PATIENTS, p=_zipf(len(HOSPITALS), 0.9))
    away = draw.random(n) < 0.15
    hospital = np.where(away, draw.choice(len(HOSPITALS), n), home[patient - 1])
    code = draw.choice(len(CODES), n, p=_zipf(len(CODES), 1.1))
    age = np.clip(draw.normal(58, 21, PATIENTS), 0, 104).astype(int)[patient - 1]
    stay = np.round(np.minimum(draw.lognormal(1.25, 0.85, n) + 0.02 * age, 120), 1)
    day = draw.integers(0, 730, n)
    missing = draw.random(n) < 0.1
    columns = {
        "patient_id": patient.tolist(),
        "hospital": [HOSPITALS[i] for i in hospital],
        "icd": [CODES[i] for i in code],
        "age": age.tolist(),
        "length_of_stay": [None if m else float(s) for s, m in zip(stay, missing, strict=True)],
        "day": day.tolist(),
    }
    listed = ", ".join(f"unnest(${name}) AS {name}" for name in columns if name != "day")
    sql = f"SELECT {listed}, DATE '2023-01-01' + CAST(unnest($day) AS INTEGER) AS admitted"
    HERE.parent.mkdir(parents=True, exist_ok=True)
    duckdb.execute(f"COPY ({sql}) TO '{HERE}' (FORMAT parquet, COMPRESSION zstd)", columns)
    print(f"{n} visits of {PATIENTS} patients, {HERE.stat().st_size / 1024:.0f} KB")


def _zipf(n: int, power: float) -> np.ndarray:
    weights = 1 / np.arange(1, n + 1) ** power
    return weights / weights.sum()


if __name__ == "__main__":
    main()
