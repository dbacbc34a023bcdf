"""Reconstruction: enough sums over enough subsets are the data itself (Dinur and Nissim 2003)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.audit.lab.game import Success, curve_grid, from_means, noisy_counts, read_epsilons, read_trials
from tacit.audit.lab.people import hashed_uniform
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.sheet import Grid, Readable, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from tacit.exact import Number

__all__ = ["ReconstructionAttack", "reconstruction_attack"]


@dataclass(frozen=True, slots=True, repr=False)
class ReconstructionAttack(Readable):
    """How much of a secret column comes back from sums over subsets.

    Attributes
    ----------
    people, questions
        The size of the column, and how many subset sums were asked.
    recovered
        The share of the column that comes back, by rounding of the answers (1 is exact whole numbers).
    curve
        The attacker's success against the same questions asked of Tacit, epsilon being the total of all.
    """

    people: int
    questions: int
    recovered: dict[int, float]
    curve: tuple[Success, ...]

    def sheet(self) -> Sheet:
        """Return the facts to show."""
        lead = (
            (
                f"A secret yes/no of {self.people:,} people; {self.questions:,} sums over subsets that "
                f"anyone can look up. Least squares brings back {self.recovered[1]:.1%} of the column from "
                "exact sums. Rounding the answers is a weak defence: see the table."
            ),
            (
                "Asked of Tacit, all questions together cost epsilon, so each answer gets a small share of "
                "it and enough noise. Half right is what a coin achieves."
            ),
        )
        rows = tuple(
            ("exact" if step == 1 else f"to the nearest {step}", f"{share:.1%}")
            for step, share in self.recovered.items()
        )
        right = tuple(
            (f"{point.epsilon:g}", f"{point.accuracy:.1%}", f"{(1 + point.bound) / 2:.1%}")
            for point in self.curve
        )
        grids = (
            Grid("published sums", ("rounding", "column recovered"), rows),
            Grid("asked of Tacit", ("epsilon", "column recovered", "at most"), right),
            curve_grid(self.curve, "the same as advantage"),
        )
        return Sheet("Reconstruction attack", lead, grids)

    @property
    def unprotected(self) -> str:
        """What the release without Tacit gives away, in a few words."""
        return f"{self.recovered[1]:.1%} of a column from {self.questions:,} exact sums"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order asked."""
        return self.curve

    def plot(self) -> Figure:
        """Draw the success curve against Tacit next to its bound and the exact sums."""
        from tacit.explain.pictures import success_curve

        return success_curve(
            self.curve, "Reconstruction", exposed=2 * self.recovered[1] - 1, exposed_label="exact sums"
        )


def reconstruction_attack(
    people: SupportsIndex = 500,
    *,
    questions: SupportsIndex | None = None,
    roundings: Iterable[SupportsIndex] = (1, 5, 10),
    epsilons: Iterable[Number] = (0.5, 1, 10, 100, 1000),
    trials: int = 1000,
) -> ReconstructionAttack:
    """Recover a secret column from subset sums by least squares, exact, rounded, and noised by Tacit.

    The column is drawn by fair coins for each trial, so nothing but the answers tells anything about it,
    and under
    a total of epsilon each entry can be guessed with probability at most exp(epsilon) / (1 + exp(epsilon)).
    Each subset sum has sensitivity 1 and costs epsilon / questions.

    Parameters
    ----------
    people
        Length of the column.
    questions
        Number of subset sums; two for each person if not given.
    roundings
        Coarseness of the published sums; 1 is exact and always included.
    epsilons
        The total costs of all answers together.
    trials
        Columns attacked for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.reconstruction_attack(100, epsilons=[1], trials=200)
    >>> attack.recovered[1], attack.curve[0].within_bound
    (1.0, True)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    n = count("people", people, zero=False)
    m = 2 * n if questions is None else count("questions", questions, zero=False)
    if n > 2000 or not n <= m <= 10 * n:
        raise bad_parameter(
            "questions",
            "between 1 and 10 for each of at most 2000 people",
            (n, m),
            fix="people=500, questions=1000",
        )
    steps = dict.fromkeys([1, *(count("roundings", step, zero=False) for step in roundings)])
    asked = (hashed_uniform(np.arange(m * n), stream=17) < 0.5).reshape(m, n).astype(np.float64)
    solve = np.linalg.pinv(asked)
    columns = np.asarray(noise.bernoulli(Fraction(1, 2), size=(number, n)), dtype=np.int64)
    sums = np.rint(columns @ asked.T).astype(np.int64)

    def right(answers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        share: npt.NDArray[np.float64] = ((answers @ solve.T > 0.5) == (columns > 0)).mean(axis=1)
        return share

    recovered = {step: float(right(np.floor(sums / step + 0.5) * step).mean()) for step in steps}
    curve = tuple(
        from_means(epsilon, right(noisy_counts(sums, epsilon / m).astype(np.float64))) for epsilon in exact
    )
    return ReconstructionAttack(people=n, questions=m, recovered=recovered, curve=curve)
