"""Under Tacit no attack of the lab exceeds its bound. Each claim is wrong with probability at most 1e-9."""

import math

import numpy as np
import pytest

from tacit.audit import lab
from tacit.audit.lab import _answers, _friendship, _genomes, _heat_map, _k_anonymity, _updates, _worlds

EPSILONS = (0.1, 0.5, 1, 2, 4)
STRICT = 1 - 1e-9
MODULES = (
    _answers, _genomes, _answers, _friendship, _heat_map, _k_anonymity, _k_anonymity, _answers,
    _answers, _genomes,
)  # fmt: skip


@pytest.fixture
def strict(monkeypatch):
    """Read every interval at confidence 1 - 1e-9."""
    homes = {"from_trials": _worlds, "from_means": _worlds, "measure_power": _worlds}
    for module in (*MODULES, _genomes, _updates):
        for name, home in homes.items():
            if hasattr(module, name):
                original = getattr(home, name)
                monkeypatch.setattr(
                    module,
                    name,
                    lambda *given, original=original, **named: original(*given, confidence=STRICT, **named),
                )


@pytest.fixture
def half_the_noise(monkeypatch):
    """The broken twin: a release that charges epsilon but adds the noise of twice that epsilon."""
    for module in MODULES:
        original = _worlds.noisy_counts
        monkeypatch.setattr(
            module, "noisy_counts", lambda counts, epsilon, original=original: original(counts, 2 * epsilon)
        )


ATTACKS = {
    "homogeneity": lambda: lab.homogeneity_attack(epsilons=EPSILONS, trials=50_000).curve,
    "linking": lambda: lab.linking_attack(epsilons=EPSILONS, trials=50_000).curve,
    "differencing": lambda: lab.differencing_attack(epsilons=EPSILONS, trials=50_000).curve,
    "reconstruction": lambda: lab.reconstruction_attack(200, epsilons=EPSILONS, trials=2000).curve,
    "averaging, fresh": lambda: lab.averaging_attack(0.5, repeats=(1, 2, 4, 8), trials=50_000).redrawn,
    "averaging, stored": lambda: lab.averaging_attack(0.5, repeats=(1, 100), trials=50_000).stored,
    "membership": lambda: lab.membership_attack(epsilons=EPSILONS, trials=50_000).curve,
    "beacon": lambda: lab.beacon(questions=[10], epsilons=EPSILONS, trials=20_000).curve,
    "singling out": lambda: lab.singling_out([100], epsilons=EPSILONS, trials=50_000).curve,
    "heat map": lambda: lab.heat_map(5, rounds=1, epsilons=EPSILONS, trials=50_000).curve,
    "friendship, edges": lambda: lab.friendship(epsilons=EPSILONS, trials=50_000).edges,
    "friendship, triangles": lambda: lab.friendship(30, epsilons=EPSILONS, trials=50_000).triangles,
    "genome, add/remove": lambda: _genome("add/remove", snps=40),
    "genome, replace": lambda: _genome("replace", snps=40),
    "genome, add/remove, 200 SNPs": lambda: _genome("add/remove", snps=200),
    "genome, replace, 200 SNPs": lambda: _genome("replace", snps=200),
    "update inversion": lambda: lab.update_inversion([2], hidden=8, **UPDATES).points,
    "update membership": lambda: lab.update_membership([8], hidden=8, **UPDATES).points,
}
UPDATES = {"epsilons": EPSILONS, "runs": 1, "trials": 20_000}


#: The shift of an insider's score depends on the noise and not on the number of SNPs, but the time does. So
#: few SNPs in as many trials keep the power: see the broken twins.
SNPS = [40, pytest.param(200, marks=pytest.mark.long)]


def _genome(adjacency, snps):
    attack = lab.genome_membership(100, snps=[snps], adjacency=adjacency, epsilons=EPSILONS, trials=50_000)
    return (*attack.curve, *attack.homer, *attack.insider)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(a, marks=[pytest.mark.long] * name.endswith("200 SNPs"), id=name)
        for name, a in ATTACKS.items()
    ],
)
def test_no_attack_exceeds_its_bound(attack, strict):
    for point in attack():
        assert point.within_bound, point
        assert point.confidence == STRICT


@pytest.mark.parametrize(
    "name",
    ["homogeneity", "averaging, stored", "membership", "singling out", "heat map", "friendship, edges"],
)
def test_half_the_noise_is_caught(name, strict, half_the_noise):
    assert not all(point.within_bound for point in ATTACKS[name]())


