"""The attack on tables: random plans on neighbouring datasets, exact integers against what plans declare.

A world is one set of public facts and several datasets that are neighbours of the first. A plan is asked of
all of them. Before the charge everything must be equal; after it nothing may fail; and what a mechanism gets
may change by no more than the mechanism says. Neighbours share the secrets that rank rows and draw samples,
since the guarantee holds for each value of them.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pandas as pd

import tacit as tc
from support import attack_cells as cells
from support.asking import subject_of, task_of
from support.attack_questions import Facts, Questioner
from tacit.core import SharedReadings
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SOURCES = ("csv", "csv", "parquet", "arrow", "pandas", "pandas", "polars", "database", "connection")
_COLUMNS = ("x", "y", "k", "g", "h", "d", "b")
_SORTS = {
    "x": "number",
    "y": "number",
    "k": "number",
    "z": "number",
    "g": "text",
    "h": "text",
    "w": "text",
    "d": "date",
    "b": "truth",
}


@dataclass
class Findings:
    """What an attack found."""

    plans: int = 0
    refused: int = 0
    compared: int = 0
    #: Plans of which some neighbour moved an integer at all, and by more than half of what is declared.
    moved: int = 0
    flagged_if_halved: int = 0
    violations: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    #: For each mechanism: plans with it, and plans of which it moved by more than half.
    reached: dict[str, list[int]] = field(default_factory=dict)

    def report(self) -> str:
        """Say it in a few lines."""
        share = self.flagged_if_halved / max(self.compared, 1)
        by = ", ".join(f"{name} {b}/{a}" for name, (a, b) in sorted(self.reached.items()))
        return (
            f"{self.plans} plans, {self.refused} refused before the charge, {self.compared} compared; "
            f"{len(self.violations)} violations; with bounds halved {self.flagged_if_halved} plans flagged "
            f"({share:.0%}; {self.flagged_if_halved / max(self.moved, 1):.0%} of those that a neighbour "
            f"moves)\n"
            f"sources: {dict(self.kinds)}\nby mechanism: {by}"
        )


@dataclass
class World:
    """Public facts, and rows of a dataset and its neighbours."""

    seed: int
    folder: Path

    def __post_init__(self) -> None:
        rng = self.rng = random.Random(self.seed)
        self.kind = rng.choice(SOURCES)
        self.unit_columns = rng.choice([("who",), ("who",), ("who",), ("who", "day"), ()])
        self.adjacency = rng.choice(["add/remove", "add/remove", "replace"])
        self.second = bool(self.unit_columns) and rng.random() < 0.5
        self.public = rng.random() < 0.4
        self.pure = rng.random() < 0.25
        self.whole = rng.random() < 0.2  # the column y has a value in every row, and is declared so
        names = ("who", *(("day",) if len(self.unit_columns) == 2 else ()))
        odd = (
            rng.choice([(), (), ("",), ('we"ird, na;me',), ("line\nbreak", "")]) if self.kind == "csv" else ()
        )
        self.shapes = {"t": self._shape((*odd, *names, *_COLUMNS))}
        if self.second:
            self.shapes["s"] = self._shape((*names, "z", "w"))
        low, high = rng.choice([(-10, 10), (0, 10), (2, 10), (-10, -1), (-3, 10)])
        self.extremes = {"x": (low, high), "y": (0, 50), "k": (0, 5), "z": (0, 10)}
        self.rows = rng.choice([1, 2, 3, 4, 7])
        limits = {
            "rows": self.rows,
            "groups": rng.choice([None, None, 1, 2, 3]),
            "per_group": rng.choice([None, None, 1, 2]),
        }
        if self.second and rng.random() < 0.4:
            limits["joined"] = rng.choice([1, 2, 5])
        self.limits = limits
        self.styles = {name: self._style(shape) for name, shape in self.shapes.items()}
        self.secrets = rng.getrandbits(60), f"{rng.getrandbits(128):032x}"
        self.shop = cells.Workshop(self.folder, rng)
        self.base = self._base()

    def _shape(self, names: tuple[str, ...]) -> cells.TableShape:
        sorts = tuple("name" if n in {"who", "day"} else _SORTS.get(n, "text") for n in names)
        stored = tuple(self.rng.choice(cells.STORED[s]) for s in sorts)
        return cells.TableShape(names, sorts, stored)

    def _style(self, shape: cells.TableShape) -> dict[str, Any]:
        rng = self.rng
        types = [
            "inferred",
            "inferred",
            "object",
            "object",
            "category",
            "Int64",
            "Float64",
            "string",
            "str",
            "boolean",
        ]
        return {
            **cells.csv_style(rng),
            "pandas": [rng.choice(types) for _ in shape.names],
            "broken": rng.random() < 0.5,
            "inferred": rng.random() < 0.3,
            "group": rng.choice([1, 3, 1000]),
            "dictionary": rng.random() < 0.5,
        }

    # rows -------------------------------------------------------------------------------------------------

    def _hostile(self, table: str, at: int) -> Any:
        """Choose a hostile cell for a column."""
        rng, shape, sort = self.rng, self.shapes[table], self.shapes[table].sorts[at]
        pool = {
            "number": cells.NUMBERS,
            "text": cells.TEXTS,
            "date": cells.DATES,
            "truth": cells.TRUTHS,
            "name": cells.NAMES,
        }[sort]
        how = self.styles[table]["pandas"][at]
        if self.kind in {"pandas", "polars"} and how == "object" and rng.random() < 0.2:
            pool = {"text": cells.ODD_TEXTS, "name": cells.ODD_NAMES, "number": cells.HUGE_NUMBERS}.get(
                sort, pool
            )
        elif self.kind not in {"pandas", "polars"} and sort == "number" and rng.random() < 0.2:
            pool = cells.HUGE_NUMBERS
        del shape
        return rng.choice(pool)

    def _tame(self, name: str) -> Any:
        rng = self.rng
        match name:
            case "g":
                return rng.choice(["a", "b", "c"])
            case "h" | "w":
                return rng.choice(["a", "b", "apple", "u", "1"])
            case "d":
                return dt.datetime(2024, rng.randrange(1, 4), rng.randrange(1, 29))
            case "b":
                return rng.random() < 0.5
            case "day":
                return rng.choice(["1", "2"])
            case "x" | "y" | "z" | "k":
                low, high = self.extremes[name]
                return (
                    rng.randrange(low, high + 1)
                    if rng.random() < 0.5 or name == "k"
                    else rng.uniform(low, high)
                )
        return "more"

    def _row(self, table: str, name: Sequence[Any], hostile: float) -> cells.Row:
        shape = self.shapes[table]
        row = [
            self._hostile(table, at)
            if self.rng.random() < hostile and not (self.whole and column == "y")
            else self._tame(column)
            for at, column in enumerate(shape.names)
        ]
        return self._named(table, row, name)

    def _named(self, table: str, row: cells.Row, name: Sequence[Any]) -> cells.Row:
        names = self.shapes[table].names
        for column, value in zip(("who", "day"), name, strict=False):
            if column in names:
                row[names.index(column)] = value
        return row

    def _name(self) -> tuple[Any, ...]:
        t = self.shapes["t"]
        return tuple(self._hostile("t", t.names.index(c)) for c in ("who", "day") if c in t.names)

    def _base(self) -> dict[str, list[cells.Row]]:
        rng = self.rng
        hostile = rng.choice([0.0, 0.1, 0.4])
        made: dict[str, list[cells.Row]] = {name: [] for name in self.shapes}
        for _ in range(rng.choice([0, 4, 12])):
            name = self._name()
            for table in made:
                made[table] += [self._row(table, name, hostile) for _ in range(rng.choice([1, 1, 2, 5, 9]))]
        for rows in made.values():
            rng.shuffle(rows)
        return made

    def owner(self, table: str, row: cells.Row) -> Any:
        """Return whose row it is, as the documentation says."""
        shape = self.shapes[table]
        found = []
        for column in self.unit_columns:
            at = shape.names.index(column)
            cell = row[at]
            how = self.styles[table]["pandas"][at]
            if self.kind == "csv":
                cell = cells.csv_text(cell)
                cell = None if cell == "" else cell
            elif self.kind == "pandas":
                cell = cells.pandas_cell(cell, how)
            elif self.kind != "polars" or how != "object":
                cell = cells.stored(cell, shape.stored[at])
            found.append(cells.name_of(cell))
        return tuple(found)

    def unit_rows(self, end: int, *, avoid: set[Any]) -> dict[str, list[cells.Row]] | None:
        """Make the rows of one new unit: heavy and extreme, or spread over groups, or hostile."""
        rng = self.rng
        for _ in range(50):
            name = self._name()
            first = self._row("t", name, 0.0)
            if self.unit_columns and (self.owner("t", first) in avoid or None in self.owner("t", first)):
                continue
            style = rng.choice(["extreme"] * 5 + ["spread", "hostile", "mixed"])
            many = (
                1
                if not self.unit_columns
                else rng.choice([self.rows, self.rows, self.rows + 1, 2 * self.rows])
            )
            made = {
                table: [self._styled(table, name, style, end, i) for i in range(many)]
                for table in self.shapes
            }
            if self.second and rng.random() < 0.1:
                made["s"] = []
            return made
        return None

    def _styled(self, table: str, name: Sequence[Any], style: str, end: int, i: int) -> cells.Row:
        rng = self.rng
        if style in {"hostile", "mixed"}:
            return self._row(table, name, 0.7 if style == "hostile" else 0.2)
        row = self._row(table, name, 0.0)
        for at, column in enumerate(self.shapes[table].names):
            if column in self.extremes:
                row[at] = self.extremes[column][end if style == "extreme" else rng.randrange(2)]
            elif column in {"g", "h", "w"}:
                row[at] = ("a" if end else "b") if style == "extreme" else ["a", "b", "c"][i % 3]
            elif column == "b":
                row[at] = style == "extreme" or i % 2 == 0
            elif column == "d":
                row[at] = dt.datetime(2024, 1 if style == "extreme" else 1 + i % 3, 1)
        if "h" in self.shapes[table].names and rng.random() < 0.5:
            row[self.shapes[table].names.index("h")] = f"a{rng.random()}"
        return row

    def mixed(self, *parts: dict[str, list[cells.Row]]) -> dict[str, list[cells.Row]]:
        """Put rows together, those of each part anywhere among the others."""
        rng = self.rng
        made = {}
        for table in self.shapes:
            rows: list[cells.Row] = []
            for part in parts:
                for row in part[table]:
                    rows.insert(rng.randint(0, len(rows)) if rng.random() < 0.7 else len(rows), row)
            made[table] = rows
        return made

    # datasets ---------------------------------------------------------------------------------------------

    def neighbours(
        self, how_many: int
    ) -> list[tuple[dict[str, list[cells.Row]], dict[str, list[cells.Row]]]]:
        """Return pairs of neighbouring rows; the first member is the same in all pairs."""
        owners = {self.owner(table, row) for table, rows in self.base.items() for row in rows}
        probes = []
        for i in range(2 * how_many):
            probe = self.unit_rows((i + i // how_many) % 2, avoid=owners)
            if probe is None:
                break
            owners |= {self.owner(table, row) for table, rows in probe.items() for row in rows}
            probes.append(probe)
        here, others = probes[:how_many], probes[how_many:]
        if len(probes) < 2 * how_many:
            return []
        whole = self.mixed(self.base, *here)
        pairs = []
        for i in range(how_many):
            rest = [one for j, one in enumerate(here) if j != i]
            new = [others[i]] if self.adjacency == "replace" else []
            pairs.append((whole, self.mixed(self.base, *rest, *new)))
        return pairs

    def dataset(self, rows: dict[str, list[cells.Row]]) -> Any:
        """Protect rows, with the world's public facts and secrets."""
        sources = {
            name: cells.make_source(self.shop, self.kind, name, shape, rows[name], self.styles[name])
            for name, shape in self.shapes.items()
        }
        public = {}
        if self.public:
            public = {
                "p": (
                    pd.DataFrame({"g": ["a", "b", "A"], "chapter": ["one", "two", "one"], "size": [1, 2, 3]}),
                    "g",
                )
            }
        unit: Any = tc.Unit.row()
        if self.unit_columns:
            unit = tc.Unit(
                self.unit_columns[0], per=self.unit_columns[1] if len(self.unit_columns) == 2 else ""
            )
        with mock.patch("tacit.tables._protect.ranking_secret", return_value=self.secrets[0]):
            return tc.protect(
                sources,
                name="world",
                unit=unit,
                bounds={c: v for c, v in self.extremes.items() if c != "z" or self.second},
                keys={"g": ["a", "b", "c"]},
                types={"d": "date", "b": "boolean"},
                never_null=["y"] if self.whole else [],
                limits=self.limits,
                public=public,
                adjacency=self.adjacency,
                budget=tc.Budget(epsilon=10**9, delta=0 if self.pure else 0.5),
            )

    @property
    def facts(self) -> Facts:
        """What questions may assume."""
        return Facts(self.unit_columns, self.second, self.public, self.pure)


