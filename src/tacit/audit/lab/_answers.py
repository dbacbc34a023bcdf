"""Attacks on exact answers, in the lab: averaging, differencing, membership and reconstruction.

The average of many answers removes fresh noise, but not stored noise. Two counts that look harmless may
differ by one person. Enough sums over subsets reveal the data (Dinur and Nissim 2003). Differential privacy
protects here: whether a person is in the data at all stays open.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.audit.lab._worlds import (
    CONFIDENCE,
    People,
    Success,
    curve_table,
    from_means,
    from_trials,
    hashed_uniform,
    noisy_counts,
    read_epsilons,
    read_trials,
    synthetic_people,
)
from tacit.errors import bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Set
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.exact import Number
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class AveragingAttack(Drawn, Reportable):
    """What an attacker gains by asking again, with fresh noise and with a stored answer.

    Attributes
    ----------
    epsilon
        The cost of one answer.
    repeats
        The numbers of times that the question was asked.
    redrawn
        The attacker's success if every repetition gets fresh noise; the total cost is repeats x epsilon.
    stored
        The attacker's success if every repetition returns the stored answer; the total cost stays epsilon.
    """

    epsilon: float
    repeats: tuple[int, ...]
    redrawn: tuple[Success, ...]
    stored: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"The attacker asks for one count at epsilon {self.epsilon:g} many times. With fresh noise "
                "each time, the average comes closer and closer to the truth, and the true cost is the "
                "number of repetitions times epsilon."
            ),
            (
                "The ledger prevents this attack: the same question on the same data gets the stored "
                "answer, identical and free, so a thousand copies reveal no more than one."
            ),
        )
        rows = tuple(
            (
                f"{again:,}",
                f"{fresh.advantage:.3f} ({fresh.low:.3f} to {fresh.high:.3f})",
                f"{fresh.bound:.3f} (epsilon {fresh.epsilon:g})",
                f"{kept.advantage:.3f} ({kept.low:.3f} to {kept.high:.3f})",
                f"{kept.bound:.3f} (epsilon {kept.epsilon:g})",
            )
            for again, fresh, kept in zip(self.repeats, self.redrawn, self.stored, strict=True)
        )
        header = ("times asked", "advantage, fresh noise", "bound", "advantage, stored answer", "bound")
        note = (
            f"Measured in {self.redrawn[0].trials:,} trials in each world, each with its "
            f"{percent(CONFIDENCE)} interval. A bound is broken only if a whole interval lies above it."
        )
        return Report("Averaging attack", lead, (ReportTable("", header, rows),), (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"advantage {self.redrawn[-1].advantage:.2f} after {self.repeats[-1]:,} fresh answers"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `repeats`."""
        return self.stored

    def figures(self) -> tuple[Figure, ...]:
        """Return the success and the bounds over the number of repetitions, for fresh and stored answers."""
        from tacit.explain import repeated_questions

        return (repeated_questions(self.repeats, self.redrawn, self.stored, self.epsilon),)


def averaging_attack(
    epsilon: Number = 0.1,
    *,
    repeats: Iterable[SupportsIndex] = (1, 3, 10, 30, 100, 300, 1000),
    trials: int = 2000,
) -> AveragingAttack:
    """Ask for the same count many times and take the average.

    The data of one world has one more person than the data of the other. A count has sensitivity 1 and gets
    discrete Laplace noise. The attacker says "one more" if the average is closer to that world.

    Parameters
    ----------
    epsilon
        The cost of one answer.
    repeats
        The numbers of times to ask.
    trials
        The number of trials in each world.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.averaging_attack(0.5, repeats=[1, 200], trials=500)
    >>> attack.redrawn[-1].advantage > 0.9, attack.stored[-1].advantage < 0.5
    (True, True)
    """
    exact, number = rational("epsilon", epsilon), read_trials(trials)
    numbers = tuple(count("repeats", again, zero=False) for again in repeats)
    if not numbers or max(numbers) * number > 100_000_000:
        raise bad_parameter(
            "repeats",
            "at least one number, and the largest times trials at most 10^8",
            numbers,
            fix=Set(repeats=(1, 10, 100)),
        )
    totals = [noisy_counts(np.full((number, max(numbers)), here), exact).cumsum(axis=1) for here in (1, 0)]
    redrawn, stored = [], []
    for again in numbers:
        redrawn.append(from_trials(again * exact, *(2 * total[:, again - 1] > again for total in totals)))
        stored.append(from_trials(exact, *(2 * total[:, 0] > 1 for total in totals)))
    return AveragingAttack(float(exact), numbers, tuple(redrawn), tuple(stored))


