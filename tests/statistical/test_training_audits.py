"""Audits of the Trainer: honest training stays below its claim, and six broken trainers are caught."""

import pytest

torch = pytest.importorskip("torch")

import tacit as tc  # noqa: E402
from twins.learn_trainers import BROKEN  # noqa: E402

pytestmark = pytest.mark.long


def _build(epsilon, *, rate, steps, **more):
    def build(model, loss, data):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        return tc.learn.Trainer(
            model, loss, optimizer, data=data, clip=1.0, sampling_rate=rate, steps=steps, epsilon=epsilon,
            delta=1e-5, **more,
        )  # fmt: skip

    return build


@pytest.mark.parametrize(
    ("epsilon", "settings"),
    [
        (1, {"rate": 1, "steps": 10}),
        (4, {"rate": 1, "steps": 1}),
        (4, {"rate": 0.3, "steps": 20}),
        (8, {"rate": 0.5, "steps": 5, "physical_batch": 64}),
    ],
)
def test_honest_training_stays_below_its_claim(epsilon, settings):
    found = tc.audit.audit_training(_build(epsilon, **settings), canaries=2000, confidence=0.999)
    assert found.holds
    assert found.epsilon_lower <= epsilon


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_trainer_is_caught(broken, monkeypatch):
    broken(monkeypatch)
    rate = 0.05 if broken.__name__ == "no_sample" else 1
    found = tc.audit.audit_training(_build(1, rate=rate, steps=20), canaries=2000, confidence=0.99)
    assert found.epsilon_lower > 1.2
    assert not found.holds
