"""Clipped sums equal their definition on every supported layer, and refuse what they cannot tell apart."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tacit.errors import TacitError
from tacit.learn._clipped_sums import ClippedSums, check_separate

pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel"),
]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    yield
    torch.set_num_threads(before)


class Pooled(nn.Module):
    """A layer under test, then a mean over positions and a head."""

    def __init__(self, layer, features, inputs=None, axes=None):
        super().__init__()
        self.layer, self.axes = layer, axes
        self.first = nn.Linear(inputs, inputs) if inputs else nn.Identity()
        self.head = nn.Linear(features, 3)

    def forward(self, x):
        out = self.layer(self.first(x))
        out = out[0] if isinstance(out, tuple) else out
        return self.head(torch.tanh(out).mean(self.axes) if self.axes else torch.tanh(out))


class Text(nn.Module):
    """A small transformer; its table of words may also be its last layer."""

    def __init__(self, *, tied=False, words=11, length=6):
        super().__init__()
        self.words, self.places = nn.Embedding(words, 8, padding_idx=0), nn.Embedding(length, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation="gelu")
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, words, bias=False)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, index):
        x = self.words(index) + self.places(torch.arange(index.shape[1]))
        return self.head(self.norm(self.block(x))).transpose(1, 2)


def definition(model, loss, inputs, targets, weights, *, clip, per_unit=1):
    """Clip and add up the gradients of units, one at a time, with nothing but autograd."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    sums, norms = [torch.zeros_like(p) for p in parameters], []
    for start in range(0, len(weights), per_unit):
        part = slice(start, start + per_unit)
        value = (loss(model(*(v[part] for v in inputs)), *(v[part] for v in targets)) * weights[part]).sum()
        found = torch.autograd.grad(value, parameters, allow_unused=True)
        found = [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]
        norms.append(torch.stack([g.norm() for g in found]).norm())
        for total, g in zip(sums, found, strict=True):
            total += g * clip / max(float(norms[-1]), clip)
    return sums, torch.stack(norms)


def assert_exact(
    model, inputs, targets, *, loss=None, per_unit=1, clip=0.3, method="book-keeping", within=1e-5
):
    loss = loss or nn.CrossEntropyLoss()
    sums = ClippedSums(model, loss, clip=clip, per_unit=per_unit, method=method)
    weights = torch.linspace(0.4, 1.2, len(targets[0]))
    found, norms = sums(inputs, targets, weights)
    wanted, lengths = definition(
        model, sums.step.losses, inputs, targets, weights, clip=clip, per_unit=per_unit
    )
    assert sums.method == method, sums.reason
    torch.testing.assert_close(norms, lengths, rtol=within, atol=1e-7)
    scale = torch.stack([w.norm() for w in wanted]).norm()
    assert scale > 0
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).norm() <= within * scale
    assert bool((lengths > clip).any())
    return sums


def numbers(*shape):
    return (torch.randn(8, *shape),), (torch.randint(0, 3, (8,)),)


