"""Questions about rows whose answers are about the population, each declared once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.inference._regression_designs import read_regress, regress_design
from tacit.inference._survival import read_survival, survival_design
from tacit.tables import rows_question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.exact import Number
    from tacit.inference._regression_table import RegressionTable
    from tacit.inference._survival import SurvivalCurves
    from tacit.tables import BinsGiven, Rows, RowsQuestion

REGRESS = rows_question(
    name="regress", words="A regression of a column on others", design=regress_design, read=read_regress
)
SURVIVAL = rows_question(name="survival", words="Survival curves", design=survival_design, read=read_survival)


def regress(
    rows: Rows,
    outcome: str,
    *,
    on: Sequence[str],
    kind: str = "linear",
    bounds: Mapping[str, tuple[Number, Number]] | None = None,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
) -> RowsQuestion[RegressionTable]:
    """Ask for a regression.

    Guarantee: nothing is charged; `plan` of the question gives the cost.

    Parameters
    ----------
    rows
        The rows, one for each unit.
    outcome
        The column that is explained: a number with public bounds, or for a logistic regression a column with
        two values.
    on
        The columns that explain it. Of a linear regression numbers with public bounds, or columns with two
        public values; of a logistic one columns with public values, or numbers with public cuts.
    kind
        ``"linear"`` or ``"logistic"``.
    bounds
        Public bounds of numbers by column; by default those declared with the dataset. Values beyond are
        clipped.
    bins
        Of a logistic regression: how many equally wide cells a number has, or its cuts. The regression takes
        the middle of the cell for the number.
    keys
        Public values by column; by default those declared with the dataset.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import tacit as tc
    >>> table = pa.table({"id": [1, 2, 3], "age": [30.0, 50.0, 70.0], "sbp": [110.0, 120.0, 140.0]})
    >>> people = tc.protect(
    ...     table, unit="id", limits={"rows": 1}, bounds={"age": (18, 80), "sbp": (80, 220)},
    ...     budget=tc.Budget(epsilon=1),
    ... )
    >>> people.regress("sbp", on=["age"]).plan(epsilon=1).cost.epsilon(delta=0)
    1.0
    """
    return REGRESS.of(rows, outcome, on=on, kind=kind, bounds=bounds, bins=bins, keys=keys)


def survival(
    rows: Rows,
    *,
    time: str,
    event: str,
    bins: Sequence[Number],
    by: str | None = None,
    keys: Sequence[object] | None = None,
) -> RowsQuestion[SurvivalCurves]:
    """Ask for survival curves on public time bins.

    Guarantee: nothing is charged; `plan` of the question gives the cost.

    Parameters
    ----------
    rows
        The rows, one for each unit.
    time
        The column of the time that a unit was followed.
    event
        A yes/no column (true or false, or 1 and 0): whether the time ended with the event.
    bins
        Rising public cuts of the time, the first of them the start. A bin holds times from its cut to below
        the next. A time at or after the last cut is followed to the end, whatever happened then.
    by
        A column of groups, or None for one curve.
    keys
        The public groups; by default those declared with the dataset.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import tacit as tc
    >>> table = pa.table({"id": [1, 2, 3], "week": [3.0, 20.0, 52.0], "arrest": [True, True, False]})
    >>> people = tc.protect(table, unit="id", limits={"rows": 1}, budget=tc.Budget(epsilon=1))
    >>> plan = people.survival(time="week", event="arrest", bins=[0, 13, 26, 39, 52]).plan(epsilon=1)
    >>> plan.cost.epsilon(delta=0)
    1.0
    """
    return SURVIVAL.of(rows, time=time, event=event, bins=bins, by=by, keys=keys)
