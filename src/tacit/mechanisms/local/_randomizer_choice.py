"""The choice of a randomizer for a list of answers, by predicted variance; and randomizers from documents.

In a question sample, one of several questions is drawn, and only its answer is randomized and reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Say
from tacit.mechanisms._mechanism import Mechanism
from tacit.mechanisms.local._linear_hashing import LinearHashing
from tacit.mechanisms.local._local_randomizer import LocalRandomizer
from tacit.mechanisms.local._memo import Memo
from tacit.mechanisms.local._number_window import NumberWindow
from tacit.mechanisms.local._response_designs import Design
from tacit.mechanisms.local._subset_selection import SubsetSelection
from tacit.parameters import Choice, Instance, Listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.exact import Number
    from tacit.mechanisms.local._local_randomizer import SupportRandomizer


_MAX_NAMED = 32  # answers in a report that a person may still read, and a device store


def choose_randomizer(epsilon: Number, size: int) -> SupportRandomizer:
    """Return the randomizer with the smaller predicted variance for a list of answers.

    The candidates are subset selection, where a report names at most 32 answers, and linear hashing. The
    choice depends on epsilon and the number of answers alone. The property `why` of the result explains it.

    Parameters
    ----------
    epsilon
        The promise to each respondent.
    size
        The number of answers.

    Examples
    --------
    >>> choose_randomizer(1, 51).describe()
    'subset selection, 13 of 51 answers'
    >>> choose_randomizer(1, 1_000_000).describe()
    'linear hashing of 1,000,000 answers to 4 values'
    """
    subset = SubsetSelection(epsilon=epsilon, size=size)
    hashing = LinearHashing(epsilon=epsilon, size=size)
    if subset.subset <= _MAX_NAMED and _variance(subset) <= _variance(hashing):
        return subset
    return hashing


def compare(randomizer: SupportRandomizer) -> str:
    """Say how a randomizer compares with the other kind and with plain randomized response."""
    odds, size = randomizer.odds, randomizer.size  # type: ignore[attr-defined]
    subset, hashing = SubsetSelection(odds=odds, size=size), LinearHashing(odds=odds, size=size)
    variance = _variance(randomizer)
    lines = [f"{randomizer.describe()}: variance {variance:.4g}/n for a rare answer"]
    if isinstance(randomizer, LinearHashing) and subset.subset > _MAX_NAMED:
        lines.append(f"subset selection would name {subset.subset:,} answers in each report")
    others: list[SupportRandomizer] = [subset, hashing, SubsetSelection(odds=odds, size=size, subset=1)]
    for other in others:
        if other != randomizer and f"{other.describe()}:" not in " ".join(lines):
            lines.append(f"{other.describe()}: {_variance(other):.4g}/n")
    return "; ".join(lines)


def _variance(randomizer: SupportRandomizer) -> float:
    return randomizer.variance(0, 1, sampling=False)


_KINDS: dict[str, type[LocalRandomizer]] = {
    "subset-selection": SubsetSelection,
    "linear-hashing": LinearHashing,
    "number-window": NumberWindow,
    "response-design": Design,
    "memo": Memo,
}


def randomizer_from_json(document: object) -> LocalRandomizer:
    """Rebuild a local randomizer from its document (`to_json`).

    Examples
    --------
    >>> coin = SubsetSelection(epsilon=1, size=2)
    >>> randomizer_from_json(coin.to_json()) == coin
    True
    """
    name = document.get("mechanism") if isinstance(document, Mapping) else None
    kind = _KINDS[Choice(tuple(_KINDS)).read("mechanism", name)]
    try:
        return kind.from_json(document)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise bad_parameter(
            "document",
            f"the document of a randomizer of the kind {name}",
            "another one",
            fix=Say("use the document that the survey was saved with"),
        ) from None


_PARTS = Listed(
    "local randomizers",
    "[tc.mechanisms.SubsetSelection(epsilon=1, size=2)]",
)
_PART = Instance(
    LocalRandomizer, "parts=[tc.mechanisms.SubsetSelection(epsilon=1, size=2)]", "a list of local randomizers"
)


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
        questions = len(self.parts)
        answers = Listed("answers", "[...]", least=questions, most=questions).read("value", value)
        which = int(self.draw(1)[0])
        return which, self.parts[which].release(answers[which])

    @property
    def worst_pair(self) -> tuple[object, object]:
        """For each question the answers on which its randomizer differs most."""
        pairs = [part.worst_pair for part in self.parts]
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)

    def __repr__(self) -> str:
        return f"QuestionSample({len(self.parts)} questions, one is drawn)"