LAYERS = {
    "linear": (lambda: Pooled(nn.Linear(5, 7), 7), (5,)),
    "linear over positions": (lambda: Pooled(nn.Linear(5, 7), 7, axes=(1,)), (4, 5)),
    "linear over many positions": (lambda: Pooled(nn.Linear(5, 7), 7, axes=(1, 2)), (8, 3, 5)),
    "convolution": (lambda: Pooled(nn.Conv2d(3, 6, 3, padding=1), 6, axes=(2, 3)), (3, 7, 8)),
    "strided": (
        lambda: Pooled(nn.Conv2d(3, 6, (3, 2), stride=(2, 1), dilation=(1, 2)), 6, axes=(2, 3)),
        (3, 9, 8),
    ),
    "grouped": (lambda: Pooled(nn.Conv2d(4, 6, 3, groups=2, bias=False), 6, axes=(2, 3)), (4, 7, 7)),
    "few positions": (lambda: Pooled(nn.Conv2d(6, 9, 3), 9, axes=(2, 3)), (6, 4, 4)),
    "same padding": (lambda: Pooled(nn.Conv2d(3, 6, 4, padding="same"), 6, axes=(2, 3)), (3, 7, 8)),
    "circular padding": (
        lambda: Pooled(nn.Conv2d(3, 6, 3, padding=1, padding_mode="circular"), 6, axes=(2, 3)),
        (3, 7, 8),
    ),
    "convolution 1d": (lambda: Pooled(nn.Conv1d(3, 6, 3, padding=2), 6, axes=(2,)), (3, 9)),
    "convolution 3d": (lambda: Pooled(nn.Conv3d(2, 4, 2, stride=2), 4, axes=(2, 3, 4)), (2, 4, 4, 5)),
    "group norm": (lambda: Pooled(nn.GroupNorm(2, 6), 6, inputs=7, axes=(2,)), (6, 7)),
    "layer norm": (lambda: Pooled(nn.LayerNorm(6), 6, inputs=6, axes=(1,)), (4, 6)),
    "layer norm over two axes": (lambda: Pooled(nn.LayerNorm((4, 6)), 6, inputs=6, axes=(1,)), (4, 6)),
    "instance norm": (lambda: Pooled(nn.InstanceNorm2d(4, affine=True), 4, inputs=6, axes=(2, 3)), (4, 5, 6)),
    "root mean square": (lambda: Pooled(nn.RMSNorm(6), 6, inputs=6, axes=(1,)), (4, 6)),
    "batch norm in evaluation": (lambda: Pooled(nn.BatchNorm1d(4).eval(), 4, inputs=6, axes=(2,)), (4, 6)),
}


@pytest.mark.parametrize("per_unit", [1, 2])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_equals_its_definition(name, per_unit):
    make, shape = LAYERS[name]
    assert_exact(make(), *numbers(*shape), per_unit=per_unit)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("per_unit", [1, 3])
def test_attention_and_tied_weights_equal_their_definition(tied, per_unit):
    index = torch.randint(0, 11, (6, 6))  # as many words as examples: layouts must not be guessed from sizes
    assert_exact(Text(tied=tied), (index,), (torch.randint(0, 11, (6, 6)),), per_unit=per_unit)


def test_a_large_vocabulary_with_tied_weights():
    index = torch.randint(0, 300, (4, 5))
    assert_exact(Text(tied=True, words=300), (index,), (torch.randint(0, 300, (4, 5)),))


class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(x - x.mean(0))


def test_models_that_mix_examples_are_refused():
    batch = (torch.zeros(4, 3),), (torch.zeros(4).long(),)
    with pytest.raises(TacitError, match="mixes the examples"):
        check_separate(Centred(), nn.CrossEntropyLoss(), *batch)
    with pytest.raises(TacitError, match=r"BatchNorm1d \(1\)"):
        ClippedSums(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), nn.CrossEntropyLoss(), clip=1.0)
    with pytest.raises(TacitError, match="running averages"):
        ClippedSums(nn.InstanceNorm1d(3, affine=True, track_running_stats=True), nn.MSELoss(), clip=1.0)


def test_a_loss_that_mixes_examples_is_refused():
    sums = ClippedSums(nn.Linear(3, 2), lambda out, y: nn.functional.cross_entropy(out, y).abs(), clip=1.0)
    with pytest.raises(TacitError, match="one value for each example"):
        sums((torch.zeros(4, 3),), (torch.zeros(4).long(),), torch.ones(4))


def test_a_unit_that_is_not_finite_adds_exactly_zero():
    model = Pooled(nn.Conv1d(3, 6, 3), 6, axes=(2,))
    (x,), (y,) = numbers(3, 9)
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3, method="book-keeping")
    broken = x.clone()
    broken[2, 0, 0] = torch.inf
    broken[5] = torch.nan
    found, norms = sums((broken,), (y,), torch.ones(8))
    keep = torch.tensor([0, 1, 3, 4, 6, 7])
    wanted, _ = definition(model, sums.step.losses, (x[keep],), (y[keep],), torch.ones(6), clip=0.3)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert norms.isinf().tolist() == [False, False, True, False, False, True, False, False]
    found, _ = sums((torch.full_like(x, torch.nan),), (y,), torch.ones(8))
    assert all(not value.any() for value in found)