@pytest.mark.parametrize("snps", SNPS)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_half_the_noise_on_allele_sums_is_caught(adjacency, snps, strict, monkeypatch):
    """The broken twin releases sums with half of the sigma that its cost states.

    Power: at epsilon 4 or 2, an insider exceeds the bound by 50 and more standard deviations beyond the
    interval at 1 - 1e-9, with 40 SNPs and with 200.
    """
    from tacit.mechanisms import DiscreteGaussian

    original = _genomes._Worlds._some

    def weak(self, noise, target, *, member):
        half = DiscreteGaussian(sigma=noise.sigma / 2, sensitivity_squared=int(noise.sensitivity_squared))
        return original(self, half, target, member=member)

    monkeypatch.setattr(_genomes._Worlds, "_some", weak)
    assert not all(point.within_bound for point in _genome(adjacency, snps))


@pytest.mark.parametrize("name", ["update inversion", "update membership"])
def test_half_the_noise_on_updates_is_caught(name, strict, monkeypatch):
    """The broken twin releases sums of gradients with half of the sigma that its cost states."""
    from tacit.mechanisms import DiscreteGaussian

    original = DiscreteGaussian.release

    def weak(self, value):
        half = DiscreteGaussian(sigma=self.sigma / 2, sensitivity_squared=int(self.sensitivity_squared))
        return original(half, value)

    monkeypatch.setattr(DiscreteGaussian, "release", weak)
    assert not all(point.within_bound for point in ATTACKS[name]())


@pytest.mark.parametrize("epsilon", [1, 8])
def test_the_area_of_an_insider_meets_its_bound_and_the_simple_test_stays_below(epsilon):
    """One area of 20,000 scores in each world has a standard error below 0.003; seven of them are 0.02."""
    attack = lab.update_membership([8], hidden=8, epsilons=[epsilon], runs=60, trials=20_000)
    insider = attack.insiders[0]
    assert insider.area == pytest.approx(insider.bound, abs=0.02)
    assert attack.private[float(epsilon)][8] < insider.bound + 0.04


@pytest.mark.parametrize("snps", SNPS)
def test_the_bound_of_adding_a_person_is_exceeded_when_a_person_is_replaced(snps, strict, monkeypatch):
    """The number of people is public, but the bound is that of a private number: too small.

    Power: 22 standard deviations beyond the interval at 1 - 1e-9 with 40 SNPs, 23 with 200.
    """
    original = _genomes.Cost.gaussian

    def claimed(*, sigma, sensitivity):
        return original(sigma=sigma, sensitivity=sensitivity / 2)

    monkeypatch.setattr(_genomes.Cost, "gaussian", claimed)
    assert not all(point.within_bound for point in _genome("replace", snps))


def test_noise_scaled_by_the_data_exceeds_the_bound(strict):
    for point in lab.friendship(epsilons=(0.1, 0.5, 1), trials=50_000).scaled_by_data:
        assert not point.within_bound, point


def test_the_bound_is_that_of_a_pure_cost():
    for point in lab.membership_attack(epsilons=EPSILONS, trials=100).curve:
        assert point.bound == pytest.approx(math.tanh(point.epsilon / 2), rel=1e-9)
        assert point.bound >= math.tanh(point.epsilon / 2) * (1 - 1e-15)


def test_the_best_membership_attack_meets_the_bound(strict):
    for point in lab.membership_attack(epsilons=EPSILONS, trials=200_000).curve:
        assert point.low <= point.bound <= point.high


def test_the_interval_of_means_covers():
    """Empirical Bernstein at 90 %: over 400 repetitions with a known mean, misses stay far below a tenth."""
    misses = 0
    shares = (lab.hashed_uniform(np.arange(400 * 200), stream=40) < 0.7).reshape(400, 200).astype(float)
    for row in shares:
        point = _worlds.from_means(1, row, confidence=0.9)
        misses += not point.low <= 2 * 0.7 - 1 <= point.high
    assert misses <= 40


def test_the_interval_of_trials_covers():
    misses = 0
    for trial in range(400):
        yes = lab.hashed_uniform(np.arange(300) + 1000 * trial, stream=41) < 0.6
        no = lab.hashed_uniform(np.arange(300) + 1000 * trial, stream=42) < 0.3
        point = _worlds.from_trials(1, yes, no, confidence=0.9)
        misses += not point.low <= 0.3 <= point.high
    assert misses <= 40
