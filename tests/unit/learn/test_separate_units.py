"""One person's record changes nothing for others: models that mix in hiding, records on which models fail."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from tacit.learn import Trainer  # noqa: E402
from tacit.learn.layers._clipped_sums import ClippedSums  # noqa: E402
from tacit.learn.training._optimizer_steps import ModelSums  # noqa: E402

RNG = np.random.default_rng(5)
WORDS = RNG.integers(0, 20, (24, 6))
LABELS = RNG.integers(0, 3, 24)
NUMBERS = RNG.normal(size=(24, 4)).astype(np.float32)


def opened(model, *arrays, loss=None, **given):
    """Return the private part of a training."""
    budget = tc.Budget(epsilon=1000, delta=1e-2)
    data = tc.learn.examples(*arrays, unit=tc.Unit.row(), size=24, budget=budget)
    settings = {"batch": 8, "steps": 2, "noise": 1, "delta": 1e-3, **given}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, loss or nn.CrossEntropyLoss(), optimizer, data=data, **settings)
    return ModelSums(trainer.setup, data._arrays, data.units())


class Texts(nn.Module):
    def __init__(self, **table):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(20, 4, **table)
        self.last = nn.Linear(4, 3)

    def forward(self, words):
        return self.last(self.table(words).mean(1))


class Positions(Texts):
    def forward(self, words):
        return self.last(self.table(words)).transpose(1, 2)


class Scaled(nn.Linear):
    """Divides by the largest value of a batch."""

    def forward(self, x):
        return super().forward(x / x.abs().max())


class Capped(nn.Linear):
    """Divides by the norm of a batch, if it is large."""

    def forward(self, x):
        return super().forward(x / x.norm().clamp_min(50))


class Noisy(nn.Linear):
    """Drops values, and divides by the number of examples."""

    def forward(self, x):
        return functional.dropout(super().forward(x), 0.5, self.training) / len(x)


def shares(outputs, targets):
    """Divide by the number of known words in the whole batch, as language models often do."""
    known = targets != -100
    return functional.cross_entropy(outputs, targets, reduction="none").sum(1) / known.sum()


def per_batch(outputs, targets):
    return functional.cross_entropy(outputs, targets, reduction="none") / len(targets)


@pytest.mark.parametrize(
    ("model", "loss", "arrays", "words"),
    [
        (Texts(max_norm=0.5), None, (WORDS, LABELS), "changes table.weight"),
        (Texts(max_norm=1e6), None, (WORDS, LABELS), "changes table.weight"),
        (Scaled(4, 3), None, (NUMBERS, LABELS), "another gradient in a batch"),
        (Capped(4, 3), None, (NUMBERS, LABELS), "another gradient in a batch"),
        (Noisy(4, 3), None, (NUMBERS, LABELS), "another gradient in a batch"),
        (nn.Linear(4, 3), per_batch, (NUMBERS, LABELS), "another gradient in a batch"),
        (Positions(), shares, (WORDS, WORDS % 3), "another gradient in a batch"),
    ],
    ids=["longest", "longest in waiting", "largest", "capped", "dropout", "number", "words"],
)
def test_models_and_losses_that_mix_in_hiding_are_refused(model, loss, arrays, words):
    with pytest.raises(tc.TacitError, match=words) as refusal:
        opened(model, *arrays, loss=loss)
    assert refusal.value.code == "not-allowed"


class Sorted(nn.Module):
    """Sorts the examples of a batch by their length, and back again."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x, mask):
        order = mask.sum(1).argsort(descending=True, stable=True)
        return self.last(torch.tanh(self.first(x[order]).mean(1))[order.argsort()])


class Cut(Sorted):
    """Cuts a batch to its longest example."""

    def forward(self, x, mask):
        longest = int(mask.sum(1).max())
        return self.last(torch.tanh(self.first(x[:, :longest]) * mask[:, :longest, None]).sum(1))


class Branching(Sorted):
    """Takes another way for batches with large values."""

    def forward(self, x, mask):
        h = self.first(x).mean(1) * mask.sum(1, keepdim=True)
        return self.last(h / 9 if h.max() > 1e6 else h)


class Hooked(Sorted):
    """Shortens the gradients of a batch together, if they are long."""

    def forward(self, x, mask):
        h = self.first(x).mean(1) * mask.sum(1, keepdim=True)
        if h.requires_grad:
            h.register_hook(lambda grad: grad / grad.norm().clamp_min(50))
        return self.last(h)


