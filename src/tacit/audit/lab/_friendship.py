"""The attack lab on graphs: an exact count of edges or triangles gives away one friendship."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np

from tacit import noise
from tacit.audit.lab._worlds import (
    Success,
    curve_table,
    from_trials,
    hashed_uniform,
    noisy_counts,
    read_epsilons,
    read_trials,
)
from tacit.mechanisms import LadderNoise
from tacit.parameters import Integer
from tacit.report import Report, Reportable, ReportTable
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    import numpy.typing as npt

    from tacit.exact import Number
    from tacit.show import Figure

    _Matrix = npt.NDArray[np.int64]

_SCHOOL_CLASSES: Final = 10


@dataclass(frozen=True, slots=True, repr=False)
class FriendshipAttack(Drawn, Reportable):
    """What counts of friendships and triangles give away about one friendship.

    Attributes
    ----------
    people
        The number of people in the network, which is public.
    before, after
        The exact numbers of edges and of triangles before and after two people become friends.
    common
        The number of friends that the two people have in common.
    local_sensitivity
        The most triangles that one friendship could add to or remove from this network. It is private.
    edges
        The attacker's success against a noisy count of edges.
    triangles
        The attacker's success against a noisy count of triangles, by the ladder that `Graph.triangles` uses.
    scaled_by_data
        The attacker's success against triangles with noise for the true local sensitivity, which is not
        private: it can exceed the bound. It is measured on another network, ten pairs of friends.
    """

    people: int
    before: tuple[int, int]
    after: tuple[int, int]
    common: int
    local_sensitivity: int
    edges: tuple[Success, ...]
    triangles: tuple[Success, ...]
    scaled_by_data: tuple[Success, ...]

    @property
    def global_sensitivity(self) -> int:
        """The most triangles that one friendship adds to any network of this many people: people - 2."""
        return self.people - 2

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (
            (
                f"In a network of {self.people} people, two people with {self.common} common friends become "
                f"friends. The network is counted before and after. Exact counts reveal the new friendship: "
                f"there are one more edge and {self.common} more triangles. The attacker knows all other "
                "friendships."
            ),
            (
                "Tacit counts triangles with the ladder mechanism. Its noise depends on the network, but by "
                "a proven law, so each friendship stays within the bound. Noise whose size is simply taken "
                "from the data gives no such protection. Among people with one friend each, no pair has a "
                "common friend, so this noise is zero. One more friendship makes it positive, and then any "
                "answer other than 0 proves that friendship."
            ),
        )
        rows = tuple(
            (name, f"{before:,}", f"{after:,}", f"{after - before:,}")
            for name, before, after in zip(("edges", "triangles"), self.before, self.after, strict=True)
        )
        tables = (
            ReportTable("exact counts", ("statistic", "before", "after", "difference"), rows),
            curve_table(self.edges, "edges, against Tacit"),
            curve_table(self.triangles, "triangles, against Tacit"),
            curve_table(self.scaled_by_data, "triangles, noise for the local sensitivity (not private)"),
        )
        note = (
            "In the last table, an answer other than 0 is certain proof, whatever epsilon is: no epsilon "
            "describes such noise, even where the advantage is below the bound."
        )
        return Report("Friendship attack", lead, tables, (note,))

    @property
    def unprotected(self) -> str:
        """What the answers give away without Tacit, in a few words."""
        return "one friendship is certain from two exact counts"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success against Tacit, in the order of `epsilons`."""
        return self.edges

    def figures(self) -> tuple[Figure, ...]:
        """Return the success against each count, and the bound."""
        from tacit.explain import friendship_curves

        scaled = "triangles, noise scaled by the data"
        curves = {"edges, Tacit": self.edges, "triangles, Tacit": self.triangles, scaled: self.scaled_by_data}
        return (friendship_curves(curves, scaled),)


