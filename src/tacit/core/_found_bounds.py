"""The bounds that a plan found privately before it measured values cut to them, for each line of its answer.

They are read off noisy counts that the plan paid for. So they are public facts once the answer is released.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core._protocols import JSON


#: What a range with a rare cut is, measured and not more: no private interval can promise it for all data.
RARE_CUT: Final = (
    "values beyond the ends are then rare: in our measurements intervals covered the mean of all values in "
    "92 to 95 % of draws, worst data set about 60 %; a frequency, not a guarantee; who needs a guarantee "
    "declares a hard maximum"
)


@dataclass(frozen=True, slots=True)
class FoundBounds:
    """The bounds of one expression, for each line of an answer.

    Parameters
    ----------
    of
        What was cut, in words, such as the name of a column.
    columns
        The columns of the answer that are computed from values cut to these bounds.
    low, high
        The bounds of each line; None where no range was found.
    rows
        About how many values each line has, with noise; None where nothing counts them.
    lowered
        Those of the columns that the bounds can only make smaller where the lower one is 0: means and sums of
        values that are declared to be at least 0.
    source
        The declared table and column that hold the values as they are; None for what was computed.
    cut
        ``"rare"`` where the bounds reach further out than usual, so that few values lie beyond them.
    """

    of: str
    columns: tuple[str, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    rows: tuple[float | None, ...]
    lowered: tuple[str, ...] = ()
    source: tuple[str, str] | None = None
    cut: str | None = None

    def shown(
        self,
        names: Mapping[str, Sequence[str]],
        lines: Sequence[int],
        computed: Mapping[str, Sequence[str]] | None = None,
    ) -> FoundBounds | None:
        """Return what is left where columns are renamed (old name to new ones) and lines reordered.

        ``computed`` has the columns that are computed from old ones.
        """
        of_columns = {old: (*names.get(old, ()), *(computed or {}).get(old, ())) for old in self.columns}
        columns = tuple(dict.fromkeys(new for others in of_columns.values() for new in others))
        low, high, rows = (tuple(part[i] for i in lines) for part in (self.low, self.high, self.rows))
        lowered = tuple(new for old in self.lowered for new in names.get(old, ()))
        shown = replace(self, columns=columns, low=low, high=high, rows=rows, lowered=lowered)
        return shown if columns else None

    def in_words(self, line: int) -> str:
        """Write the bounds of a line.

        Examples
        --------
        >>> bounds = FoundBounds("spending", ("m",), (0.0, None), (96.0, None), (900.0, 3.2))
        >>> bounds.in_words(0), bounds.in_words(1)
        ('0..96', 'no range found')
        """
        low, high = self.low[line], self.high[line]
        return "no range found" if low is None or high is None else f"{low:.6g}..{high:.6g}"

    def to_json(self) -> dict[str, JSON]:
        """Return the bounds as JSON."""
        return {
            "of": self.of,
            "columns": list(self.columns),
            "low": list(self.low),
            "high": list(self.high),
            "rows": list(self.rows),
            "lowered": list(self.lowered),
            "source": None if self.source is None else list(self.source),
            **({} if self.cut is None else {"cut": self.cut}),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the bounds back; raises ``ValueError`` where they are none."""
        low, high, rows = (
            tuple(None if one is None else float(one) for one in document[name])
            for name in ("low", "high", "rows")
        )
        pairs = list(zip(low, high, strict=True))
        if len(rows) != len(low) or any((a is None) != (b is None) for a, b in pairs):
            raise ValueError("not bounds")
        if any(a is not None and b is not None and not a < b for a, b in pairs):
            raise ValueError("not bounds")
        source, cut = document["source"], document.get("cut")
        if cut not in {None, "rare"}:
            raise ValueError("not bounds")
        return cls(
            str(document["of"]),
            tuple(str(name) for name in document["columns"]),
            low,
            high,
            rows,
            tuple(str(name) for name in document["lowered"]),
            None if source is None else (str(source[0]), str(source[1])),
            cut,
        )
