"""Folds in learning: each unit is in a fold by a keyed hash of its own, whoever else is in the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.exact import count
from tacit.learn._cells import cell_name, cells, column_cells, written_cells
from tacit.learn._fit_names import open_for_fit

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.ledger import Ledger


@dataclass(frozen=True)
class Folds:
    """A splitter for ``cv=`` of scikit-learn that divides units into folds, unit by unit.

    Guarantee: the fold of a unit is a function of its owner's name (``groups``), or else of its own row, and
    of the ledger's key. One unit more or less changes no other unit's fold.

    Parameters
    ----------
    number
        How many folds.
    ledger
        The path of the ledger, as in the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(8.0)[:, None]
    >>> parts = [test for _, test in Folds(2).split(X)]
    >>> sorted(np.concatenate(parts).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7]
    """

    number: int = 5
    ledger: str | os.PathLike[str] | None = None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        del X, y, groups
        return count("number", self.number, zero=False)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield for each fold the rows to train on and the rows to test on."""
        folds = self.folds_of(X, y, groups)
        for one in range(self.get_n_splits()):
            yield np.flatnonzero(folds != one), np.flatnonzero(folds == one)

    def folds_of(self, X: Any, y: Any = None, groups: Any = None) -> NDArray[np.int64]:
        """Return the fold of each row."""
        ledger = open_for_fit(self.ledger)
        try:
            rows = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(cells(X))
            return unit_folds(ledger, self.get_n_splits(), rows, y, groups)
        finally:
            if self.ledger is not None:
                ledger.close()


def unit_folds(ledger: Ledger, number: int, rows: NDArray[Any], y: Any, owners: Any) -> NDArray[np.int64]:
    """Return the fold of each row: by its owner's name, else by its own content, keyed with the ledger's key.

    Examples
    --------
    >>> from tacit.ledger import Ledger
    >>> folds = unit_folds(Ledger.memory(), 5, np.zeros((3, 1)), None, ["ana", "ben", "ana"])
    >>> bool(folds[0] == folds[2])
    True
    """
    if owners is not None:
        names = [cell_name(one) for one in column_cells(owners)]
    else:
        targets = [None] * len(rows) if y is None else column_cells(y).tolist()
        names = [written_cells([row.tolist(), target]) for row, target in zip(rows, targets, strict=True)]
    digests = [ledger.keyed_digest("folds", one) for one in names]
    return np.array([int(one[:15], 16) % number for one in digests], dtype=np.int64)
