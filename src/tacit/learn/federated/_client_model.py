"""The content of a run with clients: the weights, and the clip of each round."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content, plain_table
from tacit.learn._arrays import from_document, to_document
from tacit.show import Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable


class ClientModel(Content):
    """The weights that clients trained with a trusted server, and the clip of each round.

    Parameters
    ----------
    weights
        The trained weights, in the shapes of the start.
    clips
        How long an update could be in each round; adaptive clips follow from noisy counts alone.
    rounds
        How many rounds were planned.
    """

    kind: ClassVar[str] = "client-model"
    __slots__ = ("clips", "rounds", "weights")

    def __init__(self, weights: Sequence[NDArray[np.float64]], clips: Sequence[float], rounds: int) -> None:
        self.weights = list(weights)
        self.clips = tuple(clips)
        self.rounds = rounds

    def to_json(self) -> JSON:
        """Return the model as JSON."""
        return {
            "weights": [to_document(one) for one in self.weights],
            "clips": list(self.clips),
            "rounds": self.rounds,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the model back; raises ``ValueError`` where it is none."""
        weights = [from_document(one) for one in document["weights"]]
        clips = [float(one) for one in document["clips"]]
        if not all(math.isfinite(one) and one > 0 for one in clips):
            raise ValueError("not a model")
        return cls(weights, clips, int(document["rounds"]))

    def __repr__(self) -> str:
        numbers = sum(one.size for one in self.weights)
        return f"model of clients: {numbers:,} weights, after {len(self.clips):,} of {self.rounds:,} rounds"

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the rounds, and how long an update could be in each."""
        yield "rounds", plain_table({"round": list(range(1, len(self.clips) + 1))}, {"clip": self.clips})

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the clip over the rounds."""
        del what
        line = ChartSeries("line", range(1, len(self.clips) + 1), self.clips)
        title = "length of one client's update, at most"
        return (Figure(title, (Chart((line,), ChartAxis("round"), ChartAxis("clip")),)),)
