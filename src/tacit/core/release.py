"""What leaves.

Values with intervals and the certificate that travels with them. Free to post-process and publish.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.core.extras import needs
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes

    from tacit.core.certificate import Certificate

__all__ = ["Cells", "Release", "Value"]

Value: TypeAlias = float | str | bool | None


@dataclass(frozen=True, slots=True)
class Cells:
    """One column: values, and the interval of each."""

    value: tuple[Value, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """An answer: one line per group, per column a value with ``low`` and ``high``.

    The interval covers the noise with the stated confidence; it says nothing of what clipping and limits
    left out. A value that was picked among candidates may have none (``low`` and ``high`` are None), and the
    printed release says so.

    Parameters
    ----------
    keys
        The groups, by name of the key column.
    columns
        The released columns by name.
    confidence
        What each interval covers the noise with.
    certificate
        The machine-readable promise.
    marks
        What has been done to the values since they were released.
    notes
        What a column stands for, where its name may say more: an extreme is told by a quantile.
    left_out
        Which rows are not counted and which groups are not shown, by the plan.
    counts
        The columns that count; noise may push them below zero.
    """

    keys: Mapping[str, tuple[Value, ...]]
    columns: Mapping[str, Cells]
    confidence: float
    certificate: Certificate
    marks: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).value)

    def __getitem__(self, column: str) -> Cells:
        try:
            return self.columns[column]
        except KeyError:
            raise TacitError(
                "unknown-column",
                f"the release has no column {column!r}",
                fix=f"one of: {', '.join(self.columns)}",
            ) from None

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Iterate over the lines as dictionaries: keys, then value, low and high of each column."""
        for i in range(len(self)):
            line: dict[str, Value] = {name: values[i] for name, values in self.keys.items()}
            for name, cells in self.columns.items():
                line |= {name: cells.value[i], f"{name}_low": cells.low[i], f"{name}_high": cells.high[i]}
            yield line

    @property
    def value(self) -> Value:
        """The one number of a release with one cell."""
        return self._only().value[0]

    @property
    def low(self) -> float | None:
        """The lower end of the interval of a release with one cell."""
        return self._only().low[0]

    @property
    def high(self) -> float | None:
        """The upper end of the interval of a release with one cell."""
        return self._only().high[0]

    def _only(self) -> Cells:
        if len(self) != 1 or len(self.columns) != 1:
            raise TacitError(
                "bad-parameter",
                f"the release has {len(self)} x {len(self.columns)} cells",
                fix='release["n"]',
            )
        return next(iter(self.columns.values()))

    def rounded(self, *columns: str) -> Release:
        """Return the release with these columns as non-negative whole numbers, and say so in its marks.

        Rounding up from below zero biases totals; intervals stay as they are.
        """
        changed = {
            name: Cells(tuple(_whole(v) for v in cells.value), cells.low, cells.high)
            if name in (columns or tuple(self.columns))
            else cells
            for name, cells in self.columns.items()
        }
        mark = f"non-negative whole numbers: {', '.join(columns or tuple(self.columns))}"
        return replace(self, columns=changed, marks=(*self.marks, mark))

    def to_dict(self) -> dict[str, list[Value]]:
        """Return columns by name: keys, then ``name``, ``name_low``, ``name_high``."""
        lines = list(self)
        return {name: [line[name] for line in lines] for name in (lines[0] if lines else self._names())}

    def _names(self) -> list[str]:
        return [*self.keys, *(f"{c}{suffix}" for c in self.columns for suffix in ("", "_low", "_high"))]

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame (extra ``pandas``)."""
        needs("to_pandas", "pandas", "tacit[pandas]")
        import pandas as pd

        return pd.DataFrame(self.to_dict())

    def to_polars(self) -> pl.DataFrame:
        """Return a Polars data frame (``pip install polars``)."""
        needs("to_polars", "polars", "polars")
        import polars as pl

        return pl.DataFrame(self.to_dict(), strict=False)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table (extra ``pandas``)."""
        needs("to_arrow", "pyarrow", "tacit[pandas]")
        import pyarrow as pa

        return pa.table(self.to_dict())

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the release as CSV text, and write it to a file if a path is given.

        Numbers have the digits that the noise leaves meaningful (a thousandth of the narrowest interval of
        their column), ``low`` rounded down and ``high`` up; `to_parquet` and `to_dict` keep them exactly.
        """
        from tacit.core.digits import meaningful

        text = io.StringIO()
        columns = {name: [_plain_key(value) for value in values] for name, values in self.keys.items()}
        for name, cells in self.columns.items():
            columns |= dict(zip((name, f"{name}_low", f"{name}_high"), meaningful(cells), strict=True))
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def to_parquet(self, path: str | Path) -> None:
        """Write the release to a Parquet file (extra ``pandas``)."""
        needs("to_parquet", "pyarrow", "tacit[pandas]")
        from pyarrow import parquet

        parquet.write_table(self.to_arrow(), path)

    def plot(self, column: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw a column with error bars (extra ``plot``); the title says what it shows at which cost."""
        needs("plot", "matplotlib", "tacit[plot]")
        from tacit.core.picture import plot_release

        return plot_release(self, column, ax)

    def __repr__(self) -> str:
        from tacit.core.display import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        from tacit.core.display import release_html

        return release_html(self)

    @classmethod
    def from_payload(
        cls,
        payload: Mapping[str, Any],
        confidence: float,
        certificate: Certificate,
        notes: Mapping[str, str] | None = None,
    ) -> Release:
        """Build a release from the stored JSON."""
        return cls(
            {name: tuple(values) for name, values in payload["keys"].items()},
            {
                name: Cells(
                    tuple(c[0] for c in cells), tuple(c[1] for c in cells), tuple(c[2] for c in cells)
                )
                for name, cells in payload["columns"].items()
            },
            confidence,
            certificate,
            notes=dict(notes or {}),
        )


def _whole(value: Value) -> Value:
    return max(0, round(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _plain_key(value: Value) -> Value:
    """Write a year as 2024, not 2024.0."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
