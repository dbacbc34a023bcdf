"""The subsampled mechanism: privacy amplification by Poisson sampling; the sample is really drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.mechanisms._input_rows import collected, taken
from tacit.mechanisms._mechanism import show
from tacit.mechanisms._row_mechanism import RowMechanism
from tacit.parameters import Instance, Share

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.exact import Number


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Subsampled(RowMechanism):
    """Keep each row with probability q, independently and in secret, then run a mechanism on the rows kept.

    Guarantee: the cost of the mechanism, sampled: for a pure epsilon ln(1 + q (exp(epsilon) - 1)).

    Argument: under add/remove a row is in the sample with probability q whatever the others do, so the
    output on the larger data is the mixture (1-q) M(without) + q M(with) (Balle, Barthe, Gaboardi 2018). It
    holds for Poisson samples whose members stay secret, of rows that each belong to one person. It does not
    hold for shuffled batches or batches of a fixed size.

    Parameters
    ----------
    mechanism
        One that takes rows, under add/remove: a count, sum, mean, histogram, quantile.
    q
        The probability that a row is kept, in (0, 1].

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Subsampled(tc.mechanisms.Count(epsilon=1), q=0.05)
    >>> round(m.cost.epsilon(delta=0), 4)
    0.0824
    >>> 0 <= m.release(range(100_000)) / 0.05 <= 200_000
    True
    """

    mechanism: RowMechanism
    q: Fraction

    def __init__(self, mechanism: RowMechanism, *, q: Number) -> None:
        Instance(
            RowMechanism,  # type: ignore[type-abstract]
            "Subsampled(Count(epsilon=1), q=0.05)",
            "one that takes rows, such as Count, Sum, Mean or Histogram",
            "a sample must be drawn before rows are added up",
        ).read("mechanism", mechanism)
        if mechanism.adjacency != "add/remove":
            raise bad_parameter(
                "mechanism",
                "one under add/remove",
                mechanism,
                why="amplification is proven for rows that come or go, not for rows that are replaced",
                fix=Set(n=None),
            )
        share = Share(instead=0.05).read("q", q)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "q", share)

    @property
    def adjacency(self) -> Any:
        """Rows come or go."""
        return "add/remove"

    @property
    def cost(self) -> Cost:
        """The mechanism's cost, sampled."""
        return self.mechanism.cost.sampled(self.q)

    def release(self, value: Any) -> Any:
        """Draw the sample and release the mechanism's output on it (divide sums by q yourself)."""
        rows = collected(value)
        kept = np.flatnonzero(np.asarray(noise.bernoulli(self.q, len(rows))))
        return self.mechanism.release(taken(rows, kept))

    @property
    def worst_pair(self) -> tuple[object, object]:
        """The mechanism's own."""
        return self.mechanism.worst_pair

    def __repr__(self) -> str:
        return f"Subsampled(q={show(self.q)}, {self.mechanism!r})"
