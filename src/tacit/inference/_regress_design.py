"""The design of a regression: linear on noisy moments, logistic on a noisy table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import Goal
from tacit.errors import bad_parameter
from tacit.exact import read_fraction
from tacit.fixes import Set
from tacit.inference._linear_design import LinearDesign, linear_design
from tacit.inference._logistic_design import LogisticDesign, logistic_design
from tacit.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.exact import Number
    from tacit.tables import BinsGiven, Rows, TableDataset


def regress_design(
    rows: Rows,
    outcome: str,
    *,
    on: Sequence[str],
    kind: str = "linear",
    bounds: Mapping[str, tuple[Number, Number]] | None = None,
    bins: BinsGiven = None,
    keys: Mapping[str, Sequence[object]] | None = None,
) -> LinearDesign | LogisticDesign:
    """Read a question for a regression; see `regress`."""
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
        return logistic_design(rows, outcome, list(on), bins, keys)
    if kind != "linear":
        raise bad_parameter("kind", "linear or logistic", kind, fix=Set(kind="linear"))
    if bins:
        raise bad_parameter(
            "bins",
            "omitted for a linear regression, which uses bounds",
            bins,
            fix=Set(bounds={on[0]: (0, 100)}),
        )
    return linear_design(rows, outcome, list(on), dict(bounds or {}), keys)


def read_regress(dataset: TableDataset, request: Any) -> tuple[LinearDesign | LogisticDesign, Goal]:
    """Read a regression back from a request."""
    if request["kind"] == "logistic":
        own: dict[str, Any] = {"bins": request["bins"]}
    else:
        written = request["bounds"].items()
        own = {"bounds": {name: (read_fraction(low), read_fraction(high)) for name, (low, high) in written}}
    design = regress_design(
        read_rows(dataset, request["rows"]),
        request["outcome"],
        on=request["on"],
        kind=request["kind"],
        keys=request["keys"] or None,
        **own,
    )
    return design, Goal.from_json(request["goal"])
