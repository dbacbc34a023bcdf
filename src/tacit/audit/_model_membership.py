"""Membership reports of trained models: how well a score tells who was in the data, beside the bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.audit._outputs import clopper_pearson
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.core import Certificate, Plan, Release
    from tacit.show import Figure

_FALSE_ALARMS = (0.001, 0.01, 0.1)


@dataclass(frozen=True, slots=True, repr=False)
class MembershipReport(Drawn, Reportable):
    """How well one score tells members of the training data from others; made by `membership`.

    What is measured is this attack on this model: a better attack may do better. What the claimed cost
    allows holds for every attack.

    Attributes
    ----------
    members, others
        How many scores of each kind there are.
    auc
        The probability that a member scores higher than another person.
    found
        For some shares of false alarms: the share of members that are found, and an interval for it (95 %),
        which covers the choice of members. The threshold itself is measured on the others.
    allowed
        What the claimed cost allows at the same shares; None without a claim.
    auc_allowed
        The largest AUC that the claimed cost allows; None without a claim.
    """

    members: int
    others: int
    auc: float
    found: tuple[tuple[float, float, float, float], ...]
    allowed: tuple[float, ...] | None
    auc_allowed: float | None
    _scores: tuple[Any, Any] = field(repr=False, compare=False)
    _claimed: Any = field(repr=False, compare=False, default=None)

    def report(self) -> Report:
        """Return the facts to show."""
        lead = [
            f"The attack compares {self.members:,} people in the training data with {self.others:,} others.",
            f"A member has the higher score in {percent(self.auc)} of all pairs; blind guessing has 50 %.",
        ]
        if self.auc_allowed is not None:
            allowed = percent(self.auc_allowed)
            lead.append(f"By the claimed cost, no attack can exceed {allowed}, whatever it knows.")
        rows = tuple(
            (
                percent(rate),
                f"{percent(share)} [{percent(low)}, {percent(high)}]",
                *(() if self.allowed is None else (percent(self.allowed[place]),)),
            )
            for place, (rate, share, low, high) in enumerate(self.found)
        )
        header = (
            "false alarms",
            "members found (95 %)",
            *(() if self.allowed is None else ("any attack at most",)),
        )
        note = "This is one attack on one model; other attacks may find more."
        return Report(
            "Membership report", tuple(lead), (ReportTable("members found", header, rows),), (note,)
        )

    def to_dict(self) -> dict[str, object]:
        """Return the figures as plain data, ready for JSON."""
        names = ("members", "others", "auc", "found", "allowed", "auc_allowed")
        return {name: getattr(self, name) for name in names}

    def figures(self) -> tuple[Figure, ...]:
        """Return the share of members found over the share of false alarms, and what the claim allows."""
        from tacit.explain import membership_curve

        alarms, hits = _curve(*self._scores)
        rates = np.linspace(0, 1, 65)
        bound = None if self._claimed is None else [1 - self._claimed.tradeoff(float(rate)) for rate in rates]
        return (membership_curve(alarms.tolist(), hits.tolist(), rates.tolist(), bound),)


def membership(
    members: Sequence[float] | NDArray[Any],
    others: Sequence[float] | NDArray[Any],
    *,
    claimed: Cost | Plan[Any] | Release[Any] | Certificate | None = None,
) -> MembershipReport:
    """Report how well a score tells who was in the training data of a model.

    A common score is minus the loss of the model on a person's example, or that minus the loss of a model
    that was trained without the person. The report is for the people who hold the data: the scores of
    members are not private, so do not publish it.

    Parameters
    ----------
    members
        Scores of people whose examples were in the training data; higher speaks for "in".
    others
        Scores of people like them whose examples were not.
    claimed
        The cost that training claims, or the plan, release or certificate that states it: the report then
        shows what it allows to any attack.

    Examples
    --------
    >>> import tacit as tc
    >>> found = tc.audit.membership([0.9, 0.8, 0.7, 0.2], [0.6, 0.4, 0.3, 0.1])
    >>> found.auc
    0.8125
    """
    inside, outside = (np.asarray(one, dtype=float).ravel() for one in (members, others))
    if not len(inside) or not len(outside) or not (np.isfinite(inside).all() and np.isfinite(outside).all()):
        raise TacitError(
            "bad-parameter",
            "a membership report needs finite scores of members and of others",
            why="it compares every member with every other person",
            fix=Code("tc.audit.membership(-loss_of_members, -loss_of_others)"),
        )
    ranks = np.searchsorted(np.sort(outside), inside, side="left")
    ties = np.searchsorted(np.sort(outside), inside, side="right") - ranks
    auc = float((ranks + ties / 2).mean() / len(outside))
    rows = []
    for rate in _FALSE_ALARMS:
        threshold = np.sort(outside)[::-1][min(int(rate * len(outside)), len(outside) - 1)]
        hits = int((inside > threshold).sum())
        low, high = clopper_pearson(hits, len(inside), 0.025)
        rows.append((rate, hits / len(inside), float(low), float(high)))
    cost = _read_claim(claimed)
    allowed = None if cost is None else tuple(1 - cost.tradeoff(rate) for rate in _FALSE_ALARMS)
    return MembershipReport(
        len(inside),
        len(outside),
        auc,
        tuple(rows),
        allowed,
        _largest_auc(cost),
        (inside, outside),
        cost,
    )


def _read_claim(claimed: Any) -> Cost | None:
    """Return the cost that something states: a cost itself, a plan, a release or a certificate."""
    from tacit.accounting import Cost
    from tacit.core import Certificate, Plan, Release

    match claimed:
        case None | Cost():
            return claimed
        case Release() | Certificate():
            stated = claimed.certificate if isinstance(claimed, Release) else claimed
            return Cost.from_json(stated.fields["cost"])
        case Plan():
            return claimed.cost
    raise bad_parameter(
        "claimed", "a cost, or a plan, release or certificate that states one", type(claimed).__name__,
        fix=Code("tc.audit.membership(members, others, claimed=release.certificate)"),
    )  # fmt: skip


def _largest_auc(claimed: Cost | None) -> float | None:
    """Return an upper bound on the AUC: the area under the most that any attack finds, from above."""
    if claimed is None:
        return None
    curve = np.array([1 - claimed.tradeoff(step / 64) for step in range(65)])
    return float(min(1.0, curve[1:].mean()))  # the curve rises, so each step's right end bounds it


def _curve(inside: NDArray[Any], outside: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the shares of false alarms and of members found, for every threshold."""
    thresholds = np.sort(np.concatenate([inside, outside]))[::-1]
    counts = (len(one) - np.searchsorted(np.sort(one), thresholds, side="left") for one in (outside, inside))
    alarms, hits = (
        np.concatenate([[0.0], count / len(one)])
        for count, one in zip(counts, (outside, inside), strict=True)
    )
    return alarms, hits
