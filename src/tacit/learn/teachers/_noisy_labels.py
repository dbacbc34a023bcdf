"""Noisy labels, what a teacher ensemble releases: labels of public queries, from which a student learns.

Representatives of public features say which queries to ask, so that few labels describe many.
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Content, needs, plain_table
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set
from tacit.parameters import Integer
from tacit.show import Chart, ChartAxis, ChartSeries, Figure, chosen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from tacit.core import JSON, AnswerTable

_STUDENT = "estimator=LogisticRegression()"


@dataclass(frozen=True, repr=False)
class NoisyLabels(Content):
    """Labels that teachers gave to public queries, with noise: free to use, and to train students on.

    Parameters
    ----------
    classes
        The declared classes.
    labels
        The label of each query; None where the teachers were not asked for it.
    votes
        The noisy votes of the queries that were answered, by place: one number for each class.
    within
        With the confidence of the release, a lead of more than this over another class is no work of the
        noise.
    teachers, queries
        How many teachers voted, and the digest of the queries.
    """

    kind: ClassVar[str] = "noisy-labels"
    classes: tuple[Any, ...]
    labels: tuple[Any, ...]
    votes: dict[int, tuple[int, ...]]
    within: int
    teachers: int
    queries: str

    @property
    def answered(self) -> NDArray[np.int64]:
        """The places of the queries that have a label."""
        return np.array([place for place, one in enumerate(self.labels) if one is not None], dtype=np.int64)

    @property
    def clear(self) -> tuple[bool, ...]:
        """Whether the noisy lead of each label is larger than the noise explains; False without a label.

        A label of the student itself, which the teachers did not contradict, has no votes and is not clear.
        """
        leads = {place: max(one) - sorted(one)[-2] for place, one in self.votes.items()}
        return tuple(leads.get(place, -1) > self.within for place in range(len(self.labels)))

    def student(self, estimator: Any, queries: Any, *, more: Any = None, spread: int = 0) -> Any:
        """Train a student on the labels, and return it: post-processing, without any further cost.

        Parameters
        ----------
        estimator
            An estimator with ``fit`` and ``predict``; a fresh copy of it is trained.
        queries
            The public queries, the same that were labelled.
        more
            More public features without labels, used where labels spread.
        spread
            How many neighbours a label spreads to (scikit-learn's label spreading) before the student is
            trained on all public features; 0 trains on the labelled queries alone.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> queries = np.array([[0.0], [1.0], [9.0]])
        >>> told = NoisyLabels(("no", "yes"), ("no", None, "yes"), {}, 0, 10, digest_of_queries(queries))
        >>> told.student(LogisticRegression(), queries).predict([[8.0]]).tolist()
        ['yes']
        """
        needs("student", "sklearn", "tacit[sklearn]")
        from sklearn.base import clone

        if digest_of_queries(queries) != self.queries:
            raise bad_parameter(
                "queries", "the public features that were labelled", "others",
                why="each label belongs to the query at its place", fix=Code("queries=public"),
            )  # fmt: skip
        features, places = np.asarray(queries), self.answered
        labels = np.array([self.labels[place] for place in places])
        if len(np.unique(labels)) < 2:
            raise TacitError(
                "bad-parameter",
                "a student needs labels of at least two classes",
                why=f"the teachers answered {len(places)} queries, all with the same class",
                fix=Set(answers=max(2, len(self.labels))),
            )
        if not hasattr(estimator, "fit"):
            kind = type(estimator).__name__
            raise bad_parameter("estimator", "an estimator with fit and predict", kind, fix=Code(_STUDENT))
        spread = Integer(0, instead=5).read("spread", spread)
        student = clone(estimator) if hasattr(estimator, "get_params") else copy.deepcopy(estimator)
        if not spread:
            return student.fit(features[places], labels)
        return student.fit(*_spread(features, places, labels, more, spread))

    def to_json(self) -> JSON:
        """Return the labels and votes as JSON."""
        return {
            "classes": list(self.classes),
            "labels": list(self.labels),
            "votes": [[place, *one] for place, one in self.votes.items()],
            "within": self.within,
            "teachers": self.teachers,
            "queries": self.queries,
        }

    @classmethod
    def from_json(cls, document: Any) -> NoisyLabels:
        """Read the labels back."""
        return cls(
            tuple(document["classes"]),
            tuple(document["labels"]),
            {place: tuple(votes) for place, *votes in document["votes"]},
            document["within"],
            document["teachers"],
            document["queries"],
        )

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write how many queries got which label."""
        counts = Counter(one for one in self.labels if one is not None)
        summary = (
            f"labels of {self.teachers:,} teachers: {len(self.answered):,} of {len(self.labels):,} queries, "
            f"{sum(self.clear):,} with a lead above {self.within:,} votes"
        )
        lines = [summary] + [f"  {one}: {counts[one]:,}" for one in self.classes]
        return "\n".join([*lines, *marks])

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the queries with their labels and noisy votes."""
        places = range(len(self.labels))
        votes = {
            f"votes[{one}]": [self.votes[at][i] if at in self.votes else None for at in places]
            for i, one in enumerate(self.classes)
        }
        labels = [one.item() if isinstance(one, np.generic) else one for one in self.labels]
        yield "labels", plain_table({"query": list(places)}, {"label": labels, **votes})

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return how many queries got each label."""
        return chosen(what, {"labels": self._figure})

    def _figure(self) -> Figure:
        counts = Counter(one for one in self.labels if one is not None)
        names = tuple(str(one) for one in self.classes)
        bars = ChartSeries("bars", range(len(names)), [counts[one] for one in self.classes])
        return Figure("labels", (Chart((bars,), ChartAxis("", names), ChartAxis("queries")),))

    def __repr__(self) -> str:
        return self.text()


def digest_of_queries(queries: Any) -> str:
    """Return a digest of public features: values and shape.

    Examples
    --------
    >>> digest_of_queries([[1.0]]) == digest_of_queries(np.array([[1.0]]))
    True
    """
    array = np.asarray(queries.detach().cpu() if hasattr(queries, "detach") else queries)
    content = (
        repr(array.tolist()).encode() if array.dtype.hasobject else np.ascontiguousarray(array).tobytes()
    )
    return hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + content).hexdigest()


