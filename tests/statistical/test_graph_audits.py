"""The mechanisms of graphs under attack: none exceeds its promise, and their broken twins are caught."""

import pytest

import tacit as tc
from tacit.accounting import Cost
from tacit.audit import audit
from twins import graphs

m = tc.mechanisms
ONE = Cost.pure(1)

#: Two nodes with 9 common neighbours, without and with the edge between them: no triangle, and 9.
PAIR = [(hub, leaf) for hub in (0, 1) for leaf in range(2, 11)]
#: Two edges, and the path that one more edge makes of them.
EDGES = [(0, 1), (2, 3)]


LADDERS = {
    "ladder": m.LadderNoise(1, floor=10),
    "ladder, widths at most 12": m.LadderNoise(1, floor=3, most=12),
    "ladder, one width": m.LadderNoise(1, floor=12, most=12),
    "ladder of stars of two edges": m.StarLadder(1, stars=2, floor=10),
    "ladder of stars": m.StarLadder(1, stars=3, floor=15),
    "ladder of stars of four edges": m.StarLadder(1, stars=4, floor=20),
}


@pytest.mark.parametrize("name", LADDERS)
def test_an_attack_on_the_ladder_proves_most_of_epsilon_and_no_more(name):
    found = audit(LADDERS[name], samples=200_000)
    assert found.holds, found
    assert found.epsilon_lower >= 0.8, found


@pytest.mark.long
@pytest.mark.parametrize("name", LADDERS)
def test_a_long_attack_on_the_ladder_exceeds_no_promise(name):
    ladder = LADDERS[name]
    (f, a), (g, b) = ladder.worst_pair
    for pair in (((f, a), (g, b)), ((g, b), (f, a)), ((f, a), (1, b)), ((f, a), (f, b)), ((f, b), (g, b))):
        found = audit(ladder, *pair, samples=300_000)
        assert found.holds, found


#: A twin, two neighbours, what the twin should have done to each of them, and how many samples to draw.
TWINS = {
    "floor from the data": (
        graphs.floor_from_the_data,
        (0, 16),
        (16, 17),
        m.LadderNoise(1, floor=16).release_many,
        40_000,
    ),
    "adjacent pairs only": (
        graphs.adjacent_pairs_only,
        PAIR,
        [*PAIR, (0, 1)],
        lambda edges, size: m.LadderNoise(1, floor=5).release_many(graphs.triangles(edges), size),
        100_000,
    ),
    "degrees with the edge": (
        graphs.degrees_with_the_edge,
        EDGES,
        [*EDGES, (1, 2)],
        lambda edges, size: m.LadderNoise(1, floor=2).release_many(graphs.wedges(edges), size),
        400_000,
    ),
    "scale of the local sensitivity": (
        graphs.scale_of_the_local_sensitivity,
        (0, 1),
        (1, 2),
        m.LadderNoise(1, floor=1).release_many,
        40_000,
    ),
    "scale of the largest degree": (
        graphs.stars_by_the_largest_degree,
        (0, 2),
        (2, 3),
        m.StarLadder(1, stars=3, floor=2).release_many,
        40_000,
    ),
    "stars of one end": (
        graphs.stars_of_one_end,
        (0, 15),
        (210, 16),
        m.StarLadder(1, stars=3, floor=15).release_many,
        40_000,
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_broken_twin_of_the_ladder_is_caught(name):
    twin, a, b, correct, samples = TWINS[name]
    found = audit(twin, a, b, samples=samples, claimed=ONE)
    assert found.holds is False, found
    assert audit(correct, a, b, samples=samples, claimed=ONE).holds
