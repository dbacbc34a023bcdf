"""Engines: the same questions on DuckDB, PostgreSQL and Spark: plain, by hand, through Tacit; and Tumult.

Run: python benchmarks/engines.py [rows ...] [--only duckdb postgresql spark tumult] [--growth]

Without arguments it measures 10^6 rows; the figures of docs/howto/choose_an_engine.md come from
`engines.py 1e6 1e7 --growth`. Engines take turns within one run. Times are CPU seconds of the whole process
tree (the server's backends and their workers, the Java process and its workers), the best of three rounds
(two for 10^6 rows, one for 10^7); the time to start a server, Spark or Tumult is not counted. "first" is
Tacit's first question about a dataset, from `protect` to the release; "snapshot" the second, which sorts the
rows once; "later" those after it.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import tacit as tc
from measured_engines import (
    BOUNDS,
    HOSPITALS,
    LIMITS,
    DuckDBEngine,
    PostgresEngine,
    SparkEngine,
    Tumult,
    make,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINES = {"duckdb": DuckDBEngine, "postgresql": PostgresEngine, "spark": SparkEngine}
FORMS = ("plain", "by hand", "first", "snapshot", "later")
#: What Tumult is asked in each round: its answers take minutes. It is warm for its second count.
TUMULT = (("count", "three"), ("count",))
TUMULT_ONCE = (("count", "count", "three"),)
GROWTH = {"duckdb": (6, 7, 8), "postgresql": (6, 7), "spark": (6, 7)}


def ask(data: tc.Dataset, question: str) -> tc.Query:
    stay = "length_of_stay"
    three = {} if question == "count" else {"s": tc.sum(stay), "m": tc.mean(stay)}
    return data.group_by("hospital").agg(n=tc.count(), **three)


class Tacit:
    """A dataset as a newcomer declares it; every question has another price, so that no answer is stored."""

    def __init__(self, engine: object, question: str) -> None:
        self._question, self._asked = question, 0
        self._data = engine.protected(
            unit="patient_id",
            bounds={"length_of_stay": BOUNDS},
            keys={"hospital": HOSPITALS},
            limits=LIMITS[question],
            budget=tc.Budget(epsilon=100),
        )

    def once(self) -> None:
        self._asked += 1
        ask(self._data, self._question).plan(epsilon=1 + self._asked / 1000).release()


def tacit_forms(engine: object, question: str, forms: tuple[str, ...]) -> dict[str, float]:
    """Measure the first question of a fresh dataset, and where wanted the later ones."""
    seen, made = {}, []

    def first() -> None:
        made.append(Tacit(engine, question))
        made[0].once()

    seen["first"] = engine.timed.seconds(first)
    if "later" in forms:
        seen["snapshot"] = engine.timed.seconds(made[0].once)
        seen["later"] = min(engine.timed.seconds(made[0].once) for _ in range(2))
    return seen


def measure(engine: object, question: str, forms: tuple[str, ...] = FORMS) -> dict[str, float]:
    """Measure all forms of one question once, on one engine; one that fails is missing."""
    seen: dict[str, float] = {}
    for form in ("plain", "by hand"):
        if form in forms:
            try:
                seen[form] = engine.timed.seconds(lambda f=form: engine.run(engine.sql(f, question)))
            except Exception as error:
                failed(f"{engine.name}, {question}, {form}", error)
    try:
        return seen | tacit_forms(engine, question, forms)
    except Exception as error:
        failed(f"{engine.name}, {question}: Tacit", error)
        return seen


def failed(what: str, error: Exception) -> None:
    """Print that something did not run. The others go on."""
    print(f"{what} did not run: {(str(error) or type(error).__name__).splitlines()[0][:90]}", flush=True)


def compare(rows: int, engines: Mapping[str, object], path: Path, *, tumult: bool) -> None:
    """Measure all engines in turns and print the table with its ratios."""
    best: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    theirs: dict[str, list[float]] = defaultdict(list)
    peer = open_tumult(path) if tumult else None
    rounds = 3 if rows < 10**6 else 2 if rows < 10**7 else 1
    for turn in range(rounds):
        for engine in engines.values():
            for question in LIMITS:
                known, seen = best[engine.name, question], measure(engine, question)
                note(f"round {turn + 1}: {engine.name}, {question}", seen)
                for form, seconds in seen.items():
                    known[form] = min(seconds, known.get(form, math.inf))
        peer = ask_tumult(peer, turn, rounds, theirs)
    if peer is not None:
        peer.close()
    print(f"\n{rows:,} visits of {rows // 5:,} patients at {len(HOSPITALS)} hospitals (CPU seconds)")
    print(f"{'engine':12}{'question':17}" + "".join(f"{c:>10}" for c in (*FORMS, "/by hand", "later/hand")))
    for (name, question), seen in best.items():
        cells = "".join(f"{seen[form]:10.2f}" if form in seen else f"{'-':>10}" for form in FORMS)
        ratios = "".join(
            f"{seen[form] / seen['by hand']:9.2f}x" if {form, "by hand"} <= seen.keys() else ""
            for form in ("first", "later")
        )
        print(f"{name:12}{question:17}{cells}{ratios}", flush=True)
    for question, times in theirs.items():
        against(question, times, {name: seen for (name, asked), seen in best.items() if asked == question})


def ask_tumult(peer: Tumult | None, turn: int, rounds: int, theirs: dict[str, list[float]]) -> Tumult | None:
    """Ask Tumult what belongs to this round; one that fails is ended and asked no more."""
    asked = TUMULT if rounds > 1 else TUMULT_ONCE
    if peer is None or turn >= len(asked):
        return peer
    for question in asked[turn]:
        try:
            theirs[question].append(peer.ask(question))
        except Exception as error:
            failed(f"{peer.name}, {question}", error)
            peer.close()
            return None
        note(f"round {turn + 1}: {peer.name}, {question}", {"": theirs[question][-1]})
    return peer


def note(what: str, seen: Mapping[str, float]) -> None:
    """Print one measurement to standard error, so that a run that is stopped has said something."""
    print(
        what,
        ", ".join(f"{form} {seconds:.2f}" for form, seconds in seen.items()),
        file=sys.stderr,
        flush=True,
    )


def against(question: str, times: list[float], ours: Mapping[str, Mapping[str, float]]) -> None:
    """Print how much more CPU Tumult takes than each engine's first and later questions."""
    ratios = "; ".join(
        f"{min(times) / seen['first']:.0f} x {name}'s first, {min(times) / seen['later']:.0f} x later"
        for name, seen in ours.items()
        if "later" in seen
    )
    print(f"Tumult 0.21 {question:8} first {times[0]:.1f}, best {min(times):.1f}: {ratios}", flush=True)


