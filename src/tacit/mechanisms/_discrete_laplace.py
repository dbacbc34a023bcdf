"""The discrete Laplace (geometric) mechanism: integer noise for whole numbers, without a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.exact import Number, count, rational
from tacit.mechanisms._integer_noise import IntegerNoise
from tacit.mechanisms._laplace import laplace_cost
from tacit.mechanisms._mechanism import exactly_one, figure, read_adjacency, show
from tacit.mechanisms._noise_laws import LaplaceLaw

if TYPE_CHECKING:
    from tacit.accounting import Adjacency, Cost


@dataclass(frozen=True, init=False, repr=False, slots=True)
class DiscreteLaplace(IntegerNoise):
    """Add discrete Laplace noise (two-sided geometric) to a count, or to an array of counts.

    Guarantee: epsilon = sensitivity / scale, pure, where neighbours move the counts by at most
    `sensitivity` together, in L1. A count with sensitivity 1 costs exactly randomized response.

    Argument: P(k) is proportional to exp(-|k| / scale), and |k - u| differs from |k| by at most |u| (Ghosh,
    Roughgarden, Sundararajan 2009). For an array the scalar law dominates (docs/proofs/mechanisms.md, lemma
    1).

    Parameters
    ----------
    epsilon, scale
        One of the two; scale = sensitivity / epsilon.
    sensitivity
        A whole number: the most that one unit can move the counts, in L1.
    adjacency
        The neighbours that the sensitivity is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.DiscreteLaplace(epsilon=0.5, sensitivity=1)
    >>> m.error(0.95), round(m.variance, 2)
    (6.0, 7.84)
    >>> isinstance(m.release(120), int)
    True
    """

    sensitivity: Fraction
    epsilon: Fraction
    adjacency: Adjacency
    scale: Fraction = field()  # the noise scale, sensitivity / epsilon
    _law: LaplaceLaw

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: int,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        given = exactly_one(epsilon=epsilon, scale=scale)
        moved = Fraction(count("sensitivity", sensitivity, zero=False))
        read = rational(given, epsilon if given == "epsilon" else scale)  # type: ignore[arg-type]
        spent = read if given == "epsilon" else moved / read
        self._check_size(moved / spent)
        object.__setattr__(self, "sensitivity", moved)
        object.__setattr__(self, "epsilon", spent)
        object.__setattr__(self, "adjacency", read_adjacency(adjacency))
        object.__setattr__(self, "scale", moved / spent)
        object.__setattr__(self, "_law", LaplaceLaw(moved / spent))

    @property
    def cost(self) -> Cost:
        """The cost of the lattice law: never above pure epsilon, and below it for sensitivities above 1."""
        return laplace_cost(self.epsilon, int(self.sensitivity), self.adjacency)

    def lattice(self, size: int = 1) -> tuple[Fraction, LaplaceLaw]:
        """Return the grid, which is 1, and the law; they do not depend on `size`."""
        del size
        return Fraction(1), self._law

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact scale and sensitivity, and the cost."""
        return {
            "mechanism": "discrete-laplace",
            "scale": str(self.scale),
            "sensitivity": int(self.sensitivity),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the law in a few words.

        Examples
        --------
        >>> DiscreteLaplace(epsilon=0.5, sensitivity=1).describe()
        'discrete Laplace, scale 2'
        """
        return f"discrete Laplace, scale {figure(self.scale * unit)}"

    def __repr__(self) -> str:
        return (
            f"DiscreteLaplace(epsilon={show(self.epsilon)}, sensitivity={show(self.sensitivity)}, "
            f"scale={show(self.scale)}; within {show(self.error(0.95))} at 95 %)"
        )
