"""Examples, the dataset of learning: features and a target for each example, who owns it, public facts.

Tables of pandas become arrays whose type follows from the declared types alone. The rows of a unit are the
examples that belong to it: at most so many, chosen in secret.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Dataset, fixes_of, open_account, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Code, Say, Set
from tacit.learn._cells import cell_name, cells, column_cells, stored_types
from tacit.ledger import open_books
from tacit.mechanisms import ranking_secret

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Budget
    from tacit.core import Unit
    from tacit.ledger import Ledger


def plain_array(table: Any) -> Any:
    """Return a table or a column of pandas as an array; anything else comes back as it is.

    Nullable columns become floats or objects whether a value is missing or not: the type is read before a
    charge, so it must not depend on the data.

    Examples
    --------
    >>> plain_array([1, 2])
    [1, 2]
    """
    if not hasattr(table, "iloc"):
        return table
    types = [table.dtype] if hasattr(table, "dtype") else list(table.dtypes)
    if all(isinstance(one, np.dtype) for one in types):
        return table.to_numpy()
    if all(one.kind in "biuf" for one in types):
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    return table.to_numpy(dtype=object)


def unit_rows(examples: int, owners: Any, per_unit: int) -> NDArray[np.int64]:
    """Return an array (units x per_unit) of places of examples, padded with -1 at the end.

    Where a unit has more than ``per_unit`` examples, those with the smallest keyed hash of their place among
    the unit's own examples count: a function of this unit's examples and of a secret, whoever else is there.

    Examples
    --------
    >>> unit_rows(4, None, 1).tolist()
    [[0], [1], [2], [3]]
    >>> unit_rows(3, np.array(["ana", "ben", "ana"]), 2).tolist()
    [[0, 2], [1, -1]]
    """
    if owners is None:
        rows = np.full((examples, per_unit), -1, dtype=np.int64)
        rows[:, 0] = np.arange(examples)
        return rows
    code = _codes(np.asarray(owners))
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(code[order]) != 0]) if examples else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[starts, examples])
    rows = np.full((len(starts), per_unit), -1, dtype=np.int64)
    small = sizes <= per_unit
    for width in np.unique(sizes[small]):
        chosen = np.flatnonzero(sizes == width)
        rows[chosen, :width] = order[starts[chosen, None] + np.arange(width)]
    secret = str(ranking_secret()).encode()
    for unit in np.flatnonzero(~small):
        unit_examples = order[starts[unit] : starts[unit] + sizes[unit]]
        name = cell_name(np.asarray(owners)[unit_examples[0]])
        keys = [
            hashlib.sha256(secret + b"|%d|" % place + name).digest() for place in range(len(unit_examples))
        ]
        counting = sorted(sorted(range(len(unit_examples)), key=keys.__getitem__)[:per_unit])
        rows[unit] = unit_examples[counting]
    return rows


def _codes(owners: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each row, equal where the owner is; no owner, whatever it is, makes it fail."""
    if owners.dtype.kind in "biufUS":
        return np.asarray(np.unique(owners, return_inverse=True)[1], np.int64)
    numbers: dict[bytes, int] = {}
    codes = (numbers.setdefault(cell_name(one), len(numbers)) for one in owners)
    return np.fromiter(codes, np.int64, count=len(owners))


def unit_names(arrays: Sequence[Any], owners: Any, rows: NDArray[np.int64]) -> list[bytes]:
    """Return what each unit is called: its owner, or a digest of its own example, wherever it stands.

    Examples
    --------
    >>> owners = np.array(["ana", "ben", "ana"])
    >>> unit_names([np.zeros(3)], owners, unit_rows(3, owners, 2))
    [b'ana', b'ben']
    """
    if owners is not None:
        return [cell_name(np.asarray(owners)[place]) for place in rows[:, 0]]
    columns = [_as_array(one) for one in arrays]
    return [
        hashlib.sha256(b"|".join(one[place].tobytes() for one in columns)).digest() for place in rows[:, 0]
    ]


