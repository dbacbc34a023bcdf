"""The fields of laws in accounting: read as exact numbers, or refused with what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tacit.accounting._numbers import exact_number
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.parameters import Choice, Integer, Listed, RealNumber

if TYPE_CHECKING:
    from collections.abc import Collection
    from fractions import Fraction

#: The laws of the number of runs of which the best is shown.
RUN_LAWS: Final = ("logarithmic", "geometric", "poisson")
_GAMMA: Final = RealNumber(above=0, below=1, instead=0.027)


def read_positive(law: object, *names: str) -> None:
    """Read the named fields as exact positive rationals."""
    for name in names:
        object.__setattr__(law, name, exact_number(name, getattr(law, name)))


def checked_runs(runs: str, parameter: Fraction) -> None:
    """Refuse a law of the number of runs that is unknown, or a parameter outside its range."""
    Choice(RUN_LAWS).read("law", runs)
    if runs != "poisson":
        _GAMMA.read("gamma", parameter)


def several_categories(categories: int) -> int:
    """Read a number of categories, at least 2."""
    return Integer(2, instead=3).read("categories", categories)


def check_not_empty(name: str, costs: Collection[object], example: str) -> None:
    """Refuse a cost that would be made of no other cost."""
    Listed("costs", example).read(name, costs)


def check_whole_move(sensitivity: Fraction) -> None:
    """Refuse a move that is not a whole number of grid steps."""
    if sensitivity.denominator != 1:
        raise bad_parameter(
            "sensitivity",
            "a whole number of grid steps",
            float(sensitivity),
            why="whole-number noise protects moves by whole steps; round real numbers to the grid first",
            fix=Set(sensitivity=-(-sensitivity.numerator // sensitivity.denominator)),
        )