@pytest.mark.parametrize("kind", [Sorted, Cut, Branching, Hooked])
def test_a_model_that_follows_its_data_is_computed_unit_by_unit(kind):
    model, mask = kind(), torch.ones(6, 5, dtype=torch.bool)
    mask[0, 2:], mask[2, 1:], mask[:, 4:] = False, False, False
    x = torch.randn(6, 5, 4, generator=torch.Generator().manual_seed(1)) * torch.arange(1, 7).view(6, 1, 1)
    x[3] *= 1e6
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=1.0)
    _, norms = sums((x, mask), (torch.tensor([0, 1, 2, 0, 1, 2]),), torch.ones(6))
    assert sums.method == "exact"
    for place in range(6):
        alone = functional.cross_entropy(model(x[[place]], mask[[place]]), torch.tensor([place % 3]))
        found = torch.autograd.grad(alone, list(model.parameters()))
        length = torch.stack([one.norm() for one in found]).norm()
        assert norms[place].item() == pytest.approx(length.item(), rel=1e-4, abs=1e-6)


def picked(outputs, targets):
    """Pick the log-probability of a class by an index, which fails on an unknown class."""
    return -outputs.log_softmax(1).gather(1, targets[:, None])[:, 0]


def test_a_loss_that_changes_after_the_plan_changes_nothing():
    loss = nn.CrossEntropyLoss(weight=torch.ones(3))
    sums = opened(nn.Linear(4, 3), NUMBERS, LABELS, loss=loss)
    loss.weight.fill_(1e9)
    assert float(sums.setup.loss.weight.max()) == 1


class Attending(Sorted):
    """Hides the words that a text does not have, and scales its output by one trained number."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.gate = nn.Parameter(torch.tensor(0.3))

    def forward(self, x, mask):
        h = self.attention(self.first(x), x, x, key_padding_mask=~mask)[0] * mask[..., None]
        return self.last(h.sum(1)) * self.gate


def test_attention_with_a_mask_and_a_single_number_are_trained():
    model, mask = Attending(), torch.ones(4, 5, dtype=torch.bool)
    mask[0, 2:] = False
    x, y = torch.randn(4, 5, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 2, 0])
    _, norms = ClippedSums(model, nn.CrossEntropyLoss(), clip=1.0)((x, mask), (y,), torch.ones(4))
    for place in range(4):
        alone = functional.cross_entropy(model(x[[place]], mask[[place]]), y[[place]])
        found = torch.autograd.grad(alone, list(model.parameters()))
        assert norms[place].item() == pytest.approx(
            torch.cat([g.flatten() for g in found]).norm().item(), rel=1e-4
        )


class Squeezed(nn.Module):
    """Drops the axis of a single example, as many do by mistake."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last(x).squeeze()


@pytest.mark.parametrize("physical", [3, 24])
@pytest.mark.parametrize(
    ("model", "features", "bad", "loss"),
    [
        (nn.Linear(4, 3), NUMBERS, "label", nn.CrossEntropyLoss()),
        (nn.Linear(4, 3), NUMBERS, "label", picked),
        (Texts(), WORDS, "word", nn.CrossEntropyLoss()),
        (Squeezed(), NUMBERS, "label", picked),
    ],
    ids=["label", "picked", "word", "squeezed"],
)
def test_a_record_on_which_the_model_fails_counts_as_zero_and_ends_nothing(
    model, features, bad, loss, physical
):
    features, labels = features.copy(), LABELS.copy()
    if bad == "label":
        labels[5] = 7
    else:
        features[5, 2] = 25
    sums = opened(model, features, labels, physical_batch=physical, loss=loss)
    everybody, others = np.arange(24), np.delete(np.arange(24), 5)
    with_it, without = sums.sums(everybody), sums.sums(others)
    assert any(one.abs().max() > 0 for one in without)
    for one, two in zip(with_it, without, strict=True):
        assert torch.allclose(one, two, rtol=1e-4, atol=1e-5)
    assert all(not one.any() for one in sums.sums(np.array([5])))


@pytest.mark.parametrize("way", ["auto", "exact"])
def test_an_unknown_label_or_word_is_not_a_number_so_that_no_device_stops(way):
    words, labels = torch.as_tensor(WORDS[:6]).clone(), torch.as_tensor(LABELS[:6]).clone()
    words[1, 3], labels[4], labels[2] = 20, -7, 3
    for loss in (
        nn.CrossEntropyLoss(),
        lambda o, t: functional.cross_entropy(o, t, None, None, -100, None, "none"),
    ):
        sums = ClippedSums(Texts(), loss, clip=1.0, method=way)
        found, norms = sums((words,), (labels,), torch.ones(6))
        assert norms.isfinite().tolist() == [True, False, False, True, False, True]
        good = [0, 3, 5]
        expected, _ = sums((words[good],), (labels[good],), torch.ones(3))
        for one, two in zip(found, expected, strict=True):
            assert torch.allclose(one, two, rtol=1e-4, atol=1e-6)


