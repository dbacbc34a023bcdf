"""The rounds of one hospital in a study: each instalment of its run answers one round."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import DELTA, Argument, Content, Draft, Forecast, RunTask, Step, plain_table
from tacit.learn._questions import inner_question
from tacit.learn.federated._messages import weights_digest
from tacit.learn.federated._whole_gradients import clip_whole
from tacit.parameters import Anything

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable, Goal, Noisy
    from tacit.learn._examples import Examples
    from tacit.learn.federated._study import Study

_BLOCK = 2**21  # about so many numbers are in memory at a time


@dataclass(slots=True)
class RoundWanted:
    """Which round the next instalment answers, with which weights; then the noisy sum that came out."""

    number: int = 0
    weights: NDArray[np.float64] | None = None
    noisy: NDArray[np.int64] | None = field(default=None, repr=False)


class RoundAnswer(Content):
    """One round of one hospital: which weights were asked about, and of own noise the noisy sum.

    The sum of shared noise holds one share only. It is never stored, and leaves under a mask.
    """

    kind: ClassVar[str] = "federated-round"
    __slots__ = ("number", "sums", "weights")

    def __init__(self, number: int, weights: str, sums: NDArray[np.int64] | None) -> None:
        self.number = number
        self.weights = weights
        self.sums = sums

    def to_json(self) -> JSON:
        """Return the answer as JSON."""
        sums = None if self.sums is None else _text(self.sums)
        return {"round": self.number, "weights": self.weights, "sums": sums}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the answer back."""
        sums = document["sums"]
        return cls(int(document["round"]), str(document["weights"]), None if sums is None else _numbers(sums))

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the noisy sums; one line without a sum where it left under a mask."""
        sums = [None] if self.sums is None else self.sums.tolist()
        yield "sums", plain_table({"place": list(range(len(sums)))}, {"sum": sums})

    def __repr__(self) -> str:
        held = "a masked sum" if self.sums is None else f"{len(self.sums):,} noisy sums"
        return f"round {self.number}: {held}"


def draft_rounds(
    data: Examples, goal: Goal, *, study: Study, hospital: str, wanted: RoundWanted
) -> Draft[RoundAnswer]:
    """Draft the run of a hospital in a study; ``wanted`` says which round the next instalment answers."""
    step: Step[_RoundSums] = Step(study.mechanism(hospital), lambda sums, _: sums)

    def reading(number: int, noisy: Mapping[int, Sequence[Noisy]], _: Fraction) -> RoundAnswer:
        [[asked, weights, sums]] = noisy[number]
        return RoundAnswer(int(asked), str(weights), None if sums is None else _numbers(sums))

    task = RunTask(
        document=lambda: {"study": study.document(), "hospital": hospital},
        instalments=study.rounds,
        steps_of=lambda _: (step,),
        open=lambda _: _RoundSums(study, data, wanted),
        reading=reading,
        subject=wanted,
    )
    return Draft(
        task=task,
        asked=f"train together: {study.name}",
        forecast=lambda: _forecast(study),
        facts=lambda: _facts(study, hospital),
        goal=goal,
    )


class _RoundSums:
    """The sums of one round over a sample of patients; see `tacit.mechanisms.StepSums`."""

    def __init__(self, study: Study, data: Examples, wanted: RoundWanted) -> None:
        self._study = study
        self._arrays = [np.asarray(one) for one in data._arrays]  # noqa: SLF001 - learning's own
        self._rows = data.units()
        self._wanted = wanted
        self._weights = np.asarray(wanted.weights)

    @property
    def units(self) -> int:
        """How many patients there are."""
        return len(self._rows)

    def sums(self, sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the clipped gradients of the sampled patients, in integers."""
        size = self._study.model.dimension
        total = np.zeros(size, dtype=np.int64)
        some = max(1, _BLOCK // (size * self._rows.shape[1]))
        for start in range(0, len(sample), some):
            rows = self._rows[sample[start : start + some]]
            total += clip_whole(self._of_patients(rows), float(self._study.clip)).sum(axis=0)
        return total

    def _of_patients(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gradient of each patient: the sum over the patient's examples."""
        there = rows >= 0
        each = self._of_examples(rows[there])
        padded = np.zeros((*rows.shape, each.shape[1]))
        padded[there] = each
        with np.errstate(all="ignore"):
            total: NDArray[np.float64] = padded.sum(axis=1)
        return total

    def _of_examples(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gradient of each example; one on which the model fails is not a number.

        Other examples must not show in it, not even in its last bit, which weights can be chosen to enlarge.
        So each is asked for alone, unless the model promises that this makes no difference.
        """
        if getattr(self._study.model, "separate", False) is True:
            together = self._asked(places)
            if together is not None:
                return together
        found = np.full((len(places), self._study.model.dimension), np.nan)
        for place in range(len(places)):
            alone = self._asked(places[place : place + 1])
            if alone is not None:
                found[place] = alone[0]
        return found

    def _asked(self, places: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Ask the model for gradients; None where it fails."""
        try:
            X, y = (one[places] for one in self._arrays)
            each = np.asarray(self._study.model.gradients(self._weights, X, y), dtype=np.float64)
        except Exception:  # noqa: BLE001 - whatever a model does with hostile data
            return None
        return each if each.shape == (len(places), self._study.model.dimension) else None

    def update(self, noisy: Any) -> None:
        """Keep the noisy sum for the reply."""
        self._wanted.noisy = np.asarray(noisy, dtype=np.int64)

    def result(self) -> Any:
        """Return what is stored: the round, and the noisy sum where it is safe by itself."""
        own = self._study.noise == "own" and self._wanted.noisy is not None
        digest = weights_digest(self._weights)
        return [self._wanted.number, digest, _text(self._wanted.noisy) if own else None]


def _text(numbers: Any) -> str:
    return base64.b64encode(np.asarray(numbers).astype("<i8").tobytes()).decode()


def _numbers(text: str) -> NDArray[np.int64]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8").astype(np.int64)


def _forecast(study: Study) -> list[Forecast]:
    """Say what to expect of the sum of one round, as the coordinator sees it."""
    total = float(study.sigma) * (len(study.hospitals) / study.shares) ** 0.5
    return [
        Forecast(
            "sum",
            "clipped gradients of a round, for one weight, over all hospitals",
            f"{study.noise}, {total:.4g} clips in all",
            1.96 * total * float(study.clip),
        )
    ]


def _facts(study: Study, hospital: str) -> list[tuple[str, str]]:
    """Say what is agreed, for the plan."""
    own = study.hospitals[hospital]
    lines = [
        ("study", f"{study.name}, with {len(study.hospitals)} hospitals"),
        ("rounds", f"{study.rounds:,}, each with {_sample(own.rate)}"),
        ("clip", f"the gradient of one patient is at most {float(study.clip):.4g} long"),
        ("noise", f"{study.noise}, {float(study.sigma):.4g} clips in each sum"),
    ]
    if study.noise == "shared":
        alone = float(study.cost(hospital, honest=1).epsilon(delta=study.delta))
        lines += [
            ("hidden shares", f"at least {study.shares} in each sum of at least {study.least} hospitals"),
            ("if all others collude", f"epsilon {alone:.4g} instead of {float(study.epsilon):.4g}"),
        ]
    return lines


def _sample(rate: Fraction) -> str:
    return "all patients" if rate == 1 else f"a random sample of {100 * float(rate):.4g} % of the patients"


ROUNDS = inner_question(
    name="rounds", words="Answer the rounds of a study", draft=draft_rounds, takes=frozenset({DELTA}),
    example="epsilon=2, delta=1e-6",
    arguments=(
        Argument("study", Anything("the agreed study"), needed=True),
        Argument("hospital", Anything("which of its hospitals this is"), needed=True),
        Argument("wanted", Anything("which round comes next"), needed=True),
    ),
)  # fmt: skip
