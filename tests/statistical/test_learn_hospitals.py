"""Rounds of hospitals under attack: what an adversary who knows all but one patient can tell apart.

Each test draws rounds with and without the patient, and takes 99.9999 % intervals for the two frequencies of
an event. A round that leaks no more than it costs fails with a probability below 1e-5.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from support import hospitals as h
from tacit import noise
from tacit.learn.federated import Coordinator, Softmax, in_process, unpack
from tacit.learn.federated._gradients import CLIP_STEPS

pytestmark = pytest.mark.long
LEVEL = 1e-6
ROUNDS = 3000


def lower_epsilon(with_patient, without, delta):
    """Return a lower bound for epsilon, from how often an event came about in equally many rounds."""
    n = len(with_patient)
    best = 0.0
    for one, other in ((with_patient, without), (without, with_patient)):
        hits, misses = int(np.sum(one)), int(np.sum(other))
        low = beta.ppf(LEVEL, hits, n - hits + 1) if hits else 0.0
        high = beta.ppf(1 - LEVEL, misses + 1, n - misses) if misses < n else 1.0
        if low > delta:
            best = max(best, math.log((low - delta) / high))
    return best


def along(sums, patient, agreed):
    """Project a sum on the gradient of the patient, in clips."""
    X, y = patient
    direction = agreed.model.gradients(agreed.model.start(), X, y)[0]
    return float(sums @ direction / np.linalg.norm(direction)) / CLIP_STEPS


def own_rounds(agreed, data, patient):
    hospital = h.small_hospital("h0", agreed, data=data)
    return [
        along(unpack(hospital.handle(h.weights_of(agreed, t))).arrays["sum"].astype(float), patient, agreed)
        for t in range(1, ROUNDS + 1)
    ]


def shared_rounds(agreed, keys, data, patient):
    """The coordinator and h3 collude: they read the sum of the other three hospitals."""
    hospitals = h.all_hospitals(agreed, {n: k for n, k in keys.items() if n != "h0"})
    hospitals = {"h0": h.small_hospital("h0", agreed, keys["h0"], data=data), **hospitals}
    found = []
    for t in range(1, ROUNDS // 4 + 1):
        members = list(h.ready(agreed, hospitals, t).values())
        known = hospitals["h3"]._open[t].share
        total = sum(h.masked(agreed, one, t, members) for one in hospitals.values()).astype(np.int64)
        found.append(along((total - known).astype(float), patient, agreed))
    return found


def attacked(draw, agreed, cost):
    """Attack rounds with and without one patient; return the lower bound and the stated epsilon."""
    rng = np.random.default_rng(3)
    X, y = np.zeros((3, 3)), np.zeros(3)
    patient = (np.array([[5.0, -5.0, 5.0]]), np.array([1]))
    together = (np.concatenate([X, patient[0]]), np.concatenate([y, patient[1]]))
    seen, unseen = np.array(draw(together, patient)), np.array(draw((X, y), patient))
    half = len(seen) // 2
    order = rng.permutation(half)  # the threshold is chosen on one half and judged on the other
    levels = np.quantile(np.concatenate([seen[:half][order], unseen[:half]]), np.linspace(0.02, 0.98, 49))
    delta, best = 1e-3, None
    for level in levels:
        bound = lower_epsilon(seen[:half] > level, unseen[:half] > level, delta)
        best = max(best or (-1.0, level), (bound, level))
    found = lower_epsilon(seen[half:] > best[1], unseen[half:] > best[1], delta)
    return found, float(cost.epsilon(delta=delta))


@pytest.mark.parametrize(("sigma", "rate"), [(0.5, 1), (1, 1), (0.5, 0.3)])
def test_a_round_with_own_noise_leaks_no_more_than_it_costs(sigma, rate):
    agreed, _ = h.small_study("own", hospitals=1, rounds=ROUNDS, sigma=sigma, rate=rate)
    found, stated = attacked(
        lambda data, who: own_rounds(agreed, data, who), agreed, agreed.mechanism("h0").cost
    )
    assert found <= stated
    assert found > 0.1  # the attack is worth something


def test_a_round_with_shared_noise_leaks_no_more_than_it_costs():
    agreed, keys = h.small_study("shared", hospitals=4, rounds=ROUNDS // 4, sigma=0.5)
    cost = agreed.mechanism("h0").cost
    found, stated = attacked(lambda data, who: shared_rounds(agreed, keys, data, who), agreed, cost)
    assert found <= stated
    assert found > 0.1


def test_a_hospital_that_draws_too_little_noise_is_caught(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr("tacit.noise.rounded_gaussian", lambda sigma, shape: honest(sigma / 8, shape))
    agreed, _ = h.small_study("own", hospitals=1, rounds=ROUNDS, sigma=1)
    found, stated = attacked(
        lambda data, who: own_rounds(agreed, data, who), agreed, agreed.mechanism("h0").cost
    )
    assert found > stated


def test_a_hospital_that_does_not_clip_is_caught(monkeypatch):
    def unclipped(gradients, clip):
        return (np.asarray(gradients) / clip * CLIP_STEPS).astype(np.int64)

    monkeypatch.setattr("tacit.learn.federated._hospital.clip_whole", unclipped)
    agreed, _ = h.small_study("own", hospitals=1, rounds=ROUNDS, sigma=1)
    found, stated = attacked(
        lambda data, who: own_rounds(agreed, data, who), agreed, agreed.mechanism("h0").cost
    )
    assert found > stated


def test_two_lists_in_one_round_would_unmask_a_hospital():
    """The broken copy: a hospital that masks its sum for a second, shorter list."""
    agreed, keys = h.small_study("shared", hospitals=4, dropouts=1, sigma=0.5)
    hospitals = h.all_hospitals(agreed, keys)
    found = h.ready(agreed, hospitals, 1)
    shares = {name: one._open[1].share.copy() for name, one in hospitals.items()}
    first = sum(h.masked(agreed, one, 1, list(found.values())) for one in hospitals.values())
    for name, one in hospitals.items():
        one._open[1].share = shares[name]  # forget that it was masked
    some = [found[name] for name in ("h0", "h1", "h2")]
    second = sum(h.masked(agreed, hospitals[name], 1, some) for name in ("h0", "h1", "h2"))
    np.testing.assert_array_equal((first - second).astype(np.int64), shares["h3"])


def test_ten_hospitals_with_shared_noise_come_close_to_central_training():
    """Digits at epsilon 1: about .90, with a standard deviation of about .015 over runs and splits."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = 1.5 * (X[order] / 16 - 0.3), y[order]
    agreed, keys = h.small_study(
        "shared", hospitals=10, rounds=60, size=134, sigma=None, epsilon=1, dropouts=3, model=Softmax(64, 10)
    )
    parts = dict(zip(keys, np.split(np.arange(1340), 10), strict=True))
    hospitals = {
        name: h.small_hospital(name, agreed, key, data=(X[parts[name]], y[parts[name]]))
        for name, key in keys.items()
    }
    release = Coordinator(agreed, in_process(hospitals)).train()
    assert np.mean(release.predict(X[1340:]) == y[1340:]) > 0.8
