"""Representatives of public features: which queries to ask, so that few labels describe many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.core import needs
from tacit.parameters import Integer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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
    features = features.reshape(len(features), -1)
    wanted = Integer(1, len(features), instead=len(features)).read("number", number)
    clusters = KMeans(wanted, n_init=4, random_state=0).fit(features)
    return np.unique(pairwise_distances_argmin(clusters.cluster_centers_, features))