def _as_array(array: Any) -> NDArray[Any]:
    """Return a NumPy array; NumPy has no bfloat16, so short floats of PyTorch become longer ones."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        array = array.float() if array.is_floating_point() and array.element_size() < 4 else array
    return np.ascontiguousarray(array)


def check_examples(data: object, arrays: int | None = None, words: str = "with a declared unit") -> None:
    """Refuse data that does not say who is protected, or that has other arrays; its kind alone is shown."""
    if not isinstance(data, Examples) or arrays not in {None, len(data._arrays)}:  # noqa: SLF001 - its own
        raise bad_parameter(
            "data", f"examples {words}", type(data).__name__,
            why="without a unit nobody knows whose influence is to be bounded",
            fix=Code("tc.learn.examples(X, y, unit=tc.Unit.row(), size=1000, budget=budget)"),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Examples(Dataset):
    """Examples to learn from, and who owns them; made by `examples`.

    Parameters
    ----------
    size
        The declared, public number of units, about. Sampling rates and denominators use it; nobody counts.
    per_unit
        How many examples of one unit count, at most. Which of them count is drawn in secret.
    """

    kind: ClassVar[str] = "examples"

    size: int
    per_unit: int
    _arrays: tuple[Any, ...] = field(repr=False)
    _owners: Any = field(repr=False, default=None)
    _types: tuple[tuple[np.dtype[Any], ...], ...] = field(repr=False, default=())

    def units(self) -> NDArray[np.int64]:
        """Return which examples each unit has, one line each, padded with -1: private, for tasks alone.

        Which examples of a unit count, where it has more than `per_unit`, depends on secret coins and on the
        order of that unit's own examples, never on other units.
        """
        return unit_rows(len(self._arrays[0]), self._owners, self.per_unit)

    def refuse_untyped(self) -> None:
        """Refuse lists and objects before the charge: one odd cell of theirs could make training fail."""
        typed = zip(self._arrays, self._types or ((),) * len(self._arrays), strict=True)
        if not all(types or hasattr(one, "detach") for one, types in typed):
            raise bad_parameter(
                "data", "arrays of numbers or tensors", "a list or an array of objects",
                why="these have no type of their own, so one odd value could make the training fail",
                fix=Code('np.asarray(X, dtype="float32")'),
            )  # fmt: skip


def examples(
    *arrays: Any,
    unit: str | Unit,
    size: int,
    budget: Budget,
    owners: Sequence[Any] | NDArray[Any] | None = None,
    per_unit: int = 1,
    name: str = "examples",
    version: int = 1,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
) -> Examples:
    """Declare examples to learn from, and who is protected.

    Guarantee: all releases together are private for one unit within the budget: a unit with all its examples
    is in the data or not (add/remove). Before a charge, only the shapes behind the first axis and the types
    of the arrays are read.

    Parameters
    ----------
    arrays
        NumPy arrays, PyTorch tensors or tables of pandas, with one line for each example: features first,
        then targets.
    unit
        Who is protected: ``tc.Unit.row()`` where each example belongs to another person, else a name for the
        unit such as ``"patient_id"``, with ``owners``.
    size
        About how many units there are. It must come from public knowledge, because sampling rates and
        denominators are computed from it.
    budget
        What may be learned in total.
    owners
        To whom each example belongs, where one unit has several.
    per_unit
        How many examples of one unit count, at most.
    name, version
        Declared identity, to which the budget is bound.
    ledger
        A `Ledger`, or where to open one; None keeps it in memory.
    parent
        A curator's account that pays as well.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> patients = examples(
    ...     np.zeros((100, 3)), np.zeros(100), unit=tc.Unit.row(), size=100,
    ...     budget=tc.Budget(epsilon=1, delta=1e-6),
    ... )
    >>> patients
    Examples('examples', unit=Unit.row())
    kept in memory: forgotten when Python ends
    """
    with fixes_of("tc.learn.examples"):
        identity = read_identity(name=name, version=version, unit=unit)
    if identity.unit.kind not in {"row", "column"}:
        raise bad_parameter("unit", "a column or single rows", identity.unit, fix=Set(unit="patient_id"))
    if (owners is None) == (identity.unit.kind == "column"):
        raise TacitError(
            "bad-parameter",
            "a unit that is a column needs owners, and single rows have none",
            why="Tacit must know which examples belong to the same unit",
            fix=Code('owners=ids, unit="patient_id"') if owners is None else Code('unit="patient_id"'),
        )
    types = tuple(stored_types(one) for one in arrays)
    arrays = tuple(cells(plain_array(one)) for one in arrays)
    owner_names = None if owners is None else column_cells(owners)
    if owner_names is not None and owner_names.ndim != 1:
        raise bad_parameter(
            "owners", "one column, with an owner for each example", f"{owner_names.ndim} axes",
            fix=Code('owners=table["patient_id"]'),
        )  # fmt: skip
    lengths = {len(one) for one in (*arrays, *(() if owner_names is None else (owner_names,)))}
    if not arrays or len(lengths) != 1:
        raise TacitError(
            "bad-parameter",
            "the arrays must have one line for each example",
            why="their lengths differ" if arrays else "no array was given",
            fix=Say("pass features and targets of the same length"),
        )
    books = open_books(ledger, identity.name, (list(arrays), owners))
    dataset = Examples(
        identity,
        books,
        count("size", size, zero=False),
        count("per_unit", per_unit, zero=False),
        arrays,
        owner_names,
        types,
    )
    with fixes_of("tc.learn.examples"):
        open_account(identity, budget, books, parent=parent)
    return dataset
