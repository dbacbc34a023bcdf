"""The attack lab's k-anonymity, by the Mondrian method (LeFevre, DeWitt, Ramakrishnan 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Code, Set

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, eq=False)
class Anonymised:
    """A k-anonymous grouping: everyone shares a class with at least k - 1 others.

    Attributes
    ----------
    k
        The smallest allowed size of a class.
    names
        The quasi-identifiers, published as ranges.
    label
        The class of each row.
    low, high
        The published range of each quasi-identifier, for each class.
    """

    k: int
    names: tuple[str, ...]
    label: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The number of people in each class."""
        return np.bincount(self.label, minlength=len(self.low))

    def shown(self, cls: int) -> str:
        """Describe a class as it is published, for example ``age 34-41, postcode 1003``."""
        bounds = zip(self.names, self.low[cls], self.high[cls], strict=True)
        return ", ".join(
            f"{name} {low}" if low == high else f"{name} {low}-{high}" for name, low, high in bounds
        )


def k_anonymise(known: Mapping[str, npt.NDArray[np.int64]], k: SupportsIndex) -> Anonymised:
    """Group people into classes of at least k who look the same in the published table.

    The method starts with one class that holds everyone. It cuts a class at the median of the column with the
    widest range (relative to the whole range of the column), as long as both halves keep k people. A class
    that no column can cut is published.

    The result is k-anonymous. k-anonymity is **not a privacy guarantee**; the lab shows why.

    Parameters
    ----------
    known
        The columns of the quasi-identifiers, as whole numbers.
    k
        The smallest allowed size of a class.

    Examples
    --------
    >>> import numpy as np
    >>> groups = k_anonymise({"age": np.array([20, 21, 22, 60, 61, 62])}, k=3)
    >>> groups.label.tolist(), groups.shown(0)
    ([0, 0, 0, 1, 1, 1], 'age 20-22')
    """
    least = count("k", k, zero=False)
    if not known:
        raise bad_parameter(
            "known",
            "at least one column",
            known,
            fix=Code('k_anonymise(people.known("age", "postcode"), k=5)'),
        )
    table = np.column_stack([np.asarray(column, dtype=np.int64) for column in known.values()])
    if len(table) < least:
        raise bad_parameter(
            "k", f"at most the number of people, {len(table)}", least, fix=Set(k=max(1, len(table)))
        )
    spread = np.maximum(np.ptp(table, axis=0), 1)
    label = np.empty(len(table), dtype=np.int64)
    finished: list[npt.NDArray[np.int64]] = []
    waiting = [np.arange(len(table))]
    while waiting:
        rows = waiting.pop()
        halves = _cut(table, rows, spread, least)
        if halves is None:
            label[rows] = len(finished)
            finished.append(rows)
        else:
            waiting += [halves[1], halves[0]]
    return Anonymised(
        k=least,
        names=tuple(known),
        label=label,
        low=np.array([table[rows].min(axis=0) for rows in finished]),
        high=np.array([table[rows].max(axis=0) for rows in finished]),
    )


def _cut(
    table: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], spread: npt.NDArray[np.int64], least: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Cut the rows at the median of the widest column that allows it; None if no column does."""
    if len(rows) < 2 * least:
        return None
    part = table[rows]
    width = np.ptp(part, axis=0) / spread
    for column in np.argsort(-width, kind="stable"):
        if width[column] == 0:
            return None
        values = part[:, column]
        middle = np.sort(values)[(len(values) - 1) // 2]
        for left in (values <= middle, values < middle):
            if least <= left.sum() <= len(rows) - least:
                return rows[left], rows[~left]
    return None
