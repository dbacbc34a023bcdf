"""The status of a stream, for people: which days came in, and which were released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.streams._horizon import Horizon


@dataclass(frozen=True, slots=True, repr=False)
class StreamStatus:
    """Where a stream stands; nothing in it depends on what the rows say.

    Parameters
    ----------
    name
        The stream.
    horizon
        Its days.
    appended
        The days whose rows came in.
    plans
        Each plan that was begun, in words, and the number of the last day that it has released.
    left
        What is left of the budget.
    """

    name: str
    horizon: Horizon
    appended: tuple[str, ...]
    plans: tuple[tuple[str, int], ...]
    left: str

    @property
    def missing(self) -> tuple[str, ...]:
        """The days before the last one that came in whose rows have not come in."""
        if not self.appended:
            return ()
        last, there = self.horizon.number(self.appended[-1]), set(self.appended)
        names = [self.horizon.name(number) for number in range(1, last + 1)]
        return tuple(name for name in names if name not in there)

    def __repr__(self) -> str:
        came = f"{len(self.appended):,} of {self.horizon.days:,} days came in"
        came += f", the last one {self.appended[-1]}" if self.appended else ""
        lines = [f"stream {self.name}: {came}"]
        if self.missing:
            more = f" and {len(self.missing) - 3} more" if len(self.missing) > 3 else ""
            lines.append(f"missing: {', '.join(self.missing[:3])}{more}")
        for number, (asked, through) in enumerate(self.plans, 1):
            so_far = f"released up to {self.horizon.name(through)}" if through else "nothing released yet"
            lines.append(f"plan {number}, {asked}: {so_far}")
        if not self.plans:
            lines.append("no plan was begun")
        return "\n".join([*lines, f"left: {self.left}"])
