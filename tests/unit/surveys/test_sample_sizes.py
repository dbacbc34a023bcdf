"""How many respondents, and one question or all: the reference figures."""

import math

import pytest

from tacit.errors import TacitError
from tacit.surveys._sample_sizes import choose_strategy, respondents_needed, share_half_width, worst_share


def coin(epsilon):
    e = math.exp(epsilon)
    return e / (e + 1), 1 / (e + 1)


@pytest.mark.parametrize(
    ("epsilon", "people"), [(0.5, 17_789), (1, 4_997), (math.log(3), 4_269), (2, 1_840), (4, 1_149)]
)
def test_three_points_need_so_many_people(epsilon, people):
    assert respondents_needed(*coin(epsilon), half_width=0.03) == people
    assert share_half_width(*coin(epsilon), people) <= 0.03 < share_half_width(*coin(epsilon), people - 1)


def test_an_expected_share_needs_fewer_people():
    assert respondents_needed(*coin(4), half_width=0.03, share=0.05) < 500


def test_the_hardest_share_lies_between_none_and_all():
    assert worst_share(0.5, 0.27) == 1.0
    assert worst_share(0.9, 0.6) == 0.0


@pytest.mark.parametrize(("m", "epsilon"), [(2, 3.06), (3, 3.71), (5, 4.71), (10, 6.53)])
def test_splitting_wins_only_for_a_large_epsilon(m, epsilon):
    def chosen(eps):
        def variance(e):
            return math.exp(e) / (math.exp(e) - 1) ** 2 + 1 / 4

        return choose_strategy([m * variance(eps)] * m, [variance(eps / m)] * m)

    assert (chosen(epsilon - 0.01).name, chosen(epsilon + 0.01).name) == ("one", "split")
    assert "times as wide" in chosen(1).why


def test_a_half_width_of_nothing_is_refused():
    with pytest.raises(TacitError, match="half_width must be a positive number"):
        respondents_needed(0.75, 0.25, half_width=0)
