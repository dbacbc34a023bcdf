"""One call to start: ``tc.start`` declares a table, shows the price of a first question, and answers it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tacit.core import fixes_of
from tacit.engines import Source, place_source
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Declare, Either, Set
from tacit.ledger import Account, Ledger, open_ledger
from tacit.parameters import ColumnName, Flag, Listed
from tacit.tables._protect import protect
from tacit.tables.questions import _aggregate_functions as functions
from tacit.tables.questions._aggregates import AUTO, is_auto

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tacit.accounting import Budget
    from tacit.core import AnswerTable, LimitGiven, Plan, Release, Unit
    from tacit.exact import Number
    from tacit.fixes import Fix
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._aggregates import Aggregate

ColumnsGiven: TypeAlias = str | Sequence[str] | None
_DELTA = 1e-7  # to find groups privately


def start(
    source: object,
    *,
    unit: str | Unit | None = None,
    epsilon: Number | None = None,
    mean: ColumnsGiven = None,
    sum: ColumnsGiven = None,  # noqa: A002 - the word that people look for
    median: ColumnsGiven = None,
    count: bool = False,
    by: str | None = None,
    delta: Number | None = None,
    size: int | None = None,
    budget: Budget | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    name: str | None = None,
    version: int = 1,
    bounds: Mapping[str, Sequence[Number] | Literal["auto"]] | None = None,
    keys: Mapping[str, Sequence[object]] | None = None,
    limits: Mapping[str, LimitGiven] | None = None,
    types: Mapping[str, object] | None = None,
    minimum_people: int | None = None,
) -> tuple[TableDataset, Release[AnswerTable]]:
    """Ask a table one first question in one call; print its price, charge, and return dataset and answer.

    It asks you nothing and waits for no consent: it prints the price, charges it and answers. To see a price
    first, use `protect` and a plan. It is `protect`, a question, its plan and its release; ranges that nobody
    declared are found privately by the plan. What needs a decision is refused, all that is missing at once.
    Ask the dataset that is returned for everything else.

    Guarantee
    ---------
    As of `Plan.release`: the ledger is charged before the data is touched, and the release is private for one
    unit at the printed price. No value of the data decides what is asked or what it costs. A call that is
    refused makes no ledger and charges nothing.

    Parameters
    ----------
    source
        As in `protect`: a file (for a CSV file that is written in another way, `csv_file`), a frame, or a
        DuckDB connection with the name of a table.
    unit
        The column that says to whom a row belongs; always needed.
    epsilon, delta
        What the answer may cost; an epsilon is always needed. A delta is for groups that are not listed in
        ``keys``: they are found privately, for 1e-7 or a tenth of the budget's delta, whichever is less, if
        none is given. This needs a budget with a delta, and a range in ``bounds`` for each column.
    mean, sum, median
        The columns of which the answer has the mean, the sum or the median.
    count
        Whether the answer has the number of rows.
    by
        The column whose values divide the rows into groups.
    size
        A public guess of the number of rows in each group; used for planning only.
    budget
        What may be learned from this data in total; needed the first time. Later the ledger knows it.
    ledger
        Where the budget is kept: by default ``tacit.ledger`` next to the file. A frame has no such place, so
        it needs one.
    name
        The name of the dataset, to which the budget belongs; by default that of the file, or ``data``.
    version, bounds, keys, limits, types, minimum_people
        Public facts, as in `protect`.

    Examples
    --------
    >>> import tacit as tc
    >>> from tacit.tables import EXAMPLE_HOSPITALS, example_visits
    >>> visits, stay = tc.start(
    ...     example_visits(), unit="patient_id", mean="length_of_stay", by="hospital", epsilon=1,
    ...     keys={"hospital": EXAMPLE_HOSPITALS}, limits={"rows": 5},
    ...     budget=tc.Budget(epsilon=3), ledger=tc.Ledger.memory(),
    ... )  # doctest: +ELLIPSIS
    plan for visits: epsilon 1...
    >>> visits.remaining
    epsilon 2 of 3
    """
    with fixes_of("tc.start"):
        file = _file_of(source)
        words = (("mean", mean), ("sum", sum), ("median", median))
        columns = {word: _listed(word, own) for word, own in words}
        counted = Flag().read("count", count)
        dataset_name = _name_of(file) if name is None else name
        has_place = file is not None or ledger is not None
        account = _account_of(_ledger_of(file, ledger), dataset_name) if has_place else None
        is_listed = by is None or by in (keys or {})
        known = budget if account is None else account.budget
        _check_missing(
            {"unit": unit, "epsilon": epsilon, "mean": counted or any(columns.values()) or None,
             "budget": known, "ledger": has_place or None,
             "keys": True if is_listed else _finds_groups(columns, bounds or {}, known)},
            by,
        )  # fmt: skip
        where = _ledger_of(file, ledger)
        facts: dict[str, Any] = {
            "unit": unit, "name": dataset_name, "version": version, "bounds": bounds, "keys": keys,
            "limits": limits, "types": types, "minimum_people": minimum_people,
            "budget": _budget_of(account) if budget is None else budget,
        }  # fmt: skip

        def planned(dataset: TableDataset) -> Plan[AnswerTable]:
            aggregates = _aggregates(columns, bounds or {}, counted=counted)
            rows = dataset.agg(**aggregates) if by is None else dataset.group_by(by).agg(**aggregates)
            spare = 0.0 if is_listed else float(dataset.budget.delta) / 10
            own = min(_DELTA, spare) if delta is None else delta
            with _groups_to_list(by):
                return rows.plan(epsilon=epsilon, delta=own, size=size)

        with Ledger.memory() as trial:  # a question that is refused makes no ledger
            plan = planned(protect(source, ledger=trial, **facts))
            if account is None:
                trial.charge(dataset_name, plan.cost, plan=plan.hash)
        plan = planned(dataset := protect(source, ledger=where, **facts))
    print(plan)  # the price, before it is paid
    return dataset, plan.release()


def _finds_groups(
    columns: Mapping[str, Sequence[str]], bounds: Mapping[str, object], budget: Budget | None
) -> Literal[True] | None:
    """Return whether groups can be found privately: with a delta, where no range has to be found as well."""
    is_searched = any(is_auto(bounds.get(one, AUTO)) for names in columns.values() for one in names)
    return None if is_searched or budget is None or not budget.delta else True


def _check_missing(given: Mapping[str, object], by: str | None) -> None:
    """Refuse once for all that is missing; of one thing alone, the others have refusals of their own."""
    missing = [word for word, value in given.items() if value is None]
    if len(missing) < 2 and not {"unit", "epsilon"} & set(missing):
        return
    keys = Set(keys={by or "": ["A", "B"]})
    examples = {
        "unit": Set(unit="patient_id"), "epsilon": Set(epsilon=1), "mean": Set(mean="length_of_stay"),
        "budget": "budget=tc.Budget(epsilon=3)", "ledger": Set(ledger="visits.ledger"), "keys": keys,
    }  # fmt: skip
    names = ["mean, sum, median or count" if word == "mean" else word for word in missing]
    raise TacitError(
        "bad-parameter",
        f"tc.start needs: {'; '.join(names)}",
        why="there is no default: it would decide who is protected, what is asked or what it costs",
        fix=Code(f"tc.start(..., {', '.join(str(examples[word]) for word in missing)})"),
    )


@contextmanager
def _groups_to_list(by: str | None) -> Iterator[None]:
    """Say first that the groups need a list, where a plan is refused because they have none."""
    try:
        yield
    except TacitError as refused:
        ways: tuple[Fix, ...] = refused.fix.fixes if isinstance(refused.fix, Either) else (refused.fix,)
        if not any(isinstance(one, Declare) and (one.fact, one.column) == ("keys", by) for one in ways):
            raise
        raise TacitError(
            refused.code,
            f"list the groups of {by}: {Set(keys={by: ['A', 'B']})} with its own values",
            why=f"{refused.what}; {refused.why}",
            fix=refused.fix,
        ) from None


def _listed(word: str, columns: ColumnsGiven) -> tuple[str, ...]:
    given = [columns] if isinstance(columns, str) else columns or ()
    names: tuple[str, ...] = tuple(
        Listed("columns", f'{word}="length_of_stay"', least=0, each=ColumnName()).read(word, given)
    )
    return names


def _aggregates(
    columns: Mapping[str, Sequence[str]], bounds: Mapping[str, object], *, counted: bool
) -> dict[str, Aggregate]:
    """Return the aggregates by their names in the answer; a range that nobody declared is found privately."""
    aggregates: dict[str, Aggregate] = {}
    for word, names in columns.items():
        for column in names:
            auto = {} if column in bounds else {"bounds": AUTO}
            aggregates[f"{word}_{column}"] = getattr(functions, word)(column, **auto)
    if counted:
        aggregates["n"] = functions.count()
    if not aggregates:
        raise bad_parameter(
            "mean, sum, median or count", "given, to say what is asked", None, fix=Set(mean="length_of_stay")
        )
    return aggregates


def _file_of(source: object) -> Path | None:
    """Return the file of a source, if it is one."""
    place = (source if isinstance(source, Source) else place_source(source)).place
    return place if isinstance(place, Path) else None


def _name_of(file: Path | None) -> str:
    return "data" if file is None else re.sub(r"\W+", "_", file.stem).strip("_") or "data"


def _ledger_of(
    file: Path | None, ledger: Ledger | str | os.PathLike[str] | None
) -> Ledger | str | os.PathLike[str]:
    if ledger is not None:
        return ledger
    if file is None:
        raise TacitError(
            "bad-parameter",
            "say where the budget is kept",
            why="this data is not a file, so a ledger cannot be put next to it; without a ledger, the budget "
            "starts again with every session",
            fix=Set(ledger="visits.ledger"),
        )
    return str(file.parent / "tacit.ledger")


def _account_of(where: Ledger | str | os.PathLike[str], name: str) -> Account | None:
    """Return the account of a dataset; None if there is none yet. Makes no ledger."""
    if isinstance(where, Ledger):
        return next((account for account in where.accounts() if account.name == name), None)
    if "://" not in str(where) and not Path(where).exists():
        return None
    with open_ledger(where) as books:
        return next((account for account in books.accounts() if account.name == name), None)


def _budget_of(account: Account | None) -> Budget:
    """Return the budget that the ledger has for a dataset, or refuse: there is no default."""
    if account is not None:
        return account.budget
    raise TacitError(
        "bad-parameter",
        "say how much may be learned from this data in total",
        why="there is no default: who is responsible for the data decides this once, and the ledger keeps it",
        fix=Declare("budget", {"epsilon": 3, "delta": 1e-6}),
    )
