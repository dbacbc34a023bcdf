"""The task of one hospital in a study: each instalment of its run answers one round."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import Content
from tacit.learn.federated._messages import weights_digest
from tacit.learn.federated._whole_gradients import clip_whole

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, Measurement
    from tacit.learn._examples import Examples
    from tacit.learn.federated._study import Study

__all__ = ["RoundAnswer", "RoundTask", "RoundWanted"]

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

    def __repr__(self) -> str:
        held = "a masked sum" if self.sums is None else f"{len(self.sums):,} noisy sums"
        return f"round {self.number}: {held}"


@dataclass(frozen=True, slots=True)
class RoundTask:
    """What a hospital brings to the plan of its run.

    Parameters
    ----------
    study, hospital
        The agreed study, and which of its hospitals this is.
    data
        The patients.
    wanted
        Which round comes next.
    """

    study: Study
    hospital: str
    data: Examples
    wanted: RoundWanted

    @property
    def question(self) -> JSON:
        """The study, and which hospital answers."""
        return {"study": self.study.document(), "hospital": self.hospital}

    @property
    def instalments(self) -> int:
        """One for each round."""
        return self.study.rounds

    def mechanisms_of(self, number: int) -> Sequence[Measurement]:
        """Return the mechanism, the same in every round."""
        del number
        return (self.study.mechanism(self.hospital),)

    def integers_of(
        self, number: int, noisy: Mapping[int, Sequence[Any]], state: bytes
    ) -> Generator[Any, Any, bytes | None]:
        """Yield the sums of the wanted round."""
        del number, noisy, state
        yield _RoundSums(self.study, self.data, self.wanted)
        return None

    def read_of(self, number: int, noisy: Mapping[int, Sequence[Any]], confidence: Fraction) -> RoundAnswer:
        """Read the answer of one round."""
        del confidence
        [[asked, weights, sums]] = noisy[number]
        return RoundAnswer(int(asked), str(weights), None if sums is None else _numbers(sums))


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
