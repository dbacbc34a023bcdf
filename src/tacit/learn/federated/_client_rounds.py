"""The rounds of clients with a trusted server: sums of updates on whole numbers, and the model's steps.

In a round, a client gets weights, learns, and sends a short update.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn._arrays import from_document, to_document
from tacit.learn.federated._gradients import CLIP_STEPS, clip_whole
from tacit.learn.federated._messages import Message, pack, refusal, unpack
from tacit.learn.training._settings import AdaptiveClip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.learn.federated._coordinator import Exchange
    from tacit.mechanisms import SampledSteps


#: What a client does with the weights of a round: it returns how they should change, array by array.
LocalLearning: TypeAlias = "Callable[[list[NDArray[np.float64]]], Sequence[Any]]"
_LARGEST = 1e100  # weights beyond it stop moving: a public rule that keeps messages finite


class Client:
    """One client: bytes come in, bytes go out.

    The client shortens its own update to the clip that the server names, so that an honest client never sends
    more than counts. The server does not rely on it and clips again.

    Parameters
    ----------
    name
        The client's name in the run.
    learn
        A function from weights, a list of arrays, to their change, a list of arrays of the same shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.learn.federated import Message, pack, unpack
    >>> north = Client("north", lambda weights: [3.0 - weights[0], 4.0 - weights[0]])
    >>> asked = pack(Message("learn", "run", {"round": 1, "clip": 1.0, "shapes": [[], []]},
    ...                      {"weights": np.zeros(2)}))
    >>> reply = unpack(north.handle(asked))
    >>> reply.kind, reply.arrays["update"].round(6).tolist(), reply.fields["below"]
    ('learned', [0.6, 0.8], False)
    """

    def __init__(self, name: str, learn: LocalLearning) -> None:
        self.name = name
        self._learn = learn

    def __repr__(self) -> str:
        return f"Client({self.name!r})"

    def handle(self, message: bytes) -> bytes:
        """Answer a message of the server; a refusal is an answer too."""
        study = ""
        try:
            request = unpack(message)
            study = request.study
            return self._answer(request)
        except TacitError as error:
            return refusal(study, error)
        except Exception:  # noqa: BLE001 - what went wrong may depend on the data
            failed = TacitError("release-failed", "the client failed", fix=Say("go on without it"))
            return refusal(study, failed)

    def _answer(self, request: Message) -> bytes:
        shapes: Any = request.fields.get("shapes")
        clip: Any = request.fields.get("clip")
        if (
            request.kind != "learn"
            or not isinstance(shapes, list)
            or not isinstance(clip, float)
            or clip <= 0
        ):
            raise TacitError(
                "bad-message", "a client answers messages of the kind learn, with shapes and a clip",
                fix=Say("send what the same version of Tacit wrote"),
            )  # fmt: skip
        size = sum(int(np.prod(shape)) for shape in shapes)
        weights = request.array("weights", "f8", size)
        update = flatten(self._learn(unflatten(weights, shapes)))
        if update.shape != (size,):
            raise TacitError(
                "bad-parameter", "the update must have the shapes of the weights",
                fix=Say("return one array for each array of weights"),
            )  # fmt: skip
        short, below = shorten(update, clip)
        fields: dict[str, JSON] = {"round": request.round(), "client": self.name, "below": below}
        return pack(Message("learned", request.study, fields, {"update": short}))


def shorten(update: NDArray[np.float64], clip: float) -> tuple[NDArray[np.float64], bool]:
    """Return an update of at most the length of the clip, and whether it was not longer before.

    An update that is not finite becomes zero, and counts as longer.

    Examples
    --------
    >>> shorten(np.array([3.0, 4.0]), 10.0)[1], shorten(np.array([np.nan, 4.0]), 10.0)[0].tolist()
    (True, [0.0, 0.0])
    """
    if not np.isfinite(update).all():
        return np.zeros_like(update), False
    largest = float(np.abs(update).max(initial=0.0))
    if largest == 0.0:
        return update, True
    length = largest * float(np.linalg.norm(update / largest))
    if length <= clip:
        return update, True
    return update / largest * (clip / (length / largest)), False


def flatten(arrays: Sequence[Any]) -> NDArray[np.float64]:
    """Return arrays of numbers as one line."""
    return np.concatenate([np.zeros(0), *(np.asarray(one, dtype=np.float64).ravel() for one in arrays)])


def unflatten(line: NDArray[np.float64], shapes: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    """Return a line of numbers as arrays of these shapes.

    Examples
    --------
    >>> [one.tolist() for one in unflatten(np.arange(3.0), [[2], []])]
    [[0.0, 1.0], 2.0]
    """
    sizes = [int(np.prod(shape)) for shape in shapes]
    parts = np.split(np.asarray(line, dtype=np.float64), np.cumsum(sizes)[:-1]) if sizes else []
    return [part.reshape(tuple(shape)) for part, shape in zip(parts, shapes, strict=True)]


@dataclass(frozen=True, slots=True)
class ClientRounds:
    """What is public about the rounds: start, steps, clip, and who pays how much noise.

    Parameters
    ----------
    start, shapes
        The weights before the first round as one line, and the shapes of their arrays.
    mechanism
        Sample, noise and number of all rounds.
    clip
        How long the update of a client can be, or the rule by which this changes.
    size
        The declared number of clients.
    learning_rate, momentum
        How the server moves the weights.
    """

    start: NDArray[np.float64]
    shapes: tuple[tuple[int, ...], ...]
    mechanism: SampledSteps
    clip: Fraction | AdaptiveClip
    size: int
    learning_rate: Fraction
    momentum: Fraction

    @property
    def count_steps(self) -> int:
        """How many grid steps a client's bit moves the count of short updates; 0 for a fixed clip."""
        if not isinstance(self.clip, AdaptiveClip):
            return 0
        return max(1, math.isqrt(math.floor(self.clip.share * CLIP_STEPS**2)))

    @property
    def update_steps(self) -> int:
        """How many grid steps the longest update has: with the bit, the length is at most that of the clip.

        This is where adaptive clipping is paid for: the squares of both add up to at most ``2**40``.
        """
        return math.isqrt(CLIP_STEPS**2 - self.count_steps**2)

    @property
    def first_clip(self) -> float:
        """The clip of the first round."""
        return float(self.clip.start if isinstance(self.clip, AdaptiveClip) else self.clip)

    @property
    def expected(self) -> float:
        """The public denominator: the rate times the declared number of clients."""
        return float(self.mechanism.rate * self.size)

    def document(self) -> dict[str, JSON]:
        """Return all of it as JSON; the start by its digest."""
        return {
            "start": hashlib.sha256(self.start.astype("<f8").tobytes()).hexdigest(),
            "shapes": [list(shape) for shape in self.shapes],
            "rounds": self.mechanism.steps,
            "clip": self.clip.to_json() if isinstance(self.clip, AdaptiveClip) else str(self.clip),
            "size": self.size,
            "learning_rate": str(self.learning_rate),
            "momentum": str(self.momentum),
        }

    @property
    def digest(self) -> str:
        """The name of the run in messages."""
        return hashlib.sha256(repr(sorted(self.document().items())).encode()).hexdigest()


