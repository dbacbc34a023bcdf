"""Training with correlated noise: the same sums and samples, and noise that is taken back later."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from tacit.learn import Trainer  # noqa: E402
from tacit.learn.training import _mechanisms  # noqa: E402
from tacit.learn.training._mechanisms import CorrelatedSteps, TrainingSteps  # noqa: E402


def made(*, model=None, n=50, size=50, **given):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    data = tc.learn.examples(
        X, (X[:, 0] > 0).astype(int), unit=tc.Unit.row(), size=size,
        budget=tc.Budget(epsilon=1000, delta=1e-2), ledger=given.pop("ledger", None),
    )  # fmt: skip
    torch.manual_seed(0)
    model = model or torch.nn.Linear(3, 2)
    settings = {"batch": 5, "steps": 20, "noise": 1, "delta": 1e-3, "noise_kind": "correlated", "bands": 4}
    optimizer = torch.optim.SGD(model.parameters(), lr=given.pop("lr", 0.1))
    return Trainer(model, torch.nn.CrossEntropyLoss(), optimizer, data=data, **settings | given)


def test_a_release_says_how_the_noise_is_correlated_and_that_numerics_are_idealised():
    release = made().plan().release()
    [law] = release.certificate.fields["mechanisms"]
    assert (law["mechanism"], law["numerics"], law["groups"]) == ("correlated-steps", "idealised", 4)
    assert len(law["coefficients"]) == 4
    assert release.about["taken"] == 20


def test_the_cost_is_that_of_fewer_and_larger_samples():
    cost = made().plan().cost
    assert cost.epsilon(delta=1e-3) == pytest.approx(
        (5 * tc.Cost.gaussian(sigma=1, sensitivity=1).sampled(0.4)).epsilon(delta=1e-3), rel=1e-6
    )
    assert 2.99 < made(noise=None, epsilon=3).plan().cost.epsilon(delta=1e-3) <= 3


def test_the_sum_of_all_steps_has_the_predicted_error():
    """Without anybody in the data, the weights move by the sum of all noise."""
    wide = torch.nn.Linear(300, 50, bias=False)
    data = tc.learn.examples(
        np.zeros((1, 300), np.float32), np.zeros(1, int), unit=tc.Unit.row(), size=100,
        budget=tc.Budget(epsilon=1000, delta=1e-2),
    )  # fmt: skip
    moved = {}
    for kind in ("independent", "correlated"):
        trainer = Trainer(
            wide, torch.nn.CrossEntropyLoss(), torch.optim.SGD(wide.parameters(), lr=1), data=data, batch=1,
            steps=64, noise=1, delta=1e-3, noise_kind=kind, bands=16 if kind == "correlated" else None,
        )  # fmt: skip
        release = trainer.plan().release()
        moved[kind] = float((release.weights["weight"] - wide.weight.detach().numpy()).std())
    mechanism = trainer.settings.correlated()
    c = np.array(mechanism.coefficients, float)
    inverse = np.zeros(64)
    for t in range(64):
        inverse[t] = ((t == 0) - sum(c[j] * inverse[t - j] for j in range(1, min(t, 15) + 1))) / c[0]
    last = np.linalg.norm(np.cumsum(inverse)) * float(mechanism.sigma)
    assert moved["independent"] == pytest.approx(8, rel=0.05)  # 15,000 numbers: 8 standard errors
    assert moved["correlated"] == pytest.approx(last, rel=0.05)
    assert moved["correlated"] < 0.6 * moved["independent"]


def test_a_unit_is_only_in_the_samples_of_its_group(monkeypatch):
    seen = []
    from tacit.learn.training._optimizer_steps import ModelSums

    sums = ModelSums.sums
    monkeypatch.setattr(ModelSums, "sums", lambda self, sample: seen.append(sample) or sums(self, sample))
    made(batch=12, steps=16, bands=4).plan().release()
    groups = [set(np.concatenate(seen[phase::4])) for phase in range(4)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert len(seen) == 16


def test_a_resumed_training_keeps_its_past_noise_secret_and_goes_on(monkeypatch, tmp_path):
    """With the same sample and fresh noise, stopping in between changes no bit."""
    monkeypatch.setattr("tacit.mechanisms.training._banded_steps.BandedRun.sample", lambda self: (
        setattr(self, "group_of", self.group_of) or np.arange(self.taken % 3, 50, 3)
    ))  # fmt: skip
    monkeypatch.setattr(_mechanisms, "training_noise", lambda n: np.linspace(-1, 2, n, dtype=np.float32))
    whole = made(steps=12).plan().release()
    run = made(steps=12, checkpoints=3, ledger=tmp_path / "ledger.db").plan().run()
    parts = [run.next() for _ in range(3)]
    assert [one.about["taken"] for one in parts] == [4, 8, 12]
    for name in whole.weights:
        assert np.array_equal(whole.weights[name], parts[-1].weights[name])
    assert "past" not in str(parts[-1].to_json())
    assert run.plan.cost == made(steps=12).plan().cost


def test_a_failed_instalment_gives_no_second_draw_of_its_steps(monkeypatch):
    """An analyst can choose settings with which steps fail, and see it: one charge, one draw of each step."""
    from tacit.mechanisms import BandedRun

    seen = []
    sample = BandedRun.sample
    monkeypatch.setattr(BandedRun, "sample", lambda self: seen.append(self.taken) or sample(self))
    run = made(steps=12, checkpoints=6).plan().run()
    run.next()
    with monkeypatch.context() as broken:
        broken.setattr("tacit.learn.training._optimizer_steps.ModelSums.update", lambda self, noisy: 1 / 0)
        for _ in range(4):
            with pytest.raises(tc.TacitError, match="failed"):
                run.next()
    assert run.next().about["taken"] == 4
    assert seen == [0, 1, 2, 4, 6, 8, 10, 11]


def test_patients_who_arrive_between_checkpoints_move_nobody_to_another_group(monkeypatch, tmp_path):
    from tacit.mechanisms import BandedRun

    seen = []
    sample = BandedRun.sample
    monkeypatch.setattr(BandedRun, "sample", lambda self: seen.append(self.group_of) or sample(self))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(51, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    names = [f"{i:02}" for i in range(51)]
    for first in (1, 0):  # the patient with the first name comes later
        data = tc.learn.examples(
            torch.as_tensor(X[first:]), y[first:], unit="patient", owners=names[first:], size=50,
            budget=tc.Budget(epsilon=1000, delta=1e-2), ledger=tmp_path / "ledger.db",
        )  # fmt: skip
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        trainer = Trainer(
            model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1), data=data,
            batch=5, steps=4, noise=1, delta=1e-3, noise_kind="correlated", bands=4, checkpoints=2,
        )  # fmt: skip
        trainer.plan().run().next()
        data._ledger.close()
    assert seen[-1][1:].tolist() == seen[0].tolist()


def test_auto_correlates_where_that_predicts_less_error():
    few = made(n=50, size=5000, batch=10, steps=None, epochs=1, noise=None, epsilon=8, noise_kind="auto",
               bands=None, delta=1e-5)  # fmt: skip
    many = made(n=50, size=200, batch=50, steps=None, epochs=64, noise=None, epsilon=1, noise_kind="auto",
                bands=None, delta=1e-5)  # fmt: skip
    assert few.settings.bands > 8
    assert many.settings.bands == 1
    assert "correlated" in repr(few.plan())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"noise_kind": "pink"}, "independent, correlated, auto"),
        ({"noise_kind": "independent"}, "omitted with independent noise"),
        ({"batch": 20, "bands": 3}, "bands must be 1 or 2"),
    ],
)
def test_noise_that_does_not_fit_is_refused(given, words):
    with pytest.raises(tc.TacitError, match=words):
        made(**given).plan()


def test_noise_is_drawn_once_for_each_step(monkeypatch):
    drawn = []
    noise = _mechanisms.training_noise
    monkeypatch.setattr(_mechanisms, "training_noise", lambda n: drawn.append(n) or noise(n))
    made(physical_batch=1).plan().release()
    assert drawn == [8] * 20
    for draws in (TrainingSteps.noisy, CorrelatedSteps._take):
        assert "add_noise" in draws.__code__.co_names
