"""The stages of a run: which mechanisms its instalments use, and what the whole run costs one unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import groupby
from operator import add
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.accounting import Cost
    from tacit.core._protocols import JSON, Measurement
    from tacit.core._task import RunTask


#: How the costs of a run's instalments make its cost, in words.
COMPOSITIONS = {
    "sum": "every instalment has a cost, and the costs add up",
    "largest": "nobody is in two instalments, so the run costs as much as its most expensive instalment",
    "once": "one mechanism spans all instalments, and its cost is that of all of them together",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """Instalments in a row that use equal mechanisms, from the number ``first`` to ``last``."""

    first: int
    last: int
    mechanisms: tuple[Measurement, ...]

    @property
    def count(self) -> int:
        """How many instalments there are."""
        return self.last - self.first + 1

    @property
    def cost(self) -> Cost:
        """The cost of one of them."""
        return reduce(add, [mechanism.cost for mechanism in self.mechanisms])


def stages_of(task: RunTask[Any, Any]) -> tuple[Stage, ...]:
    """Return the instalments of a task, those with equal mechanisms together."""
    stages: list[Stage] = []
    for number in range(1, task.instalments + 1):
        mechanisms = task.mechanisms_of(number)
        if stages and mechanisms == stages[-1].mechanisms:
            stages[-1] = Stage(stages[-1].first, number, stages[-1].mechanisms)
        else:
            stages.append(Stage(number, number, mechanisms))
    Integer(1).read("instalments", task.instalments)
    return tuple(stages)


def check_composition(task: RunTask[Any, Any]) -> None:
    """Refuse a run that is charged once although its mechanisms have no memory.

    A cost that is charged once is that of mechanisms that remember what they have released. One without a
    memory would draw again for every instalment.
    """
    forgetful = [one for one in task.mechanisms_of(1) if not hasattr(one, "release_next")]
    if task.composition == "once" and forgetful:
        raise TacitError(
            "bad-parameter",
            "a mechanism without a memory cannot be charged once for all instalments of a run",
            why="it draws new noise for each instalment, so its costs add up",
            fix="a mechanism with release_next, or the composition sum",
        )


def run_cost(each: Sequence[tuple[int, Cost]], composition: str) -> Cost:
    """Return what a whole run costs one unit, from the number of instalments of each cost.

    Examples
    --------
    >>> from tacit.accounting import Cost
    >>> days = [(364, Cost.pure(0.01)), (1, Cost.pure(0.5))]
    >>> run_cost(days, "sum").epsilon(delta=0), run_cost(days, "largest").epsilon(delta=0)
    (4.14, 0.5)
    """
    from tacit.accounting import Cost

    if composition == "sum":
        return reduce(add, [times * cost for times, cost in each])
    if composition == "largest":  # twice, so that one unit that may move between instalments is refused
        return Cost.parallel(*(cost for times, cost in each for _ in range(min(times, 2))))
    if composition == "once" and len(each) == 1:
        return each[0][1]
    raise TacitError(
        "bad-parameter",
        f"the costs of a run's instalments cannot be composed as {composition!r}",
        why="a cost that is charged once needs the same mechanisms in every instalment",
        fix=f"one of: {', '.join(COMPOSITIONS)}",
    )


def run_laws(stages: Sequence[Stage], composition: str) -> tuple[Mapping[str, JSON], ...]:
    """Return the mechanisms of a run as its certificates state them."""
    return tuple(
        {"instalments": [stage.first, stage.last], "composition": composition, **mechanism.to_json()}
        for stage in stages
        for mechanism in stage.mechanisms
    )


def _read_share(text: object) -> Fraction:
    """Read the share of a sample as a task writes it, which is a fraction of short numbers."""
    if not isinstance(text, str) or re.fullmatch(r"\d{1,20}/[1-9]\d{0,19}", text) is None:
        raise ValueError("not a share")
    return Fraction(text)


def _whole(law: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mechanism of a batch as it would be alone."""
    return {name: value for name, value in law.items() if name != "part"}


def cost_of_laws(laws: Sequence[Mapping[str, Any]]) -> Cost:
    """Return the cost that the mechanisms in a certificate make, of one draw or of a whole run."""
    from tacit.accounting import Cost

    if any("part" in law for law in laws):  # a batch, whose parts may be sampled, each by itself
        parts = groupby(laws, key=lambda law: law["part"])
        return reduce(add, [cost_of_laws([_whole(law) for law in part]) for _, part in parts])
    if not any("instalments" in law for law in laws):
        total: Cost = reduce(add, [Cost.from_json(law["cost"]) for law in laws])
        [share] = {law.get("sampled") for law in laws}
        return total if share is None else total.sampled(_read_share(share))
    each: list[tuple[int, Cost]] = []
    for (first, last), stage in groupby(laws, key=lambda law: tuple(law["instalments"])):
        each.append((last - first + 1, reduce(add, [Cost.from_json(law["cost"]) for law in stage])))
    [composition] = {law["composition"] for law in laws}
    return run_cost(each, composition)
