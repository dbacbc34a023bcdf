"""A unit adds the same to a sum, bit by bit, whoever else is in the sample: slots, block sizes, failures.

A float kernel may round differently in another slot or in a block of another size. The layers here do so in
the same way on every machine, and the units are crafted: a ReLU turns the last bit into a whole gradient.
"""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from torch import nn  # noqa: E402

from tacit.learn import Trainer  # noqa: E402
from tacit.learn.layers._clipped_sums import ClippedSums  # noqa: E402
from tacit.learn.training import _gradient_sums  # noqa: E402
from tacit.learn.training._gradient_sums import BlockSlots  # noqa: E402
from tacit.learn.training._model_check import find_slots  # noqa: E402
from tacit.learn.training._optimizer_steps import ModelSums  # noqa: E402
from twins import learn_slots  # noqa: E402

UNITS, CLIP, ULP = 64, 1.0, 2.0**-20


class Crafted(nn.Module):
    """A first layer whose kernel rounds by slot or by the size of the block, and a ReLU."""

    def __init__(self, kernel):
        super().__init__()
        self.first, self.last = nn.Linear(4, 2, bias=False), nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.first.weight.copy_(torch.eye(2, 4))
            self.last.weight.copy_(torch.eye(2) * 8)
        self.kernel = kernel

    def forward(self, x):
        h = self.first(x)
        if self.kernel == "slots":
            h = h + ULP * (torch.arange(len(h)) % 2)[:, None]
        elif self.kernel == "sizes":
            h = h + ULP * (len(h) != 39)
        elif self.kernel == "alone":
            h = h + ULP * (len(h) > 1)
        return self.last(torch.relu(h - 1) * 2**20)


def counted(outputs, targets):
    """Count labels, which fails on a negative one."""
    torch.bincount(targets)
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def opened(kernel, x, y, **given):
    data = tc.learn.examples(x, y, unit=tc.Unit.row(), size=UNITS, budget=tc.Budget(epsilon=9, delta=1e-3))
    model = Crafted(kernel)
    settings = {"sampling_rate": 1, "steps": 1, "noise": 1, "delta": 1e-3, "clip": CLIP, **given}
    trainer = Trainer(model, counted, torch.optim.SGD(model.parameters(), lr=0.1), data=data, **settings)
    return ModelSums(trainer.setup, data._arrays, data.units())


def crafted(kernel):
    """Return units at the kink of the ReLU, and the samples with and without one of them."""
    x, y = np.tile(np.float32([1, 0, 30, 0]), (UNITS, 1)), np.ones(UNITS, np.int64)
    if kernel == "slots":  # each unit pulls against the units beside it, and the first one pulls nowhere
        x[::2, 2] = -30
        x[0] = 0
    if kernel == "alone":
        y[0] = -1
    everybody = np.arange(40 if kernel == "sizes" else UNITS)
    return x, y, everybody, everybody[1:]


def moved_by_one_unit(kernel, patch):
    """Return how far the sum moves if one unit leaves; common units draw the same slots."""
    x, y, *samples = crafted(kernel)
    sums = opened(kernel, x, y)
    slots = np.random.default_rng(1).integers(0, UNITS, UNITS)
    found = []
    for sample in samples:
        patch.setattr(_gradient_sums, "random_slots", lambda size, units, s=sample: slots[s][:units] % size)
        found.append(torch.cat([one.flatten().double() for one in sums.sums(sample)]))
    assert sums.setup.slots.tested
    assert sums.setup.slots.classes.max() == (kernel == "slots")
    return float((found[0] - found[1]).norm())


@pytest.mark.parametrize("kernel", ["slots", "sizes", "alone"])
def test_a_unit_that_leaves_a_crafted_batch_moves_the_sum_by_one_clip(kernel, monkeypatch):
    assert moved_by_one_unit(kernel, monkeypatch) <= CLIP


@pytest.mark.parametrize(
    ("kernel", "twin"), list(zip(["sizes", "slots", "alone"], learn_slots.BROKEN, strict=True))
)
def test_the_crafted_batches_catch_broken_packings(kernel, twin, monkeypatch):
    twin(monkeypatch)
    assert moved_by_one_unit(kernel, monkeypatch) > 20 * CLIP


def slots_of(model, width, units):
    """Return the slots that the tests find, and the classes that plain PyTorch shows."""
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=1.0)
    return find_slots(sums, (torch.zeros(0, width),), (torch.zeros(0, dtype=torch.long),), units)


