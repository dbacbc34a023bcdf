"""Attacks on k-anonymous tables, in the lab: homogeneity and linking.

The tables come from the Mondrian method (LeFevre, DeWitt, Ramakrishnan 2006). A crowd protects nobody if the
whole crowd has the same secret. Two k-anonymous tables together are not k-anonymous, while costs of private
releases add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit.audit.lab._worlds import (
    DIAGNOSES,
    People,
    Success,
    curve_table,
    from_trials,
    noisy_counts,
    read_epsilons,
    read_trials,
    synthetic_people,
)
from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.parameters import Integer
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from fractions import Fraction

    from tacit.exact import Number
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, eq=False)
class Anonymised:
    """A k-anonymous grouping: everyone shares a class with at least k - 1 others.

    Attributes
    ----------
    k
        The smallest allowed size of a class.
    names
        The quasi-identifiers, published as ranges.
    label
        The class of each row.
    low, high
        The published range of each quasi-identifier, for each class.
    """

    k: int
    names: tuple[str, ...]
    label: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The number of people in each class."""
        return np.bincount(self.label, minlength=len(self.low))

    def shown(self, cls: int) -> str:
        """Describe a class as it is published, for example ``age 34-41, postcode 1003``."""
        bounds = zip(self.names, self.low[cls], self.high[cls], strict=True)
        return ", ".join(
            f"{name} {low}" if low == high else f"{name} {low}-{high}" for name, low, high in bounds
        )


def k_anonymise(known: Mapping[str, npt.NDArray[np.int64]], k: SupportsIndex) -> Anonymised:
    """Group people into classes of at least k who look the same in the published table.

    The method starts with one class that holds everyone. It cuts a class at the median of the column with the
    widest range (relative to the whole range of the column), as long as both halves keep k people. A class
    that no column can cut is published.

    The result is k-anonymous. k-anonymity is **not a privacy guarantee**; the lab shows why.

    Parameters
    ----------
    known
        The columns of the quasi-identifiers, as whole numbers.
    k
        The smallest allowed size of a class.

    Examples
    --------
    >>> import numpy as np
    >>> groups = k_anonymise({"age": np.array([20, 21, 22, 60, 61, 62])}, k=3)
    >>> groups.label.tolist(), groups.shown(0)
    ([0, 0, 0, 1, 1, 1], 'age 20-22')
    """
    if not known:
        raise bad_parameter(
            "known",
            "at least one column",
            known,
            fix=Code('k_anonymise(people.known("age", "postcode"), k=5)'),
        )
    table = np.column_stack([np.asarray(column, dtype=np.int64) for column in known.values()])
    smallest = Integer(1, max(1, len(table)), f"there are {len(table):,} people").read("k", k)
    spread = np.maximum(np.ptp(table, axis=0), 1)
    label = np.empty(len(table), dtype=np.int64)
    finished: list[npt.NDArray[np.int64]] = []
    waiting = [np.arange(len(table))]
    while waiting:
        rows = waiting.pop()
        halves = _cut(table, rows, spread, smallest)
        if halves is None:
            label[rows] = len(finished)
            finished.append(rows)
        else:
            waiting += [halves[1], halves[0]]
    return Anonymised(
        k=smallest,
        names=tuple(known),
        label=label,
        low=np.array([table[rows].min(axis=0) for rows in finished]),
        high=np.array([table[rows].max(axis=0) for rows in finished]),
    )


def _cut(
    table: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], spread: npt.NDArray[np.int64], smallest: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Cut the rows at the median of the widest column that allows it; None if no column does."""
    if len(rows) < 2 * smallest:
        return None
    part = table[rows]
    width = np.ptp(part, axis=0) / spread
    for column in np.argsort(-width, kind="stable"):
        if width[column] == 0:
            return None
        values = part[:, column]
        middle = np.sort(values)[(len(values) - 1) // 2]
        for lower in (values <= middle, values < middle):
            if smallest <= lower.sum() <= len(rows) - smallest:
                return rows[lower], rows[~lower]
    return None


@dataclass(frozen=True, slots=True, repr=False)
class HomogeneityAttack(Drawn, Reportable):
    """What an attacker knows with certainty from a k-anonymous table, and the success against Tacit.

    Attributes
    ----------
    k, people, classes
        The smallest allowed size of a class, the number of people, and the number of classes.
    sure
        The share of people whose condition the table gives away with certainty.
    right
        The share of these people for whom the attacker is right.
    example
        One such class as published, its size, and whether its people have the condition.
    curve
        The attacker's success against noisy counts from Tacit, with its bound.
    """

    k: int
    people: int
    classes: int
    sure: float
    right: float
    example: tuple[str, int, bool] | None
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = [
            (
                f"A {self.k}-anonymous table puts {self.people:,} people into {self.classes:,} classes. In "
                "some classes everybody has the same secret, so anyone who is known to be in the class is "
                f"exposed. These are {percent(self.sure)} of all people, and the attacker is right in "
                f"{percent(self.right, 0)} of these cases."
            )
        ]
        if self.example:
            where, size, has = self.example
            lead.append(
                f"Example: {where}: all {size} people {'have' if has else 'do not have'} the condition."
            )
        lead.append(
            "Tacit publishes noisy counts of the condition instead. Even if the attacker knows everybody "
            "else's secret, the odds about the last person move by at most a factor of exp(epsilon)."
        )
        rows = (
            ("the table", "certain", f"{percent(self.sure)} of people", f"{percent(self.right, 0)} right"),
        )
        header = ("attacked", "the attacker is", "about", "and is")
        against = ReportTable("against k-anonymity", header, rows)
        return Report("Homogeneity attack", tuple(lead), (against, curve_table(self.curve)))

    @property
    def unprotected(self) -> str:
        """What the table gives away without Tacit, in a few words."""
        return f"{percent(self.sure)} of people exposed by a {self.k}-anonymous table"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the success against the k-anonymous table."""
        from tacit.explain import success_curve

        figure = success_curve(
            self.curve, "Homogeneity attack", exposed=1.0, exposed_label=f"{self.k}-anonymous class"
        )
        return (figure,)


