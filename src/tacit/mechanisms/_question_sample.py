"""The question sample: one of several questions is drawn, and only its answer is randomized and reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.exact import count
from tacit.mechanisms._local_randomizer import LocalRandomizer
from tacit.mechanisms._mechanism import Mechanism
from tacit.parameters import Instance, Listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Cost


_PARTS = Listed(
    "local randomizers",
    "[tc.mechanisms.SubsetSelection(epsilon=1, size=2)]",
)
_PART = Instance(
    LocalRandomizer, "[tc.mechanisms.SubsetSelection(epsilon=1, size=2)]", "a list of local randomizers"
)  # type: ignore[type-abstract]


@dataclass(frozen=True, init=False, repr=False, slots=True)
class QuestionSample(Mechanism):
    """Draw one of several questions, each alike, and report its answer through its randomizer.

    Guarantee: the largest epsilon of the randomizers, pure, for all answers of one respondent together,
    whoever collects the reports (adjacency replace).

    Argument: which question is drawn does not depend on the answers. Given the question, the report is that
    of one randomizer, whose odds between any two answers are at most exp(epsilon); the chance of the question
    cancels in the ratio.

    Parameters
    ----------
    parts
        One randomizer for each question.

    Examples
    --------
    >>> import tacit as tc
    >>> coin = tc.mechanisms.SubsetSelection(epsilon=1, size=2)
    >>> which, report = tc.mechanisms.QuestionSample([coin, coin]).release([0, 1])
    >>> which in (0, 1) and len(report) == 1
    True
    """

    parts: tuple[LocalRandomizer, ...]

    def __init__(self, parts: Sequence[LocalRandomizer]) -> None:
        object.__setattr__(
            self, "parts", tuple(_PART.read("parts", part) for part in _PARTS.read("parts", parts))
        )

    @property
    def cost(self) -> Cost:
        """What one report reveals about its respondent: the cost of the part with the largest epsilon."""
        from tacit.accounting import Cost

        if len(set(self.parts)) == 1:
            return self.parts[0].cost
        return Cost.pure(max(part.epsilon for part in self.parts), adjacency="replace")

    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal chances."""
        parts = [part.to_json() for part in self.parts]
        return {"mechanism": "question-sample", "parts": parts, "cost": self.cost.to_json()}

    def draw(self, respondents: int) -> NDArray[np.int64]:
        """Draw which question each of many respondents is asked."""
        return np.asarray(noise.uniform_below(len(self.parts), count("respondents", respondents)))

    def release(self, value: object) -> tuple[int, Any]:
        """Return the place of the question that was drawn, and the report of its answer.

        Parameters
        ----------
        value
            The true answers to all questions, in their order, each as its randomizer takes it.
        """
        asked = len(self.parts)
        answers = Listed(f"{asked:,} answers", "[...]", least=asked, most=asked).read("value", value)
        which = int(self.draw(1)[0])
        return which, self.parts[which].release(answers[which])

    @property
    def worst_pair(self) -> tuple[object, object]:
        """For each question the answers on which its randomizer differs most."""
        pairs = [part.worst_pair for part in self.parts]
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)

    def __repr__(self) -> str:
        return f"QuestionSample({len(self.parts)} questions, one is drawn)"
