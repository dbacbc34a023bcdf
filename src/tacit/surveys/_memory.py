"""A survey that is repeated: permanent answers on the respondent's device, and what a sequence gives away."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.exact import count
from tacit.fixes import Code
from tacit.mechanisms import Memo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.surveys._survey_questions import SurveyQuestion

MEMORY_SCHEMA = "tacit/memory/1"


@dataclass(slots=True, eq=False)
class Memory:
    """The permanent answers of one respondent, drawn once for each different true answer.

    Guarantee: while the memory is kept, all reports of an unchanged answer together give away at most the
    epsilon of the survey. A memory is secret: whoever reads it sees answers that have been through one coin
    only. A respondent who loses it draws new permanent answers, which cost as much again.

    Parameters
    ----------
    survey
        The digest of the survey.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.survey("smoking, each month", ["no", "yes"], epsilon=2, once=1)
    >>> memory = Memory(poll.digest)
    >>> reports = [poll.answer("yes", memory=memory).release() for month in range(12)]
    >>> round(poll.sequence(12).epsilon, 3)
    2.0
    """

    survey: str
    _kept: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)
    _path: Path | None = field(default=None, repr=False)

    def permanent(self, question: SurveyQuestion, truth: int) -> int:
        """Return the permanent answer for a true one; it is drawn when it is first needed."""
        memo = question.randomizer
        if not isinstance(memo, Memo):
            raise TypeError(f"{question.name} has no memo")
        own = self._kept.setdefault(question.name, {})
        if truth not in own:
            own[truth] = int(memo.permanent(truth))
            if self._path is not None:  # on disk before the first report of it can leave
                self.save(self._path)
        return own[truth]

    def save(self, path: str | Path) -> None:
        """Write the memory to a file on the respondent's device, readable by its owner only.

        From then on, and after `load`, every new permanent answer is written there before it is reported.
        """
        target = Path(path)
        answers = {
            name: {str(truth): kept for truth, kept in own.items()} for name, own in self._kept.items()
        }
        document = {"schema": MEMORY_SCHEMA, "survey": self.survey, "answers": answers}
        beside = target.with_name(target.name + ".new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.dumps(document) + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
        self._path = target

    @classmethod
    def load(cls, path: str | Path) -> Memory:
        """Read a memory from a file that `save` wrote."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(document, Mapping) or document.get("schema") != MEMORY_SCHEMA:
                raise ValueError  # noqa: TRY301 - one refusal for everything that is not a memory
            kept = {
                str(name): {int(truth): int(answer) for truth, answer in own.items()}
                for name, own in document["answers"].items()
            }
            return cls(str(document["survey"]), kept, Path(path))
        except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
            raise TacitError(
                "bad-survey",
                "this file is not a memory of a survey that this version of Tacit can read",
                why=f"it must be JSON of the schema {MEMORY_SCHEMA}",
                fix=Code("memory.save(path) writes one"),
            ) from None


@dataclass(frozen=True, slots=True)
class MemoisedAnswer:
    """The memo of one question with the respondent's memory: the mechanism of a repeated report."""

    question: SurveyQuestion
    memory: Memory = field(repr=False)

    @property
    def cost(self) -> Cost:
        """What all reports of an unchanged answer cost together."""
        return self.question.randomizer.cost

    def release(self, value: Any) -> int:
        """Return a report of the permanent answer."""
        memo = self.question.randomizer
        if not isinstance(memo, Memo):
            raise TypeError(f"{self.question.name} has no memo")
        return int(memo.report(self.memory.permanent(self.question, int(value))))

    def to_json(self) -> dict[str, Any]:
        """Return the law of the memo."""
        return self.question.randomizer.to_json()


@dataclass(frozen=True, slots=True)
class SequenceLoss:
    """What several reports of one respondent give away together.

    Parameters
    ----------
    reports, different
        How many reports, and how many different true answers lie behind them.
    epsilon
        The bound for all of them together.
    fresh
        The same with a fresh coin for each report, without a memo.
    change_shown
        The chance that a changed answer changes the permanent one; of several questions, the largest.
    """

    reports: int
    different: int
    epsilon: float
    fresh: float
    change_shown: float | None

    @property
    def words(self) -> str:
        """The same in a sentence."""
        behind = "an unchanged answer" if self.different == 1 else f"{self.different} different answers"
        text = f"{self.reports:,} reports of {behind} give away at most epsilon {self.epsilon:.4g} together"
        if self.change_shown is None:
            return f"{text}; every report has fresh coins, so the epsilons add up"
        shown = f"with {100 * self.change_shown:.0f} % probability it changes the permanent answer"
        return f"{text} (with fresh coins: {self.fresh:.4g}); a changed answer is not hidden: {shown}"

    def __str__(self) -> str:
        return self.words


def sequence_loss(
    questions: Sequence[SurveyQuestion], epsilon: Fraction, reports: int, different: int, *, one: bool
) -> SequenceLoss:
    """Return what several reports of a respondent give away: the losses of all questions add up."""
    times, values = count("reports", reports, zero=False), count("different", different, zero=False)
    memos = [question.randomizer for question in questions if isinstance(question.randomizer, Memo)]
    if not memos:
        each = [float(question.randomizer.epsilon) for question in questions]
        total = times * (max(each) if one else sum(each))
        return SequenceLoss(times, values, min(total, times * float(epsilon)), total, None)
    return SequenceLoss(
        times,
        values,
        sum(memo.loss_after(times, different=min(values, times)) for memo in memos),
        float(sum(times * memo.once for memo in memos)),
        max(memo.change_shown for memo in memos),
    )