@pytest.mark.parametrize(
    ("model", "width"),
    [
        (nn.Sequential(nn.Linear(20, 99), nn.SiLU(), nn.Linear(99, 3)), 20),
        (nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 10)), 64),
        (nn.Sequential(nn.Linear(50, 2), nn.Sigmoid(), nn.Linear(2, 2)), 50),
    ],
    ids=["SiLU 99", "64-50-10", "sigmoid 2"],
)
def test_slots_that_differ_on_this_machine_are_in_different_classes(model, width):
    slots = slots_of(model, width, 40)
    for seed in range(5):
        x = torch.randn(1, width, generator=torch.Generator().manual_seed(seed)).repeat(40, 1)
        rows = [row.numpy().tobytes() for row in model(x).detach()]
        for one in range(40):
            same = slots.classes == slots.classes[one]
            assert {rows[other] for other in np.flatnonzero(same)} == {rows[one]}


class Neighbourly(nn.Linear):
    """Rounds in another way while a large value is in the block."""

    def forward(self, x):
        large = (x.abs().nan_to_num(1e30, 1e30).amax() > 1e20).float()
        return super().forward(x) * (1 + 2.0**-22 * large)


class Restless(nn.Linear):
    """Has other last bits in each run, in evaluation mode too."""

    def forward(self, x):
        return super().forward(x) * (1 + 2.0**-22 * torch.rand(()))


@pytest.mark.parametrize("kind", [Neighbourly, Restless])
def test_units_whose_bits_follow_others_or_the_run_are_computed_alone(kind):
    slots = slots_of(kind(4, 3), 4, 8)
    assert (slots.size, slots.tested) == (1, False)
    assert "each unit alone" in slots.words()


def test_blocks_have_one_size_whatever_the_sample():
    sums = opened("sizes", *crafted("sizes")[:2])
    shapes = []
    gather = sums._blocks.gather
    sums._blocks.gather = lambda block: shapes.append(gather(block)[0][0].shape) or gather(block)
    for units in (1, 7, 64):
        sums.sums(np.arange(units))
    assert shapes == [(64, 4)] * 3


@pytest.mark.parametrize("classes", [[0] * 8, [0, 1] * 4, [0, 0, 0, 0, 0, 0, 0, 1], list(range(8))])
@pytest.mark.parametrize("units", [0, 1, 8, 37])
def test_each_unit_is_in_one_slot_of_the_class_that_it_drew(classes, units, monkeypatch):
    drawn = np.arange(units) * 3 % 8
    monkeypatch.setattr(_gradient_sums, "random_slots", lambda slots, count: drawn)
    packed = BlockSlots(np.array(classes)).packed(units)
    assert all(len(block) == 8 for block in packed)
    where = {int(unit): slot for block in packed for slot, unit in enumerate(block) if unit >= 0}
    assert sorted(where) == list(range(units))
    if max(classes):
        assert all(classes[where[unit]] == classes[drawn[unit]] for unit in range(units))


class Lengths(nn.Linear):
    """Fails on an example without a word, as a packed sequence does."""

    def forward(self, x):
        if x.dim() > 1:
            torch.bincount((x.detach() != 0).sum(1) - 1)
        return super().forward(x)


def test_a_model_that_fails_on_zeros_is_trained_with_an_invented_example_in_empty_slots():
    slots = slots_of(Lengths(4, 3), 4, 8)
    assert slots.fill is not None
    assert bool(slots.fill[0].any())
    assert not bool(slots_of(nn.Linear(4, 3), 4, 8).fill[0].any())


def test_plan_and_certificate_say_what_holds_for_floats():
    x, y = np.zeros((20, 3), np.float32), np.zeros(20, np.int64)
    data = tc.learn.examples(x, y, unit=tc.Unit.row(), size=20, budget=tc.Budget(epsilon=9, delta=1e-2))
    model = nn.Linear(3, 2)
    given = {"batch": 5, "steps": 2, "noise": 1, "delta": 1e-2}
    plan = Trainer(
        model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1), data=data, **given
    ).plan()
    said = dict(plan.facts)["numerics"]
    for words in ("idealised", "1.0016", "kernels: rows separate (tested)"):
        assert words in said
    certificate = plan.release().certificate
    assert certificate.fields["numerics"] == said
    assert said in certificate.to_text() if hasattr(certificate, "to_text") else said in str(certificate)
