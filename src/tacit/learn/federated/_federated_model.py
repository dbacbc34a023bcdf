"""The model that hospitals trained together: weights, and who took part in each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import Content, plain_table
from tacit.learn._arrays import from_document, to_document
from tacit.show import Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable
    from tacit.learn.federated._softmax import GradientModel


class FederatedModel(Content):
    """What a study released: the weights of its model, and how it came about.

    Parameters
    ----------
    model
        How the weights predict; None where it was read from a file and is not one of Tacit's own.
    study
        The document of the study.
    weights
        The trained weights.
    members
        Which hospitals were in the sum of each round; nobody where a round was lost.
    """

    kind: ClassVar[str] = "federated-model"
    __slots__ = ("members", "model", "study", "weights")

    def __init__(
        self,
        model: GradientModel | None,
        study: Mapping[str, JSON],
        weights: NDArray[np.float64],
        members: tuple[tuple[str, ...], ...],
    ) -> None:
        self.model = model
        self.study = study
        self.weights = weights
        self.members = members

    @property
    def rounds(self) -> int:
        """How many rounds moved the model."""
        return sum(1 for names in self.members if names)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return what the model predicts for each example."""
        if self.model is None:
            raise TypeError("the weights were read without their model: give both to the model's own predict")
        return self.model.predict(self.weights, X)

    def to_json(self) -> JSON:
        """Return the model as JSON."""
        return {
            "study": dict(self.study),
            "weights": to_document(self.weights),
            "members": [list(names) for names in self.members],
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the model back."""
        from tacit.learn.federated._study import read_model

        try:
            model: GradientModel | None = read_model(document["study"]["model"])
        except ValueError:
            model = None
        weights = from_document(document["weights"])
        if weights.ndim != 1 or weights.dtype != np.float64:
            raise ValueError("not a model")
        members = tuple(tuple(str(name) for name in names) for names in document["members"])
        return cls(model, document["study"], weights, members)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write for a terminal what was trained, with whom, and how many rounds were lost."""
        lost = len(self.members) - self.rounds
        missed = [f"{lost} of {len(self.members)} rounds were lost: too few hospitals took part"]
        agreed: Any = self.study.get("hospitals", {})
        absent = sorted(set(agreed) - {name for names in self.members for name in names})
        gone = [f"{len(absent)} of {len(agreed)} hospitals took part in no round: {', '.join(absent)}"]
        return "\n".join([repr(self), *(missed if lost else []), *(gone if absent else []), *marks])

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the rounds, and who was in the sum of each."""
        taking: dict[str, list[Any]] = {
            "hospitals": [len(names) for names in self.members],
            "names": [", ".join(names) for names in self.members],
        }
        yield "rounds", plain_table({"round": list(range(1, len(self.members) + 1))}, taking)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return how many hospitals were in the sum of each round."""
        del what
        rounds, taking = range(1, len(self.members) + 1), [len(names) for names in self.members]
        chart = Chart((ChartSeries("bars", rounds, taking),), ChartAxis("round"), ChartAxis("hospitals"))
        return (Figure("hospitals in each round", (chart,)),)

    def __repr__(self) -> str:
        named = {name for names in self.members for name in names}
        return (
            f"FederatedModel of {self.study['name']}: {len(self.weights):,} weights, {self.rounds} rounds, "
            f"{len(named)} hospitals"
        )