class ClientSums:
    """Sums over sampled clients; see `tacit.mechanisms.StepSums`.

    Each client moves a sum by at most ``2**20`` grid steps in L2: its clipped update and its bit together.
    A client that does not reply, or whose reply is wrong or not finite, counts as zero, and the denominator
    stays the same.
    """

    def __init__(
        self,
        rounds: ClientRounds,
        names: Sequence[str],
        exchange: Exchange,
        state: ClientState | None = None,
    ) -> None:
        self._rounds = rounds
        self._names = tuple(names)
        self._exchange = exchange
        begun = state or ClientState(rounds.start, np.zeros_like(rounds.start), (), rounds.first_clip)
        self._weights, self._velocity = begun.weights.copy(), begun.velocity.copy()
        self._clips, self._clip = list(begun.clips), begun.clip

    @property
    def units(self) -> int:
        """How many clients there are."""
        return len(self._names)

    def sums(self, sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Send the weights to the sampled clients, and add up what they reply, in integers."""
        rounds = self._rounds
        total = np.zeros(len(self._weights) + bool(rounds.count_steps), dtype=np.int64)
        fields: dict[str, JSON] = {
            "round": len(self._clips) + 1,
            "clip": self._clip,
            "shapes": [list(shape) for shape in rounds.shapes],
        }
        request = pack(Message("learn", rounds.digest, fields, {"weights": self._weights}))
        chosen = {self._names[int(place)]: request for place in sample}
        if not chosen:
            return total
        for name, reply in dict(self._exchange(chosen)).items():
            if name in chosen:
                total += self._whole(reply)
        return total

    def _whole(self, reply: bytes) -> NDArray[np.int64]:
        """Return one client's reply as whole grid steps, whatever the bytes are."""
        size, rounds = len(self._weights), self._rounds
        total = np.zeros(size + bool(rounds.count_steps), dtype=np.int64)
        try:
            message = unpack(reply)
            if message.kind != "learned" or message.round() != len(self._clips) + 1:
                return total
            update = message.array("update", "f8", size)
        except TacitError:
            return total
        if not np.isfinite(update).all():
            return total
        short, below = shorten(update, self._clip)
        scaled = self._clip * (CLIP_STEPS / rounds.update_steps)
        steps = clip_whole(short[None, :], scaled)[0]
        if int(steps @ steps) <= rounds.update_steps**2:
            total[:size] = steps
        if rounds.count_steps:
            below_clip = below and message.fields.get("below") is True
            total[size] = rounds.count_steps if below_clip else -rounds.count_steps
        return total

    def update(self, noisy: Any) -> None:
        """Move the weights by the noisy mean of the updates, and the clip by the noisy count."""
        rounds, size = self._rounds, len(self._weights)
        numbers = np.asarray(noisy, dtype=np.float64)
        mean = numbers[:size] * (self._clip / rounds.update_steps / rounds.expected)
        self._velocity = np.clip(float(rounds.momentum) * self._velocity + mean, -_LARGEST, _LARGEST)
        weights = self._weights + float(rounds.learning_rate) * self._velocity
        self._weights = np.clip(weights, -_LARGEST, _LARGEST)
        self._clips.append(self._clip)
        rule = rounds.clip
        if isinstance(rule, AdaptiveClip):
            # Andrew, Thakkar, McMahan and Ramaswamy (2021), algorithm 1; bits are centred, as there
            share = 0.5 + numbers[size] / rounds.count_steps / (2 * rounds.expected)
            factor = math.exp(min(max(-float(rule.rate) * (share - float(rule.quantile)), -20.0), 20.0))
            self._clip = min(max(self._clip * factor, 1e-12), 1e12)

    def result(self) -> Any:
        """Return weights, velocity, the clips so far and the next clip: all from noisy sums alone."""
        return [to_document(self._weights), to_document(self._velocity), self._clips, self._clip]


@dataclass(frozen=True, slots=True, eq=False)
class ClientState:
    """Where a run stands after some rounds: what `ClientSums.result` returned."""

    weights: NDArray[np.float64]
    velocity: NDArray[np.float64]
    clips: tuple[float, ...]
    clip: float


def read_state(stored: Any) -> ClientState:
    """Read what the ledger stored of some rounds."""
    weights, velocity, clips, clip = stored
    return ClientState(
        from_document(dict(weights)),
        from_document(dict(velocity)),
        tuple(float(one) for one in clips),
        float(clip),
    )
