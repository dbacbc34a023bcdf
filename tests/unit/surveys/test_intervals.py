"""Score intervals of a share, before any survey: against Wilson's, and against all possible counts."""

import numpy as np
import pytest
from scipy.stats import binom

from tacit.errors import TacitError
from tacit.surveys._estimates import ShareVariance, normal_quantile, read_covers, score_interval, variance_of


def test_the_population_interval_is_wilsons_mapped():
    p, q, n, hits, z = 0.6, 0.2, 400, 150, normal_quantile(0.9)
    rate = hits / n
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    low, high = score_interval((rate - q) / (p - q), variance_of(p, q, n, covers="population"), 0.9)
    assert (low, high) == pytest.approx(((centre - half - q) / (p - q), (centre + half - q) / (p - q)))


def test_the_respondents_interval_solves_its_quadratic():
    variance = variance_of(0.6, 0.2, 400, covers="respondents")
    for end in score_interval(0.31, variance, 0.95):
        assert (0.31 - end) ** 2 == pytest.approx(normal_quantile(0.95) ** 2 * variance.at(end))


def test_sampling_adds_its_own_variance_exactly():
    share, n = 0.2, 50
    of = [variance_of(0.7, 0.1, n, covers=covers).at(share) for covers in ("population", "respondents")]
    assert of[0] - of[1] == pytest.approx(share * (1 - share) / n)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_yes_or_no_is_covered_as_often_as_stated(share, epsilon):
    """Every possible number of yes reports, with its probability: no simulation."""
    n, e = 1000, np.exp(epsilon)
    p, q = e / (e + 1), 1 / (e + 1)
    counts = np.arange(n + 1)
    estimate = (counts / n - q) / (p - q)
    weights = binom.pmf(counts, n, q + share * (p - q))
    low, high = score_interval(estimate, variance_of(p, q, n, covers="population"), 0.95)
    assert 0.94 <= weights[(low <= share) & (share <= high)].sum() <= 0.96
    # given these respondents: n share people with the answer, the others without
    held = round(n * share)
    weights = np.convolve(
        binom.pmf(np.arange(held + 1), held, p), binom.pmf(np.arange(n - held + 1), n - held, q)
    )
    low, high = score_interval(estimate, variance_of(p, q, n, covers="respondents"), 0.95)
    assert 0.94 <= weights[(low <= held / n) & (held / n <= high)].sum() <= 0.96


def test_the_respondents_interval_is_too_short_for_a_population():
    n, share, e = 2000, 0.02, np.exp(4)
    p, q = e / (e + 1), 1 / (e + 1)
    counts = np.arange(n + 1)
    weights = binom.pmf(counts, n, q + share * (p - q))
    low, high = score_interval((counts / n - q) / (p - q), variance_of(p, q, n, covers="respondents"), 0.95)
    assert weights[(low <= share) & (share <= high)].sum() < 0.9


def test_an_impossible_estimate_still_has_an_interval():
    low, high = score_interval(-40.0, ShareVariance(0.01, 0.02, 0.0), 0.95)
    assert low < -40 < high < 0


def test_words_and_levels_are_checked():
    with pytest.raises(TacitError, match="confidence must be a number above 0 and below 1"):
        normal_quantile(95)
    with pytest.raises(TacitError, match='of must be "population" or "respondents"'):
        read_covers("people")
    assert read_covers("respondents") == "respondents"