def homogeneity_attack(
    k: SupportsIndex = 5,
    *,
    people: People | None = None,
    known: Iterable[str] = ("age", "sex", "postcode", "education"),
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> HomogeneityAttack:
    """Attack a k-anonymous table through its uniform classes, then noisy counts of the same people.

    The k-anonymous table shows ranges and each person's condition. Against Tacit, the target has the
    condition in one world and not in the other, and the attacker knows everyone else. The release is the
    number of people with the condition in the target's postcode, with discrete Laplace noise; its sensitivity
    is 1, whether a person is added or a condition changes. The attacker chooses the more likely world, which
    is the best possible attack.

    Parameters
    ----------
    k
        The smallest allowed size of a class in the k-anonymous table.
    people
        The people to attack; `synthetic_people()` if not given.
    known
        The quasi-identifiers, which the table shows as ranges and the attacker knows.
    epsilons
        The costs at which the counts from Tacit are attacked.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.homogeneity_attack(k=3, people=lab.village(), known=["postcode"], trials=1000)
    >>> attack.example
    ('postcode 1003', 3, True)
    >>> attack.right, attack.curve[0].within_bound
    (1.0, True)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    groups = k_anonymise(crowd.known(*known), k)
    cases = np.bincount(groups.label, crowd.condition).astype(np.int64)
    uniform = (cases == 0) | (cases == groups.sizes)
    exposed = uniform[groups.label]
    guessed = (cases > 0)[groups.label]
    target = np.flatnonzero(exposed)[0] if uniform.any() else 0
    same_postcode = crowd.postcode == crowd.postcode[target]
    others = int(crowd.condition[same_postcode].sum() - crowd.condition[target])
    return HomogeneityAttack(
        k=groups.k,
        people=len(crowd),
        classes=len(groups.sizes),
        sure=float(exposed.mean()),
        right=float((guessed == crowd.condition)[exposed].mean()) if uniform.any() else 0.0,
        example=_example(groups, cases, uniform),
        curve=tuple(_attack_noisy_groups(others, epsilon, number) for epsilon in exact),
    )


def _example(
    groups: Anonymised, cases: npt.NDArray[np.int64], uniform: npt.NDArray[np.bool_]
) -> tuple[str, int, bool] | None:
    """Return the uniform class with the most cases, and among equals the largest; None if there is none."""
    best = np.flatnonzero(uniform)
    if not best.size:
        return None
    cls = int(best[np.argmax(cases[best] * len(groups.label) + groups.sizes[best])])
    return groups.shown(cls), int(groups.sizes[cls]), bool(cases[cls])


def _attack_noisy_groups(others: int, epsilon: Fraction, trials: int) -> Success:
    """Guess from a noisy count, with everyone else known, whether the target has the condition."""
    worlds = (noisy_counts(np.full(trials, others + has), epsilon) > others for has in (1, 0))
    return from_trials(epsilon, *worlds)


@dataclass(frozen=True, slots=True, repr=False)
class LinkingAttack(Drawn, Reportable):
    """What two k-anonymous tables of the same people give away together.

    Attributes
    ----------
    k, people
        The smallest allowed size of a class in each table, and the number of people in both.
    alone
        The share of people who alone fit both their classes: they are re-identified, as if k were 1.
    pinned_first, pinned_second, pinned_both
        The share of people whose diagnosis is certain from the first table, the second table, and both.
    right
        The share of the people in `pinned_both` for whom the attacker is right.
    curve
        The attacker's success against two noisy releases from Tacit; epsilon is the total of both.
    """

    k: int
    people: int
    alone: float
    pinned_first: float
    pinned_second: float
    pinned_both: float
    right: float
    curve: tuple[Success, ...]

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"Two tables hold the same {self.people:,} people, and each is {self.k}-anonymous: one shows "
                "ranges of age, sex and education, the other of age, sex and postcode. A neighbour knows "
                f"all four. With both tables, {percent(self.alone)} of the people can be singled out: "
                "nobody else is in both of their classes."
            ),
            (
                "The costs of two releases from Tacit add up: the cost of both is the sum of their "
                "epsilons, known in advance."
            ),
        )
        rows = (
            ("first table", percent(self.pinned_first)),
            ("second table", percent(self.pinned_second)),
            ("both tables", percent(self.pinned_both)),
        )
        header = ("the attacker sees", "share of people")
        tables = (
            ReportTable("diagnosis known with certainty", header, rows),
            curve_table(self.curve, "against two releases from Tacit"),
        )
        return Report("Linking attack", lead, tables)

    @property
    def unprotected(self) -> str:
        """What the tables give away without Tacit, in a few words."""
        return f"{percent(self.alone)} of people re-identified by two {self.k}-anonymous tables"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.curve

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against Tacit, its bound, and the share of people whom the tables identify."""
        from tacit.explain import success_curve

        figure = success_curve(
            self.curve,
            "Linking attack",
            exposed=self.alone,
            exposed_label="re-identified by two k-anonymous tables",
        )
        return (figure,)


def linking_attack(
    k: SupportsIndex = 5,
    *,
    people: People | None = None,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2, 4),
    trials: int = 20_000,
) -> LinkingAttack:
    """Combine two k-anonymous tables (Ganta, Kasiviswanathan, Smith 2008), then two releases from Tacit.

    Against Tacit, the target is in the data of one world and not in the data of the other. Each release
    counts people with the target's diagnosis, one by age band and one by postcode, so one person changes one
    count in each release by one; each release costs half of epsilon. The attacker knows everyone else, so
    each count votes for one world, and the votes are added.

    Parameters
    ----------
    k
        The smallest allowed size of a class in each table.
    people
        The people to attack; `synthetic_people()` if not given.
    epsilons
        The total costs of the two releases together.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.linking_attack(k=5, epsilons=[1], trials=1000)
    >>> attack.alone > 0.5, attack.pinned_both > 10 * attack.pinned_first, attack.right
    (True, True, 1.0)
    """
    exact, number = read_epsilons(epsilons), read_trials(trials)
    crowd = synthetic_people() if people is None else people
    table = k_anonymise(crowd.known("age", "sex", "education"), k)
    second = k_anonymise(crowd.known("age", "sex", "postcode"), k)
    seen_first, seen_second = _seen(table, crowd), _seen(second, crowd)
    possible = seen_first & seen_second
    pinned = possible.sum(axis=1) == 1
    target = int(np.flatnonzero(pinned)[0]) if pinned.any() else 0
    others = _others(crowd, target)
    return LinkingAttack(
        k=table.k,
        people=len(crowd),
        alone=_alone(table, second),
        pinned_first=float((seen_first.sum(axis=1) == 1).mean()),
        pinned_second=float((seen_second.sum(axis=1) == 1).mean()),
        pinned_both=float(pinned.mean()),
        right=float((possible.argmax(axis=1) == crowd.diagnosis)[pinned].mean()) if pinned.any() else 0.0,
        curve=tuple(_link_noisy_tables(others, epsilon, number) for epsilon in exact),
    )