def open_tumult(path: Path) -> Tumult | None:
    try:
        return Tumult(path)
    except Exception as error:
        failed("Tumult", error)
        return None


def growth(engines: Mapping[str, object], folder: Path) -> None:
    """Print how the cost of a first question grows with the rows, as microseconds a row and as a power."""
    for key, engine in engines.items():
        for question in ("three", "three, 3 groups"):
            points: dict[str, list[tuple[int, float]]] = defaultdict(list)
            for exponent in GROWTH[key]:
                if not loaded(engine, 10**exponent, folder):
                    continue
                seen = measure(engine, question, ("by hand", "first"))
                note(f"10^{exponent}: {engine.name}, {question}", seen)
                for form, seconds in seen.items():
                    points[form].append((10**exponent, seconds))
            for form, seen in points.items():
                if len(seen) < 2:  # the others failed
                    continue
                (few, least), (many, most) = seen[0], seen[-1]
                told = ", ".join(f"{seconds:.1f}" for _, seconds in seen)
                slope = (most - least) / (many - few) * 1e6
                asked = f"{engine.name:12}{question:17}{form:9}"
                print(f"{asked}{told:>24} s: {slope:.2f} us a row, rows^{power(seen):.2f}", flush=True)


def power(points: list[tuple[int, float]]) -> float:
    """Fit seconds = c rows^p by least squares of the logarithms."""
    xs, ys = [math.log(rows) for rows, _ in points], [math.log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def loaded(engine: object, rows: int, folder: Path) -> bool:
    """Load so many visits into an engine; one that cannot hold them is left out."""
    path = folder / f"{rows}.parquet"
    try:
        if not path.exists():
            make(rows, path)
        engine.load(path)
    except Exception as error:
        failed(f"{engine.name} with {rows:,} rows", error)
        return False
    return True


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("rows", nargs="*", type=lambda text: int(float(text)))
    words.add_argument("--only", nargs="+", choices=[*ENGINES, "tumult"], default=[*ENGINES, "tumult"])
    words.add_argument("--growth", action="store_true")
    wanted = words.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engines = {}
        for key in wanted.only:
            if key in ENGINES:
                try:
                    engines[key] = ENGINES[key](folder)
                except Exception as error:
                    failed(key, error)
        try:
            for rows in wanted.rows or ([] if wanted.growth else [10**6]):
                ready = {key: engine for key, engine in engines.items() if loaded(engine, rows, folder)}
                path = folder / f"{rows}.parquet"
                if not path.exists():
                    make(rows, path)
                compare(rows, ready, path, tumult="tumult" in wanted.only)
            if wanted.growth:
                growth(engines, folder)
        finally:
            for engine in engines.values():
                engine.close()


if __name__ == "__main__":
    main()