@dataclass(frozen=True, slots=True, repr=False)
class DifferencingAttack(Drawn, Reportable):
    """What two exact counts give away, and what two noisy counts give away.

    Attributes
    ----------
    people
        The number of people in the data.
    exposed
        The share of people whose age, sex, postcode and education are unique; each of them can be attacked.
    right
        The share of these people whose condition the difference of two exact counts gives correctly.
    example
        The description of one person, the two exact counts, and the person's secret.
    curve
        The attacker's success against the same two counts from Tacit; epsilon is the total of both.
    """

    people: int
    exposed: float
    right: float
    example: tuple[str, int, int, bool]
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        person, everyone, without, has = self.example
        lead = (
            (
                f"Each of the two answers counts about {self.people:,} people and looks harmless, but their "
                f"difference is one person. {percent(self.exposed)} of the people can be singled out in this "
                f"way, and the exact answers give away the condition of {percent(self.right, 0)} of them."
            ),
            (
                "Tacit adds noise with a typical size of 2 / epsilon to each answer, which hides the "
                "difference of one person."
            ),
        )
        rows = (
            ("people with the condition", str(everyone)),
            (f"... without the person with {person}", str(without)),
            ("difference", "has the condition" if has else "does not have the condition"),
        )
        exact = ReportTable("two exact answers", ("question", "answer"), rows)
        return Report("Differencing attack", lead, (exact, curve_table(self.curve)))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return f"{percent(self.exposed)} of people exposed by two exact counts"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the success against exact answers."""
        from tacit.explain import success_curve

        return (success_curve(self.curve, "Differencing attack", exposed=1.0, exposed_label="exact counts"),)


def differencing_attack(
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> DifferencingAttack:
    """Ask for a count with and without one person, first exactly and then from Tacit.

    Against Tacit, the target has the condition in one world and not in the other. Both counts have
    sensitivity 1 and each costs half of epsilon. The attacker says yes if the first noisy count is larger
    than the second.

    Parameters
    ----------
    people
        The people to attack; `synthetic_people()` if not given.
    epsilons
        The total costs of the two answers together.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.differencing_attack(epsilons=[1], trials=1000)
    >>> attack.right, attack.curve[0].within_bound
    (1.0, True)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    described = np.column_stack(list(crowd.known().values()))
    _, cell, size = np.unique(described, axis=0, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)  # NumPy 2.0.0 returns a column
    everyone = int(crowd.condition.sum())
    without = everyone - np.bincount(cell, crowd.condition).astype(np.int64)[cell]
    single = size[cell] == 1
    target = int(np.argmax(single & (crowd.condition == 1))) if single.any() else 0
    rest = everyone - int(crowd.condition[target])
    curve = []
    for epsilon in exact:
        worlds = []
        for has in (1, 0):
            answers = noisy_counts(np.tile([rest + has, rest], (number, 1)), epsilon / 2)
            worlds.append(answers[:, 0] > answers[:, 1])
        curve.append(from_trials(epsilon, *worlds))
    names = zip(crowd.known(), described[target].tolist(), strict=True)
    return DifferencingAttack(
        people=len(crowd),
        exposed=float(single.mean()),
        right=float((everyone - without == crowd.condition)[single].mean()) if single.any() else 0.0,
        example=(
            ", ".join(f"{name} {value}" for name, value in names),
            everyone,
            int(without[target]),
            bool(crowd.condition[target]),
        ),
        curve=tuple(curve),
    )


