"""PyTorch models that hospitals train together."""

import numpy as np
import pytest

import tacit as tc
from support import hospitals as h
from tacit.errors import TacitError
from tacit.learn.federated import Coordinator, Study, TorchGradients, in_process, unpack

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def net(*more, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), *more, torch.nn.Tanh(), torch.nn.Linear(5, 2))


def gradients_of(model):
    return TorchGradients(model, torch.nn.functional.cross_entropy, shape=(3,))


def test_gradients_are_those_of_autograd():
    model = net()
    made = gradients_of(model)
    X, y = h.patients(6)
    found = made.gradients(made.start(), X, y)
    for i in range(6):
        model.zero_grad()
        inputs = torch.tensor(X[i : i + 1], dtype=torch.float32)
        torch.nn.functional.cross_entropy(model(inputs), torch.tensor(y[i : i + 1])).backward()
        expected = np.concatenate([one.grad.reshape(-1).numpy() for one in model.parameters()])
        np.testing.assert_allclose(found[i], expected, atol=1e-6)


def test_hospitals_train_a_network_together():
    made = gradients_of(net())
    agreed, keys = h.small_study("shared", size=100, rounds=30, sigma=0.01, delta=1e-6, model=made)
    data = {name: h.patients(100, seed=i) for i, name in enumerate(keys)}
    budget = tc.Budget(epsilon=10**8, delta=1e-3)
    hospitals = {n: h.small_hospital(n, agreed, k, data=data[n], budget=budget) for n, k in keys.items()}
    release = Coordinator(agreed, in_process(hospitals)).train()
    X, y = h.patients(500, seed=9)
    assert np.mean(release.predict(X) == y) > 0.85


def test_the_study_names_architecture_and_first_weights():
    one, same, other = gradients_of(net()), gradients_of(net()), gradients_of(net(seed=1))
    assert one.document() == same.document() != other.document()
    agreed, _ = h.small_study("own", hospitals=1, model=one)
    assert Study.from_json(agreed.document(), model=same).digest == agreed.digest
    for model in (None, other):
        with pytest.raises(TacitError) as error:
            Study.from_json(agreed.document(), model=model)
        assert error.value.code == "study-differs"


def test_a_network_with_batch_normalisation_is_refused():
    agreed, _ = h.small_study("own", hospitals=1, model=gradients_of(net(torch.nn.BatchNorm1d(5))))
    with pytest.raises(TacitError, match="must not depend on other examples"):
        h.small_hospital("h0", agreed)


def test_labels_that_the_loss_cannot_read_count_as_nothing(monkeypatch):
    monkeypatch.setattr("tacit.noise.rounded_gaussian", lambda sigma, shape: np.zeros(shape, dtype=np.int64))
    agreed, _ = h.small_study("own", hospitals=1, model=gradients_of(net()))
    X, y = h.patients(10)
    sums = []
    for label in (99, -5):
        changed = y.copy()
        changed[3] = label
        hospital = h.small_hospital("h0", agreed, data=(X, changed))
        sums.append(unpack(hospital.handle(h.weights_of(agreed, 1))).arrays["sum"])
    without = h.small_hospital("h0", agreed, data=(np.delete(X, 3, axis=0), np.delete(y, 3)))
    expected = unpack(without.handle(h.weights_of(agreed, 1))).arrays["sum"]
    for one in sums:
        np.testing.assert_allclose(one, expected, atol=2 * 10)  # each gradient is rounded by itself


def test_no_patient_shows_in_the_last_bit_of_another_ones_gradient(monkeypatch):
    """Huge weights cancel, so what is left of them depends on the order in which PyTorch adds up."""
    monkeypatch.setattr("tacit.noise.rounded_gaussian", lambda sigma, shape: np.zeros(shape, dtype=np.int64))
    line = torch.nn.Linear(20, 2)
    made = TorchGradients(line, torch.nn.functional.cross_entropy, shape=(20,))
    agreed, _ = h.small_study("own", hospitals=1, rounds=1, model=made)
    draw = np.random.default_rng(1)
    for patients in range(2, 12):
        X, y = draw.normal(size=(patients, 20)), np.zeros(patients)
        X[:, :3] = np.eye(3)[draw.integers(0, 3, patients)]
        table = 10 * draw.normal(size=(2, 20))
        table[0, :3] = 1e9
        weights = np.concatenate([table.ravel(), [-1e9, 0.0]])
        sums = []
        for some in (slice(0, None), slice(1, None), slice(0, 1)):
            hospital = h.small_hospital("h0", agreed, data=(X[some], y[some]))
            sums.append(unpack(hospital.handle(h.weights_of(agreed, 1, weights))).arrays["sum"])
        np.testing.assert_array_equal(sums[0], sums[1] + sums[2])


def test_one_example_cannot_leave_anything_behind_for_the_next():
    class Remembers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.line = torch.nn.Linear(3, 2)
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen.add_(x.mean(dim=0))
            return self.line(x + self.seen)

    made = gradients_of(Remembers())
    X, y = h.patients(2)
    first = made.gradients(made.start(), X[:1], y[:1])
    made.gradients(made.start(), X[1:], y[1:])
    np.testing.assert_array_equal(made.gradients(made.start(), X[:1], y[:1]), first)