# comparing ------------------------------------------------------------------------------------------------


def before_the_charge(asked: Any, data: Any) -> tuple[Any, Any]:
    """Return a plan, or None, and everything that anybody can see of it."""
    try:
        plan = asked(data)
        seen = (
            plan.hash, plan.sql, plan.cost.to_json(), plan.mechanisms, plan.facts, plan.asked,
            plan.forecast, tuple(c.name for c in subject_of(plan).columns),
            task_of(plan).omissions, subject_of(plan).captions(), plan.to_json(),
        )  # fmt: skip
    except TacitError as error:
        return None, (error.code, str(error))
    return plan, seen


def exact_of(tasks: Sequence[Any]) -> list[list[Any]]:
    """Return for each task the exact integers of each step; groups of one are asked of all."""
    with SharedReadings.opened() as readings:
        opened = [task.open(readings) for task in tasks]
        found = [[task.steps[0].exact(data, ())] for task, data in zip(tasks, opened, strict=True)]
        shown: list[Any] = []
        if isinstance(found[0][0], dict):
            every = dict.fromkeys(key for first in found for key in first[0])
            shown = [[list(key), 1] for key in every]
        for task, data, steps in zip(tasks, opened, found, strict=True):
            steps += [step.exact(data, [shown]) for step in task.steps[1:]]
    return found


