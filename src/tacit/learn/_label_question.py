"""The question for labels: it is planned with epsilon, with rho, or with the deviation of the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import Goal, Question
from tacit.errors import TacitError
from tacit.exact import rational
from tacit.fixes import Set
from tacit.learn._labelling import charge_of, label_noise
from tacit.learn._noisy_labels import NoisyLabels

if TYPE_CHECKING:
    from tacit.core import Plan
    from tacit.exact import Number


class LabelQuestion(Question[NoisyLabels]):
    """Labels that were asked of teachers; made by `Teachers.label`."""

    def plan(
        self, *, epsilon: Number | None = None, sigma: Number | None = None, **goal: Any
    ) -> Plan[NoisyLabels]:
        """Plan the labels and state their cost. Touches no data.

        Guarantee: the cost is a function of public facts alone, not of how far the teachers agree.

        Parameters
        ----------
        epsilon
            The promise, with ``delta``, which is at most 1 / size.
        sigma
            Instead of a promise: the deviation of the noise on each number of votes.
        goal
            ``delta``, ``rho`` or ``confidence``, as in `tacit.core.Question.plan`.
        """
        if sigma is None:
            return super().plan(epsilon=epsilon, **goal)
        if epsilon is not None or goal.keys() & {"rho", "delta"}:
            raise TacitError(
                "bad-parameter",
                "labels need either epsilon with delta, or sigma",
                why="they could contradict each other",
                fix=Set(epsilon=2, delta=1e-6),
            )
        exact = rational("sigma", sigma)
        answers, check = self.arguments["answers"], self.arguments["check"]
        noise = label_noise(exact, answers, len(self.arguments["teachers"].classes))
        rho = (charge_of(check) + (noise.sensitivity / noise.sigma) ** 2) / 2
        asked = Question(self.dataset, self.kind, {**self.arguments, "sigma": exact})
        return asked.planned(Goal.read(rho=rho, **goal))
