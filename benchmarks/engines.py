"""Engines: the same questions on DuckDB, PostgreSQL and Spark: plain, by hand, through Tacit; and Tumult.

Run: python benchmarks/engines.py [rows ...] [--only duckdb postgresql spark tumult] [--growth]
     [--tumult-limit CPU_SECONDS]

Without arguments it measures 10^6 rows; the figures of docs/howto/choose_an_engine.md come from
`engines.py 1e6 1e7 --growth`. Engines take turns within one run. Times are CPU seconds of the whole process
tree (the server's backends and their workers, the Java process and its workers), the best of three rounds
(PostgreSQL and Spark: two for 10^6 rows, one for 10^7); the time to start a server, Spark or Tumult is not
counted. "first" is Tacit's first question about a dataset, from `protect` to the release; "snapshot" the
second, which sorts the rows once; "later" those after it. Tumult is compared in three ways: first with first,
both in a process that had not answered the question yet; warm with later; and warm with Tacit's best first.
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


def compare(rows: int, engines: Mapping[str, object], path: Path, *, limit: float) -> None:
    """Measure all engines in turns and print the table with its ratios.

    ``limit`` is how much CPU a question to Tumult may take; 0: it is not asked.
    """
    best: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    theirs: dict[str, list[float]] = defaultdict(list)
    peer = open_tumult(path, limit) if limit else None
    rounds = {key: rounds_of(key, rows) for key in engines}
    for turn in range(max(rounds.values(), default=len(TUMULT))):
        for key, engine in engines.items():
            for question in LIMITS if turn < rounds[key] else ():
                known, seen = best[engine.name, question], measure(engine, question)
                note(f"round {turn + 1}: {engine.name}, {question}", seen)
                if turn == 0 and "first" in seen:
                    known["cold"] = seen["first"]
                for form, seconds in seen.items():
                    known[form] = min(seconds, known.get(form, math.inf))
        peer = ask_tumult(peer, turn, TUMULT if rows < 10**7 else TUMULT_ONCE, theirs)
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


def rounds_of(key: str, rows: int) -> int:
    """Return how often an engine is measured; DuckDB takes seconds only."""
    return 3 if rows < 10**6 or (key == "duckdb" and rows < 10**8) else 2 if rows < 10**7 else 1


def ask_tumult(
    peer: Tumult | None, turn: int, asked: tuple[tuple[str, ...], ...], theirs: dict[str, list[float]]
) -> Tumult | None:
    """Ask Tumult what belongs to this round; one that fails is ended and asked no more."""
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
    """Print how much more CPU Tumult takes than each engine: like with like, and its best with our first."""
    first, warm = times[0], min(times)
    asked = "asked once, after a count" if len(times) == 1 else f"then {warm:.1f}"
    print(f"Tumult 0.21, {question}: {first:.1f} at first, {asked}", flush=True)
    for name, seen in ours.items():
        if {"cold", "first", "later"} <= seen.keys():
            print(
                f"  {name}: Tumult's first is {first / seen['cold']:.1f} x Tacit's first in a new session "
                f"({seen['cold']:.2f}); Tumult's warm is {warm / seen['later']:.1f} x Tacit's later "
                f"({seen['later']:.2f}), and {warm / seen['first']:.1f} x Tacit's best first "
                f"({seen['first']:.2f})",
                flush=True,
            )


def open_tumult(path: Path, limit: float) -> Tumult | None:
    try:
        return Tumult(path, limit)
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
                rounds = range(rounds_of(key, 10**exponent))
                seen = [measure(engine, question, ("by hand", "first")) for _ in rounds]
                for form in ("by hand", "first"):
                    if taken := [one[form] for one in seen if form in one]:
                        points[form].append((10**exponent, min(taken)))
                        note(f"10^{exponent}: {engine.name}, {question}", {form: min(taken)})
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
    words.add_argument("--tumult-limit", type=float, default=1800, help="CPU seconds of a question to Tumult")
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
                compare(rows, ready, path, limit=wanted.tumult_limit if "tumult" in wanted.only else 0)
            if wanted.growth:
                growth(engines, folder)
        finally:
            for engine in engines.values():
                engine.close()


if __name__ == "__main__":
    main()