def test_a_training_with_a_record_on_which_the_model_fails_is_released():
    labels = LABELS.copy()
    labels[:] = 7
    budget = tc.Budget(epsilon=1000, delta=1e-2)
    data = tc.learn.examples(NUMBERS, labels, unit=tc.Unit.row(), size=24, budget=budget)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"batch": 8, "steps": 3, "noise": 1, "delta": 1e-3, "data": data}
    assert Trainer(model, nn.CrossEntropyLoss(), optimizer, **given).release().size == 15


class Broken(nn.Linear):
    """Fails after some calls, whatever it sees."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 1000:
            raise ValueError("broken")
        return super().forward(x)


def test_a_failure_that_has_nothing_to_do_with_the_data_is_raised():
    sums = opened(Broken(4, 3), NUMBERS, LABELS)
    sums.sums(np.arange(4))
    sums.model.calls = 1000
    with pytest.raises(ValueError, match="broken") as raised:
        sums.sums(np.arange(4))
    assert raised.value.__context__ is None  # what the private examples raised is not told


@pytest.mark.parametrize(
    ("owners", "units"),
    [
        ([2**53, 2**53 + 1, 0.5], 3),  # NumPy would round both whole numbers to the same fraction
        ([2**63, 2**63 + 1, -1], 3),
        (["ana", "ana\0", "ben"], 3),  # NumPy drops zeros at the end of a text
        ([b"ana", "b'ana'", "ana"], 3),
        ([None, "None", 1], 3),
        ([1, 1.0, True], 1),
        ([float("nan"), np.nan, "ana"], 2),
        (np.array(["ana", "ben", "ana"]), 2),
        (np.array([3, 1, 3]), 2),
    ],
)
def test_no_two_owners_become_one_because_of_what_a_third_is_called(owners, units):
    budget = tc.Budget(epsilon=1, delta=1e-6)
    data = tc.learn.examples(np.zeros(3), unit="patient", owners=owners, per_unit=3, size=3, budget=budget)
    rows = data.units()
    assert len(rows) == units
    assert sorted(rows[rows >= 0].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("rows", [1, 2])
def test_a_gradient_of_an_extreme_and_a_tiny_operand_is_not_taken_for_nothing(rows):
    model = nn.Linear(10_000, 40, bias=False)
    nn.init.zeros_(model.weight)

    def loss(outputs, targets):
        return (outputs - targets).square().sum(tuple(range(1, outputs.dim()))) / 2

    sums = ClippedSums(model, loss, clip=0.01)
    shape = (3, 10_000) if rows == 1 else (3, rows, 10_000)
    x = torch.full(shape, 2.6e-23)  # its square is zero in single precision
    y = torch.zeros(*shape[:-1], 40)
    y[1] = 2e18
    found, norms = sums((x,), (y,), torch.ones(3))
    assert sums.method == "book-keeping"
    assert found[0].norm() <= 0.01
    assert torch.isinf(norms[1])


def of_one_label(label, count):
    """Divide by how many examples of the batch have one label."""

    def loss(outputs, targets):
        each = functional.cross_entropy(outputs, targets, reduction="none")
        many = (targets == label).sum() if count == "sum" else torch.bincount(targets, minlength=9)[label]
        return each / many.clamp_min(1)

    return loss


@pytest.mark.parametrize("count", ["sum", "bincount"])
@pytest.mark.parametrize("label", range(5))
def test_a_loss_that_divides_by_the_number_of_any_label_is_refused(label, count):
    with pytest.raises(tc.TacitError, match=r"another gradient in a batch|mixes the examples"):
        opened(nn.Linear(4, 5), NUMBERS, LABELS, loss=of_one_label(label, count))


class Rolled(nn.Linear):
    """Adds the example before to large examples alone."""

    def forward(self, x):
        return super().forward(x + x.roll(1, 0) * (x.abs() > 30))


def test_a_model_that_mixes_only_inside_a_large_example_is_refused():
    with pytest.raises(tc.TacitError, match="another gradient in a batch"):
        opened(Rolled(4, 3), NUMBERS, LABELS)


def test_invented_labels_reach_the_width_of_the_output():
    from tacit.learn.layers._trials import invented

    [labels] = invented((torch.zeros(0, dtype=torch.long),), 12, 3, targets=True, labels=6)
    assert sorted(labels.tolist()) == sorted([*range(6)] * 2)
    sums = ClippedSums(Positions(), nn.CrossEntropyLoss(), clip=1.0)
    sums.prepare((torch.as_tensor(WORDS),), (torch.as_tensor(WORDS % 3),))
    assert sums.step.labels == 3
