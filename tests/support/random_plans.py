"""Random plans over one crowd of hostile people, drawn as the search for neighbours draws them."""

from __future__ import annotations

import datetime as dt
import random
import re
import sys
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tacit as tc

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "tables"))

import neighbours as nb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from tacit.algebra import TableQuestion

__all__ = ["crowd", "drawn_plans", "pairs_of_kinds", "with_new_pairs"]

_NUMBERS = [None, 0.0, -0.0, 1.0, 2.5, 29.5, 30.0, 31.0, -5.0, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan")]  # fmt: skip  # noqa: E501
_WORDS = ["A", "B", "C", "D", "", None, "É", "a"]
_DAYS = [None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59), dt.datetime(2024, 2, 29)]


def crowd(people: int, *, seed: int = 3, without: int | None = None) -> dict[str, pa.Table]:
    """Draw the visits of so many people, and what is known of them; some rows belong to nobody.

    ``without`` leaves one person's rows out and changes nothing else.
    """
    draw = random.Random(seed)
    heavy = draw.randrange(people)

    def number() -> float | None:
        return (
            draw.choice(_NUMBERS)
            if draw.random() < 0.4
            else round(draw.uniform(-3, 40), draw.choice([0, 1, 3, 6]))
        )

    def day() -> dt.datetime | None:
        if draw.random() < 0.3:
            return draw.choice(_DAYS)
        return dt.datetime(2023, 1, 1) + dt.timedelta(microseconds=draw.randrange(2 * 365 * 86_400 * 10**6))

    visits = [
        (pid, draw.choice(_WORDS), number(), draw.choice([None, *range(-3, 6)]), day())
        for pid in [*range(people), None]
        for _ in range(9 if pid == heavy else draw.choice([0, 1, 2, 3, 5, 9]))
    ]
    draw.shuffle(visits)
    known = [
        (pid, number(), draw.choice(["u", "v", None]))
        for pid in range(people)
        for _ in range(draw.choice([0, 1, 1, 1, 2]))
    ]
    return nb._tables(
        [v for v in visits if v[0] is None or v[0] != without], [k for k in known if k[0] != without]
    )


class Dice:
    """Draws from a random generator what Hypothesis draws for a test, with no two draws related."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, drawn: Callable[[random.Random], Any]) -> Any:
        return drawn(self._random)

    @staticmethod
    def sampled_from(values: Sequence[Any]) -> Callable[[random.Random], Any]:
        return lambda r: r.choice(values)

    @staticmethod
    def booleans() -> Callable[[random.Random], Any]:
        return lambda r: r.random() < 0.5

    @staticmethod
    def none() -> Callable[[random.Random], Any]:
        return lambda _: None

    @staticmethod
    def integers(low: int, high: int) -> Callable[[random.Random], Any]:
        return lambda r: r.randint(low, high)

    @staticmethod
    def one_of(*drawn: Callable[[random.Random], Any]) -> Callable[[random.Random], Any]:
        return lambda r: r.choice(drawn)(r)

    @staticmethod
    def lists(
        drawn: Callable[[random.Random], Any], *, min_size: int = 0, max_size: int, unique: bool = False
    ) -> Callable[[random.Random], Any]:
        def some(r: random.Random) -> list[Any]:
            size = r.randint(min_size, max_size) if r.random() < 0.4 else min_size + (max_size < 4)
            made = [drawn(r) for _ in range(size)]
            return list(dict.fromkeys(made)) if unique else made

        return some


def drawn_plans(
    count: int, tables: Mapping[str, Any], *, seed: int = 0, each: int = 10
) -> list[TableQuestion]:
    """Draw different questions about the crowd, about ``each`` of them under the same random limits.

    The same seed draws the same questions.
    """
    dice = Dice(seed)
    found: dict[str, TableQuestion] = {}
    while len(found) < count:
        declared = nb.dataset(tables, nb.draw_limits(dice, dice))
        for _ in range(each):
            try:
                question = nb.draw_question(dice, declared, dice).question
                nb.contribution(question, row_level=False, adjacency="add/remove")  # as a plan does
                found.setdefault(repr(question), question)
            except tc.TacitError as error:
                assert error.code == "missing-limit"  # a join of unlimited tables, a sum of unlimited rows
    return list(found.values())[:count]


def pairs_of_kinds(question: TableQuestion) -> set[tuple[str, str]]:
    """Return the pairs of kinds of nodes, operators and aggregates that stand together in a question."""
    kinds = re.findall(r"[A-Z]\w+(?=\()|(?<=op=')\w+|(?<=function=')\w+", repr(question))
    return set(combinations(sorted({*kinds}), 2))


def with_new_pairs(plans: Sequence[TableQuestion], first: int) -> list[int]:
    """Return the numbers, from ``first`` on, of the plans that hold a pair that no earlier plan holds."""
    seen: set[tuple[str, str]] = set()
    chosen = []
    for number, plan in enumerate(plans):
        pairs = pairs_of_kinds(plan)
        if number >= first and not pairs <= seen:
            chosen.append(number)
        seen |= pairs
    return chosen