@dataclass(frozen=True, slots=True, repr=False)
class MembershipAttack(Drawn, Reportable):
    """Whether an attacker who knows everyone else can find out that the target is in the data.

    Attributes
    ----------
    people
        The number of people in the data, including the target.
    with_target, without_target
        The exact count of the condition in the two worlds; an attacker who sees it is certain.
    curve
        The attacker's success against the noisy count, with its bound; the best attack reaches it here.
    """

    people: int
    with_target: int
    without_target: int
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"The attacker knows the secrets of all {self.people - 1:,} other people and asks whether "
                "the target is in the data. The exact count gives the answer with certainty."
            ),
            (
                "A noisy count does not: whatever the attacker knows, the advantage is at most "
                "tanh(epsilon / 2). For this count the best attack reaches the bound, so no smaller bound "
                "is possible."
            ),
        )
        rows = (
            ("without the target", f"{self.without_target:,}", "certain"),
            ("with the target", f"{self.with_target:,}", "certain"),
        )
        note = (
            "An attacker may still learn that the condition is common among people like the target. This "
            "is known whether or not the target takes part."
        )
        exact = ReportTable("exact count", ("world", "answer", "the attacker is"), rows)
        return Report("Membership attack", lead, (exact, curve_table(self.curve)), (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return "certain from one exact count"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the success against the exact count."""
        from tacit.explain import success_curve

        return (success_curve(self.curve, "Membership attack", exposed=1.0, exposed_label="exact count"),)


def membership_attack(
    target: SupportsIndex | None = None,
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> MembershipAttack:
    """Decide from a count of the condition whether the target is in the data.

    The target is in the data of one world and not in the data of the other. The count has sensitivity 1 and
    gets discrete Laplace noise. The attacker, who knows everyone else, chooses the more likely world.

    Parameters
    ----------
    target
        The row of the target, who must have the condition; by default the first person who has it.
    people
        The people to attack; `synthetic_people()` if not given.
    epsilons
        The costs at which the count is attacked.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.membership_attack(epsilons=[1], trials=20_000)
    >>> attack.with_target - attack.without_target, attack.curve[0].within_bound
    (1, True)
    >>> round(attack.curve[0].bound, 4)
    0.4621
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    row = int(np.argmax(crowd.condition)) if target is None else count("target", target)
    if row >= len(crowd) or not crowd.condition[row]:
        raise bad_parameter("target", "the row of a person with the condition", row, fix=Set(target=None))
    present = int(crowd.condition.sum())
    curve = []
    for epsilon in exact:
        worlds = (noisy_counts(np.full(number, present - gone), epsilon) >= present for gone in (0, 1))
        curve.append(from_trials(epsilon, *worlds))
    return MembershipAttack(len(crowd), present, present - 1, tuple(curve))


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
    subsets = (hashed_uniform(np.arange(m * n), stream=17) < 0.5).reshape(m, n).astype(np.float64)
    solve = np.linalg.pinv(subsets)
    columns = np.asarray(noise.bernoulli(Fraction(1, 2), size=(number, n)), dtype=np.int64)
    sums = np.rint(columns @ subsets.T).astype(np.int64)

    def right(answers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        share: npt.NDArray[np.float64] = ((answers @ solve.T > 0.5) == (columns > 0)).mean(axis=1)
        return share

    recovered = {step: float(right(np.floor(sums / step + 0.5) * step).mean()) for step in steps}
    curve = tuple(
        from_means(epsilon, right(noisy_counts(sums, epsilon / m).astype(np.float64))) for epsilon in exact
    )
    return ReconstructionAttack(people=n, questions=m, recovered=recovered, curve=curve)
