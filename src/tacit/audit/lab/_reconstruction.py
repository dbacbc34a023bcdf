"""The attack lab's reconstruction: enough sums over subsets reveal the data (Dinur and Nissim 2003)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.audit.lab._people import hashed_uniform
from tacit.audit.lab._success import (
    Success,
    curve_table,
    from_means,
    noisy_counts,
    read_epsilons,
    read_trials,
)
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.exact import Number
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class ReconstructionAttack(Drawn, Reportable):
    """How much of a secret column an attacker recovers from sums over subsets.

    Attributes
    ----------
    people, questions
        The length of the column, and the number of subset sums.
    recovered
        The share of the column that is recovered, for each rounding of the answers; 1 means exact answers.
    curve
        The attacker's success against the same questions to Tacit; epsilon is the total of all questions.
    """

    people: int
    questions: int
    recovered: dict[int, float]
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"A column holds a secret yes or no for each of {self.people:,} people, and "
                f"{self.questions:,} sums over known subsets are published. From exact sums, least squares "
                f"recovers {percent(self.recovered[1])} of the column. Rounding the answers is a weak "
                "defence, as the table shows."
            ),
            (
                "With Tacit, all questions together cost epsilon, so each answer gets a small share of it "
                "and enough noise. Tossing a coin for each person recovers half of the column."
            ),
        )
        rows = tuple(
            ("exact" if step == 1 else f"to the nearest {step}", percent(share))
            for step, share in self.recovered.items()
        )
        right = tuple(
            (f"{point.epsilon:g}", percent(point.accuracy), percent((1 + point.bound) / 2))
            for point in self.curve
        )
        tables = (
            ReportTable("published sums", ("rounding", "column recovered"), rows),
            ReportTable("against Tacit", ("epsilon", "column recovered", "bound"), right),
            curve_table(self.curve, "the same, as advantage"),
        )
        return Report("Reconstruction attack", lead, tables)

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"{percent(self.recovered[1])} of a column from {self.questions:,} exact sums"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the success against exact sums."""
        from tacit.explain import success_curve

        figure = success_curve(
            self.curve, "Reconstruction attack", exposed=2 * self.recovered[1] - 1, exposed_label="exact sums"
        )
        return (figure,)


def reconstruction_attack(
    people: SupportsIndex = 500,
    *,
    questions: SupportsIndex | None = None,
    roundings: Iterable[SupportsIndex] = (1, 5, 10),
    epsilons: Iterable[Number] = (0.5, 1, 10, 100, 1000),
    trials: int = 1000,
) -> ReconstructionAttack:
    """Recover a secret column by least squares from subset sums: exact, rounded, and with noise from Tacit.

    Fair coins draw a new column for each trial, so only the answers reveal anything about it. Under a total
    cost of epsilon, nobody can guess an entry with probability above exp(epsilon) / (1 + exp(epsilon)). Each
    subset sum has sensitivity 1 and costs epsilon / questions.

    Parameters
    ----------
    people
        The length of the column.
    questions
        The number of subset sums; two for each person if not given.
    roundings
        The steps to which the published sums are rounded; 1 is exact and always included.
    epsilons
        The total costs of all answers together.
    trials
        The number of columns to attack, for each epsilon.

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
            fix=Set(people=500, questions=1000),
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