def _spread(features: Any, places: Any, labels: Any, more: Any, neighbours: int) -> tuple[Any, Any]:
    """Return all public features with labels that spread from those that are known."""
    from sklearn.semi_supervised import LabelSpreading

    every = features if more is None else np.concatenate([features, np.asarray(more)])
    classes, number = np.unique(labels, return_inverse=True)
    start = np.full(len(every), -1)
    start[places] = number
    spreading = LabelSpreading(kernel="knn", n_neighbors=min(neighbours, len(every)), max_iter=100)
    with np.errstate(invalid="ignore", divide="ignore"):  # what no label reaches has no share of any
        spreading.fit(every.reshape(len(every), -1), start)
    reached = np.isfinite(spreading.label_distributions_).all(axis=1)
    return every[reached], classes[spreading.transduction_[reached]]


def representatives(public: ArrayLike, number: int) -> NDArray[np.int64]:
    """Return the places of public examples that lie nearest to the centres of that many clusters.

    The features must be public: nothing is charged. Ask teachers about these, and let the labels spread.

    Examples
    --------
    >>> public = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> sorted(representatives(public, 2).tolist())
    [1, 4]
    """
    needs("representatives", "sklearn", "tacit[sklearn]")
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances_argmin

    features = np.asarray(public)
    if features.ndim == 0:
        example = Code("public=np.array([[0.0], [5.0]])")
        raise bad_parameter("public", "a row of features for each example", "one value", fix=example)
    features = features.reshape(len(features), -1)
    size = len(features)
    why = f"the number of examples is {size:,}"
    n_representatives = Integer(1, size, why, instead=size).read("number", number)
    clusters = KMeans(n_representatives, n_init=4, random_state=0).fit(features)
    return np.unique(pairwise_distances_argmin(clusters.cluster_centers_, features))
