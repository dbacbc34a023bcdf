"""The state of a run: how many days it has released, and at person level who has counted on them.

It is the first part of the run's secret, so it is encrypted, and it is stored in one commit with each
instalment. A folder whose marks are others cannot go on with the run: a person would count on more days than
were paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class RunState:
    """How far the stored instalments of a run go.

    Parameters
    ----------
    through
        The number of the last day that was released; 0 for none.
    marks
        A digest of who counted on these days; empty below the person level, and in runs that an earlier
        version of Tacit drew.

    Examples
    --------
    >>> RunState.read(b""), RunState.read(b"12"), RunState(12, "a1b2").write()
    (RunState(through=0, marks=''), RunState(through=12, marks=''), b'12 a1b2')
    """

    through: int
    marks: str = ""

    @classmethod
    def read(cls, state: bytes) -> Self:
        """Read what `write` wrote; nothing stands for a run without a stored instalment."""
        through, _, marks = state.decode().partition(" ")
        return cls(int(through or 0), marks)

    def write(self) -> bytes:
        """Return the state as bytes, whose length is public."""
        return f"{self.through} {self.marks}".rstrip().encode()