def _seen(groups: Anonymised, crowd: People) -> npt.NDArray[np.bool_]:
    """Return, for each person, which diagnoses occur in the published class."""
    possible = np.zeros((len(groups.low), len(DIAGNOSES)), dtype=bool)
    possible[groups.label, crowd.diagnosis] = True
    return possible[groups.label]


def _alone(table: Anonymised, second: Anonymised) -> float:
    """Return the share of people who alone fit both their classes."""
    pair = table.label * len(second.low) + second.label
    _, cell, size = np.unique(pair, return_inverse=True, return_counts=True)
    return float((size[cell] == 1).mean())


def _others(crowd: People, target: int) -> npt.NDArray[np.int64]:
    """Count the other people with the target's diagnosis, in the target's age band and postcode."""
    same = crowd.diagnosis == crowd.diagnosis[target]
    band = same & (crowd.age // 10 == crowd.age[target] // 10)
    neighbours = same & (crowd.postcode == crowd.postcode[target])
    return np.array([band.sum() - 1, neighbours.sum() - 1])


def _link_noisy_tables(others: npt.NDArray[np.int64], epsilon: Fraction, trials: int) -> Success:
    """Guess from two noisy counts, each at half of epsilon, whether the target is in the data."""
    votes = (
        (noisy_counts(np.tile(others + here, (trials, 1)), epsilon / 2) > others).sum(axis=1)
        for here in (1, 0)
    )
    return from_trials(epsilon, *(vote > 1 for vote in votes))