def friendship(
    people: SupportsIndex = 200,
    *,
    epsilons: Iterable[Number] = (0.1, 0.5, 1, 2),
    trials: int = 20_000,
) -> FriendshipAttack:
    """Decide from a count of edges or triangles whether two people are friends.

    The attacker knows all other friendships. One friendship changes the number of edges by 1. It changes the
    number of triangles by the number of common friends, at most people - 2 (the global sensitivity). The
    largest number of common friends of any two people in the network (the local sensitivity) depends on the
    friendships themselves, so noise of that size gives them away.

    Parameters
    ----------
    people
        The number of people in the network, from 20 to 1,000.
    epsilons
        The costs at which each count is attacked.
    trials
        The number of trials in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.friendship(epsilons=[1], trials=20_000)
    >>> attack.after[0] - attack.before[0], attack.after[1] - attack.before[1] == attack.common
    (1, True)
    >>> attack.edges[0].within_bound, attack.scaled_by_data[0].within_bound
    (True, False)
    """
    costs, trials = read_epsilons(epsilons), read_trials(trials)
    n = Integer(20, 1000, instead=200).read("people", people)
    network = _network(n)
    first, second, common = _strangers_with_most_common_friends(network)
    joined = network.copy()
    joined[first, second] = joined[second, first] = 1
    before, after = _counts(network), _counts(joined)
    width, wider = _local_sensitivity(network), _local_sensitivity(joined)
    edges, triangles, scaled = [], [], []
    for epsilon in costs:
        worlds = (noisy_counts(np.full(trials, total), epsilon) for total in (after[0], before[0]))
        edges.append(from_trials(epsilon, *(answers >= after[0] for answers in worlds)))
        ladder = LadderNoise(epsilon, most=n - 2)
        worlds = (ladder.release_many(pair, trials) for pair in ((after[1], wider), (before[1], width)))
        triangles.append(from_trials(epsilon, *(2 * answers > before[1] + after[1] for answers in worlds)))
        scaled.append(_scaled_by_data(epsilon, trials))
    return FriendshipAttack(
        people=n,
        before=before,
        after=after,
        common=common,
        local_sensitivity=width,
        edges=tuple(edges),
        triangles=tuple(triangles),
        scaled_by_data=tuple(scaled),
    )


def _strangers_with_most_common_friends(network: _Matrix) -> tuple[int, int, int]:
    """Return two people who are not friends and have the most common friends, and how many these are."""
    shared = network @ network
    shared[network > 0] = -1
    np.fill_diagonal(shared, -1)
    first, second = np.unravel_index(int(np.argmax(shared)), shared.shape)
    return int(first), int(second), int(shared[first, second])


def _local_sensitivity(network: _Matrix) -> int:
    """Return how many triangles one friendship can add or remove: the most common friends of any two people.

    It is private. Only a ladder may use it for noise.
    """
    shared = network @ network
    np.fill_diagonal(shared, 0)
    return int(shared.max())


def _scaled_by_data(epsilon: Fraction, trials: int) -> Success:
    """Attack triangles of ten pairs of friends, with noise whose size is the true local sensitivity.

    In this network the local sensitivity is 0, and one more friendship makes it 1.
    """
    pairs = np.kron(np.eye(10, dtype=np.int64), np.array([[0, 1], [1, 0]]))
    joined = pairs.copy()
    joined[1, 2] = joined[2, 1] = 1  # two pairs become a chain of four
    worlds = []
    for network in (joined, pairs):
        size = _local_sensitivity(network)
        draws = noise.discrete_laplace(size / epsilon, size=trials) if size else np.zeros(trials)
        worlds.append(_counts(network)[1] + draws != 0)
    return from_trials(epsilon, *worlds)


def _network(n: int) -> _Matrix:
    """Generate friendships: three of ten pairs in the same class, and one of a hundred other pairs."""
    school_class = np.arange(n) * _SCHOOL_CLASSES // n
    pair = np.triu_indices(n, 1)
    level = hashed_uniform(np.arange(pair[0].size), stream=100)
    friends = level < np.where(school_class[pair[0]] == school_class[pair[1]], 0.3, 0.01)
    network = np.zeros((n, n), dtype=np.int64)
    network[pair] = friends
    return network + network.T


def _counts(network: _Matrix) -> tuple[int, int]:
    """Return the exact numbers of edges and of triangles."""
    real = network.astype(np.float64)
    return int(network.sum()) // 2, math.floor(float(((real @ real) * real).sum()) / 6 + 0.5)
