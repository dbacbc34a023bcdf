"""The goal of a table plan: the total cost that a user gives, or the error to stay within."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.exact import Number, rational, read_fraction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import JSON

__all__ = ["Goal"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a user gives to ``plan``: a total cost, or the error to stay within."""

    epsilon: Number | None = None
    delta: Number = 0
    rho: Number | None = None
    within: Number | None = None
    confidence: Number = Fraction(95, 100)
    size: int | None = None
    weights: Mapping[str, Number] | None = None

    def to_json(self) -> JSON:
        """Return the goal as JSON, numbers exactly."""
        written: dict[str, JSON] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or one.name == "size":
                written[one.name] = value
            elif one.name == "weights":
                written[one.name] = {name: str(_exact(weight)) for name, weight in value.items()}
            else:
                written[one.name] = str(_exact(value))
        return written

    @classmethod
    def from_json(cls, document: Any) -> Goal:
        """Read a goal back."""
        read: dict[str, Any] = {
            name: value if value is None or name == "size" else read_fraction(value)
            for name, value in document.items()
            if name != "weights"
        }
        weights = document["weights"]
        named = None if weights is None else {name: read_fraction(weight) for name, weight in weights.items()}
        return cls(**read, weights=named)


def _exact(value: Number) -> Fraction:
    return rational("a number of the plan", value, zero=True, negative=True)
