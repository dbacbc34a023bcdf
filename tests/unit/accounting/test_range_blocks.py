"""Repeated bounded-range losses: never below what an adaptive adversary reaches, and close to it."""

import math

import numpy as np
import pytest

from tacit.accounting import Cost


def one(x, epsilon):
    """Return the largest delta of one loss of range epsilon at the threshold x (proofs, section 6)."""
    x = np.asarray(x, dtype=float)
    inside = np.expm1((np.clip(x, -epsilon, epsilon) - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
    return np.where(x <= -epsilon, -np.expm1(np.minimum(x, 0)), np.where(x >= epsilon, 0.0, inside))


def adversary(losses, epsilon, x, tries=401):
    """Return the delta that a rule reaches which picks the best t in each step, after earlier answers."""
    if losses == 1:
        return one(x, epsilon)
    x = np.atleast_1d(np.asarray(x, dtype=float))
    t = np.linspace(0, epsilon, tries)
    high = np.expm1(epsilon - t) * np.exp(t) / math.expm1(epsilon)  # P(loss = t); else t - epsilon
    at = x[:, None] - t
    flat = adversary(losses - 1, epsilon, np.concatenate([at.ravel(), at.ravel() + epsilon]), tries)
    up, down = flat.reshape(2, *at.shape)
    return (high * up + (1 - high) * down).max(axis=1)


def fixed_rule(epsilon, times, at):
    """Return the best delta without adaptivity (Dong, Durfee and Rogers 2020)."""
    best, number = 0.0, np.arange(times + 1)
    logs = [math.lgamma(times + 1) - math.lgamma(i + 1) - math.lgamma(times - i + 1) for i in number]
    for step in range(times + 1):
        t = min(max((at + (step + 1) * epsilon) / (times + 1), 1e-12), epsilon * (1 - 1e-12))
        p = math.expm1(epsilon - t) * math.exp(t) / math.expm1(epsilon)
        masses = np.exp(np.array(logs) + (times - number) * math.log(p) + number * math.log1p(-p))
        best = max(best, float(masses @ np.maximum(0.0, -np.expm1(at - times * t + number * epsilon))))
    return best


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 3.0])
@pytest.mark.parametrize(("losses", "tries"), [(2, 4001), (3, 201)])
def test_no_adaptive_rule_beats_the_reading_and_some_rule_nearly_reaches_it(epsilon, losses, tries):
    cost = losses * Cost.exponential(epsilon)
    at = epsilon * np.array([0.0, 0.5, 1.0, 1.5])
    reached = adversary(losses, epsilon, at, tries)
    for e, low in zip(at, reached, strict=True):
        read = cost.delta(epsilon=float(e))
        assert read >= low * (1 - 1e-9)
        assert read <= low * 1.02 + 1e-9


def test_a_hundred_selections_cost_what_the_optimum_says():
    cost = 100 * Cost.exponential(0.1)
    epsilon = cost.epsilon(delta=1e-6)
    assert fixed_rule(0.1, 100, epsilon) <= 1e-6  # an upper value
    assert fixed_rule(0.1, 100, epsilon * 0.996) > 1e-6  # within 0.4 % of the best rule without adaptivity
    assert epsilon < 2.2535


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.5, 30), (0.01, 1000), (0.05, 400), (1.0, 100), (0.01, 10_000)]
)
def test_long_sums_stay_between_the_best_fixed_rule_and_zcdp(epsilon, times):
    read = (times * Cost.exponential(epsilon)).epsilon(delta=1e-6)
    assert read <= Cost.zcdp(times * epsilon**2 / 8).epsilon(delta=1e-6)
    if times <= 1000:
        assert fixed_rule(epsilon, times, read) <= 1e-6
        assert fixed_rule(epsilon, times, read * 0.985) > 1e-6


def test_other_losses_may_be_seen_before_every_choice():
    coin, epsilon = 0.4, 0.3
    cost = 2 * Cost.exponential(epsilon) + Cost.randomized_response(coin)
    truth = 1 / (1 + math.exp(-coin))
    for e in (0.0, 0.2, 0.5, 0.8):
        heads, tails = adversary(2, epsilon, [e - coin, e + coin], 4001)
        reached = truth * heads + (1 - truth) * tails
        assert reached * (1 - 1e-9) <= cost.delta(epsilon=e) <= reached * 1.03 + 1e-9


def test_a_sample_of_selections_reads_the_blocks():
    whole = (50 * Cost.exponential(0.1)).sampled(0.1)
    for e in (0.05, 0.2):
        inner = math.log1p(math.expm1(e) / 0.1)
        best = 0.1 * fixed_rule(0.1, 50, inner)
        assert best <= whole.delta(epsilon=e) <= best * 1.1
