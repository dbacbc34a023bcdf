"""One client of a federated run with a trusted server: it gets weights, learns, and sends a short update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.federated._messages import Message, pack, refusal, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON

#: What a client does with the weights of a round: it returns how they should change, array by array.
LocalLearning: TypeAlias = "Callable[[list[NDArray[np.float64]]], Sequence[Any]]"


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
            asked = unpack(message)
            study = asked.study
            return self._answer(asked)
        except TacitError as error:
            return refusal(study, error)
        except Exception:  # noqa: BLE001 - what went wrong may depend on the data
            failed = TacitError("release-failed", "the client failed", fix=Say("go on without it"))
            return refusal(study, failed)

    def _answer(self, asked: Message) -> bytes:
        shapes: Any = asked.fields.get("shapes")
        clip: Any = asked.fields.get("clip")
        if asked.kind != "learn" or not isinstance(shapes, list) or not isinstance(clip, float) or clip <= 0:
            raise TacitError(
                "bad-message", "a client answers messages of the kind learn, with shapes and a clip",
                fix=Say("send what the same version of Tacit wrote"),
            )  # fmt: skip
        size = sum(int(np.prod(shape)) for shape in shapes)
        weights = asked.array("weights", "f8", size)
        update = flatten(self._learn(unflatten(weights, shapes)))
        if update.shape != (size,):
            raise TacitError(
                "bad-parameter", "the update must have the shapes of the weights",
                fix=Say("return one array for each array of weights"),
            )  # fmt: skip
        short, below = shorten(update, clip)
        fields: dict[str, JSON] = {"round": asked.round(), "client": self.name, "below": below}
        return pack(Message("learned", asked.study, fields, {"update": short}))


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
