"""The curator's minimum: a line of a grouped answer is shown only if it has enough people.

With public groups the rule reads the *noisy* number of people of each line, so it is post-processing: it
costs nothing beyond that number, and no line's truth is looked at. A line with fewer than k people then
appears with a probability of at most 1 %: it is shown from k + t noisy people on, t the least integer with
P(noise >= t + 1) <= 1 %. Groups that are selected privately follow an exact rule (`KeySelection` with a
minimum).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.algebra import RowCounts, UnitCounts
from tacit.tables.planning._steps import SelectKeys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.algebra import Contribution, Statistic
    from tacit.core import Unit
    from tacit.tables.planning._steps import MeasuredStep
    from tacit.tables.reading._readings import StepNoise

#: How often a line with too few people may appear.
_SMALL_SHOWN = Fraction(1, 100)


def people_count(by_row: bool, single: bool) -> Statistic:  # noqa: FBT001 - the two facts of a question
    """Return what counts people: the rows, where each is a unit or each unit adds one; else the units."""
    return RowCounts() if by_row or single else UnitCounts()


@dataclass(frozen=True, slots=True)
class MinimumPeople:
    """How many people a line needs to be shown, and which step counts them.

    Parameters
    ----------
    people
        The declared minimum, k.
    step
        The position of the step that counts people.
    exact
        Whether this step selects the groups, and so never shows one with fewer people.
    overlap
        In how many groups one person may be. A total of these groups counts this person so often.
    """

    people: int
    step: int
    exact: bool
    overlap: int = 1

    @classmethod
    def among(
        cls, people: int, steps: Sequence[MeasuredStep], counted: Statistic, who: Contribution
    ) -> MinimumPeople:
        """Return the rule for steps, one of which selects the groups or counts the people."""
        if isinstance(steps[0].method, SelectKeys):
            return cls(people, 0, exact=True)
        place = next(i for i, one in enumerate(steps) if one.statistic == counted and one.adds_noise)
        return cls(people, place, exact=False, overlap=who.groups if isinstance(counted, UnitCounts) else 1)

    def least(self, groups: int) -> int:
        """Return the least number of people of a line that sums so many groups, each counting its own.

        Fewer people than the minimum are counted at most once in each group that they may be in.

        Examples
        --------
        >>> rule = MinimumPeople(5, 0, exact=False, overlap=6)
        >>> rule.least(1), rule.least(3), rule.least(10)
        (5, 13, 25)
        """
        return min(self.overlap, groups) * (self.people - 1) + 1

    def margin(self, noise: StepNoise, groups: int = 1) -> int:
        """Return t, of a line that sums the noisy numbers of some groups; 0 where the rule is exact.

        The noise is symmetric: P(noise >= t + 1) is half of P(|noise| > t).

        Examples
        --------
        >>> from tacit.algebra import RowCounts
        >>> from tacit.mechanisms import DiscreteLaplace
        >>> from tacit.tables.reading._readings import StepNoise
        >>> noise = StepNoise(RowCounts(), (DiscreteLaplace(epsilon=0.5, sensitivity=1),))
        >>> MinimumPeople(8, 0, exact=False).margin(noise)
        8
        """
        if self.exact:
            return 0
        within = 1 - 2 * _SMALL_SHOWN
        if len(noise.mechanisms) == 1:
            return noise.mechanisms[0].half_width(within, copies=groups)
        return math.ceil(noise.linear.half_width(float(1 - within), [1.0] * groups).item())

    def shown(self, noise: StepNoise, noisy: Sequence[Any], groups: Sequence[Sequence[int]]) -> list[int]:
        """Return the positions of the lines that are shown.

        Parameters
        ----------
        noise, noisy
            The noise of the step, and its noisy integers: of each group one.
        groups
            Of each line, the groups that it sums; empty where each group is one line.
        """
        people = [line[0] if isinstance(line, list) else line for line in noisy]
        lines = groups or [[place] for place in range(len(people))]
        margins = {size: self.margin(noise, size) for size in {len(line) for line in lines if line}}
        return [
            place
            for place, line in enumerate(lines)
            if line and sum(people[one] for one in line) >= self.least(len(line)) + margins[len(line)]
        ]

    def words(self, noise: StepNoise, unit: Unit) -> str:
        """Say which lines are shown, and what this is not."""
        noun = f"{unit.noun}s"
        if self.exact:
            return f"a group with fewer than {self.people:,} {noun} is never shown (the curator's minimum)"
        from_ = self.people + self.margin(noise)
        return (
            f"lines with fewer than {from_:,} {noun} by the noisy count are not shown: the curator's minimum "
            f"is {self.people:,}, and a line with fewer {noun} than this appears with a probability of at "
            f"most {float(_SMALL_SHOWN) * 100:g} %"
        )
