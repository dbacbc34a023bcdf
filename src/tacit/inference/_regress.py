"""Regressions of a column on others: linear on noisy moments, logistic on a noisy table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import Goal
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.inference._logistic_question import LogisticQuestion, logistic_question
from tacit.inference._regression_question import LinearQuestion, linear_question
from tacit.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Plan
    from tacit.exact import Number
    from tacit.inference._regression_table import RegressionTable
    from tacit.tables import BinsGiven, Rows, TableDataset

__all__ = ["rebuild_regress", "regress"]


def regress(
    rows: Rows,
    outcome: str,
    *,
    on: Sequence[str],
    kind: str = "linear",
    bounds: Mapping[str, tuple[Number, Number]] | None = None,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
) -> LinearQuestion | LogisticQuestion:
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
    names: object = on
    if isinstance(names, str) or not on or len({*on, outcome}) != len(on) + 1:
        raise bad_parameter("on", "different columns, without the outcome", on, fix=Set(on=["age", "sex"]))
    if kind == "logistic":
        if bounds:
            raise bad_parameter(
                "bounds",
                "omitted for a logistic regression, which uses bins",
                bounds,
                fix=Set(bins={on[0]: 5}),
            )
        return logistic_question(rows, outcome, list(on), bins, keys)
    if kind != "linear":
        raise bad_parameter("kind", "linear or logistic", kind, fix=Set(kind="linear"))
    if bins:
        raise bad_parameter(
            "bins",
            "omitted for a linear regression, which uses bounds",
            bins,
            fix=Set(bounds={on[0]: (0, 100)}),
        )
    return linear_question(rows, outcome, list(on), dict(bounds or {}), keys)


def rebuild_regress(dataset: TableDataset, request: Any) -> Plan[RegressionTable]:
    """Rebuild a plan from its document."""
    rows, goal = read_rows(dataset, request["rows"]), Goal.from_json(request["goal"])
    extra = {"bins": request["bins"]} if request["kind"] == "logistic" else {"bounds": request["bounds"]}
    if "bounds" in extra:
        from fractions import Fraction

        extra["bounds"] = {n: tuple(Fraction(end) for end in ends) for n, ends in extra["bounds"].items()}
    question = regress(
        rows,
        request["outcome"],
        on=request["on"],
        kind=request["kind"],
        keys=request["keys"] or None,
        **extra,
    )
    return question.plan(epsilon=goal.epsilon, delta=goal.delta, rho=goal.rho, confidence=goal.confidence)