def change_of(mechanism: Any, ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Return how far two neighbours' integers are apart, and how far they may be, as the mechanism counts."""
    law = mechanism.to_json()
    name = law["mechanism"]
    if name == "key-selection":
        apart = [abs(ours.get(key, 0) - theirs.get(key, 0)) for key in {*ours, *theirs}]
        return (math.inf if max(apart, default=0) > 1 else sum(apart)), mechanism.sensitivity
    if name.startswith("quantile"):
        choices = zip(_scores(mechanism, ours), _scores(mechanism, theirs), strict=True)
        return max(sum(map(_most, a, b)) for a, b in choices), mechanism.sensitivity
    a, b = (
        np.array(one, dtype=object).reshape(-1, np.shape(one)[-1] if len(one) else 1)
        for one in (ours, theirs)
    )
    if a.shape != b.shape:
        return math.inf, 0
    gap = a - b
    if name == "discrete-laplace":
        return np.abs(gap).sum(), mechanism.sensitivity
    if name == "discrete-gaussian":
        return (gap * gap).sum(), mechanism.sensitivity_squared
    if name in {"top-k", "permute-and-flip", "exponential"}:
        each = getattr(mechanism, "each", mechanism)
        spread = sum(max(line) - min(line) for line in gap.tolist())
        return spread, each.sensitivity * (1 if each.monotone else 2)
    raise AssertionError(f"the attack does not know {name}")


def _scores(mechanism: Any, counts: Any) -> list[list[list[int]]]:
    """Return the scores of each choice that the mechanism makes, in each group."""
    scores = mechanism.scores(counts) if len(counts) else np.zeros((0, 1))
    return [np.atleast_2d(part).tolist() for part in (scores if isinstance(scores, tuple) else (scores,))]


def _most(a: Sequence[int], b: Sequence[int]) -> int:
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def attack(
    seed: int, plans: int, folder: Path, *, per_world: int = 25, source: str = "", to_the_first: bool = False
) -> Findings:
    """Ask random plans of random neighbours until there are enough, or to the first violation.

    ``source`` names the only kind of source to take.
    """
    found = Findings()
    rng = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while found.compared < plans and not (to_the_first and found.violations):
            world = World(rng.getrandbits(40), folder)
            if source and world.kind != source:
                continue
            attack_world(world, found, min(per_world, plans - found.compared))
    return found


def attack_world(world: World, found: Findings, plans: int) -> None:
    """Ask plans of one world's datasets."""
    near = world.neighbours(world.rng.choice([1, 2, 2, 2]))
    if not near:
        return
    datasets = []
    try:
        try:
            datasets = [world.dataset(near[0][0]), *(world.dataset(rows) for _, rows in near)]
        except TacitError as error:  # declared facts that do not fit: every neighbour must say so
            said = []
            for rows in (near[0][0], *(rows for _, rows in near)):
                try:
                    datasets.append(world.dataset(rows))
                    said.append("")
                except TacitError as again:
                    said.append(str(again).replace(str(world.folder), ""))
            if len(set(said)) > 1:
                found.violations.append(f"world {world.seed} ({world.kind}): declared differently: {error}")
            return
        ask = Questioner(world.rng, world.facts)
        for _ in range(plans):
            asked = ask()
            found.plans += 1
            found.kinds[world.kind] += 1
            for line in attack_plan(world, asked, datasets, found):
                found.violations.append(
                    f"world {world.seed} ({world.kind}, {world.adjacency}): {line}\n"
                    f"  {asked.words} {asked.price}"
                )
    finally:
        for data in datasets:
            data._engine.close()
        world.shop.close()


def attack_plan(world: World, asked: Any, datasets: Sequence[Any], found: Findings) -> list[str]:
    """Ask one plan of all datasets; return what is wrong."""
    other = world.rng.choice(datasets[1:])
    made = [before_the_charge(asked, data) for data in (datasets[0], other)]
    if made[0][1] != made[1][1]:
        return ["differs before the charge"]
    if made[0][0] is None:
        found.refused += 1
        found.refusals[f"{made[0][1]} <- {asked.words}"] += 1
        return []
    tasks = [replace(subject_of(made[0][0]), engine=data._engine).task for data in datasets]
    with mock.patch(
        "tacit.tables.planning._exact_integers.drawn_sample", return_value=((world.secrets[1],),)
    ):
        try:
            exact = exact_of(tasks)
            if world.rng.random() < 0.1:
                world.rng.choice(made)[0].release()
        except Exception as error:
            return [f"fails after the charge: {type(error).__name__}: {str(error)[:300]}"]
    found.compared += 1
    wrong, halves, moves = [], False, False
    by: dict[str, bool] = {}
    for at, mechanism in enumerate(tasks[0].mechanisms):
        name = mechanism.to_json()["mechanism"]
        by.setdefault(name, False)
        for other in exact[1:]:
            apart, allowed = change_of(mechanism, exact[0][at], other[at])
            if apart > allowed:
                wrong.append(f"step {at} ({name}) moves by {float(apart):g}, declared {float(allowed):g}")
            half = allowed / 4 if name == "discrete-gaussian" else allowed / 2
            moves |= bool(apart)
            if apart > half:
                halves = by[name] = True
    for name, reached in by.items():
        tally = found.reached.setdefault(name, [0, 0])
        tally[0] += 1
        tally[1] += reached
    found.moved += moves
    found.flagged_if_halved += halves
    return wrong


if __name__ == "__main__":
    import sys
    import tempfile
    import time
    from pathlib import Path

    start, cpu = time.time(), time.process_time()
    with tempfile.TemporaryDirectory() as made:
        got = attack(
            int(sys.argv[1]), int(sys.argv[2]), Path(made), source=sys.argv[3] if len(sys.argv) > 3 else ""
        )
    for line in got.violations[:40]:
        print(line[:1500])
    print(got.report(), f"\n{time.time() - start:.0f} s, {time.process_time() - cpu:.0f} s of the processor")
    if "-r" in sys.argv:
        for words, n in got.refusals.most_common(60):
            print(n, words[:300])
