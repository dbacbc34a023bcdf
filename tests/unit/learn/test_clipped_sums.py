"""Clipped sums equal their definition on every supported layer, and refuse what they cannot tell apart."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tacit.errors import TacitError
from tacit.learn.layers._clipped_sums import ClippedSums
from tacit.learn.layers._kernels import norm_margin

pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
    pytest.mark.filterwarnings("ignore:LSTM with projections"),
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


class Turned(nn.Module):
    """A layer that wants the length before the examples."""

    def __init__(self, layer, features):
        super().__init__()
        self.layer, self.head = layer, nn.Linear(features, 3)

    def forward(self, x):
        out = self.layer(x.transpose(0, 1))
        out = out[0] if isinstance(out, tuple) else out
        return self.head(torch.tanh(out).mean(0))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.offset = nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(5))
        self.places, self.token = nn.Parameter(torch.randn(1, 5, 5)), nn.Parameter(torch.randn(1, 1, 5))

    def forward(self, x):
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x * self.scale - self.offset], 1)
        return torch.sin(x + self.places)


class Crossed(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.first = nn.Linear(8, 8)

    def forward(self, x):
        out = self.attention(x[:, :2], self.first(x), self.first(x), need_weights=False)[0]
        mask = torch.ones(4, 4).triu(1).bool()
        hidden = torch.tensor([False, False, False, True]).expand(x.shape[0], 4)
        again = self.attention(x, x + 1, x * 2, attn_mask=mask, key_padding_mask=hidden)[0]
        return torch.cat([out, again], 1)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(6, 5)), nn.Parameter(torch.randn(6, 7))
        self.offset = nn.Parameter(torch.randn(7))

    def forward(self, x):
        x = torch.tanh(nn.functional.linear(x, self.first))
        rows = torch.addmm(self.offset, x.reshape(-1, 6), self.second)
        return rows.reshape(*x.shape[:-1], 7) + x @ self.second


class Checkpointed(nn.Module):
    def __init__(self, *, use_reentrant):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 6))
        self.use_reentrant = use_reentrant

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        return checkpoint(self.inner, x, use_reentrant=self.use_reentrant)


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter, of which only the adapter is trained."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(5, 6).requires_grad_(False)
        self.down, self.up = nn.Linear(5, 2, bias=False), nn.Linear(2, 6, bias=False)

    def forward(self, x):
        return self.frozen(x) + 2.0 * self.up(self.down(x))


class Frames(nn.Module):
    """Convolutions over all frames of all films at once."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm, self.head = nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6), nn.Linear(6, 3)

    def forward(self, x):
        flat = torch.tanh(self.norm(self.layer(x.flatten(0, 1))))
        return self.head(flat.mean((2, 3)).unflatten(0, x.shape[:2]).mean(1))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(5, 5), nn.LayerNorm(5)

    def forward(self, x):
        return self.norm(self.layer(torch.tanh(self.norm(self.layer(x)))))


def definition(model, loss, inputs, targets, weights, *, clip, per_unit=1):
    """Clip and add up the gradients of units, one at a time, with nothing but autograd.

    The clip is a little smaller than stated, by the margin for the rounding of norms.
    """
    clip /= 1 + norm_margin("float32")
    parameters = [p for p in model.parameters() if p.requires_grad]
    sums, norms = [torch.zeros_like(p) for p in parameters], []
    for start in range(0, len(weights), per_unit):
        part = slice(start, start + per_unit)
        value = (loss(model(*(v[part] for v in inputs)), *(v[part] for v in targets)) * weights[part]).sum()
        model.zero_grad()
        value.backward()
        found = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
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
    "transposed": (
        lambda: Pooled(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), 6, axes=(2, 3)),
        (4, 5, 4),
    ),
    "transposed in groups": (
        lambda: Pooled(nn.ConvTranspose1d(4, 6, 3, groups=2, dilation=2), 6, axes=(2,)),
        (4, 5),
    ),
    "transposed 3d": (lambda: Pooled(nn.ConvTranspose3d(2, 3, 2), 3, axes=(2, 3, 4)), (2, 3, 3, 3)),
    "group norm": (lambda: Pooled(nn.GroupNorm(2, 6), 6, inputs=7, axes=(2,)), (6, 7)),
    "layer norm": (lambda: Pooled(nn.LayerNorm(6), 6, inputs=6, axes=(1,)), (4, 6)),
    "layer norm over two axes": (lambda: Pooled(nn.LayerNorm((4, 6)), 6, inputs=6, axes=(1,)), (4, 6)),
    "instance norm": (lambda: Pooled(nn.InstanceNorm2d(4, affine=True), 4, inputs=6, axes=(2, 3)), (4, 5, 6)),
    "root mean square": (lambda: Pooled(nn.RMSNorm(6), 6, inputs=6, axes=(1,)), (4, 6)),
    "depthwise": (lambda: Pooled(nn.Conv2d(4, 4, 3, groups=4, padding=1), 4, axes=(2, 3)), (4, 6, 7)),
    "lstm": (lambda: Pooled(nn.LSTM(5, 6, batch_first=True), 6, inputs=5, axes=(1,)), (8, 5)),
    "lstm, length first": (lambda: Turned(nn.LSTM(5, 6), 6), (8, 5)),
    "lstm, two layers both ways": (
        lambda: Pooled(nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True), 12, axes=(1,)),
        (4, 5),
    ),
    "lstm with projection": (
        lambda: Pooled(nn.LSTM(5, 6, proj_size=3, batch_first=True), 3, axes=(1,)),
        (4, 5),
    ),
    "gru": (lambda: Pooled(nn.GRU(5, 6, bias=False, batch_first=True), 6, inputs=5, axes=(1,)), (4, 5)),
    "gru, two layers": (lambda: Pooled(nn.GRU(5, 6, 2, batch_first=True), 6, axes=(1,)), (4, 5)),
    "rnn": (lambda: Pooled(nn.RNN(5, 6, batch_first=True), 6, axes=(1,)), (4, 5)),
    "lstm cell": (lambda: Pooled(nn.LSTMCell(5, 6), 6), (5,)),
    "gru cell": (lambda: Pooled(nn.GRUCell(5, 6), 6), (5,)),
    "rnn cell": (lambda: Pooled(nn.RNNCell(5, 6), 6), (5,)),
    "learned scale, offset and token": (lambda: Pooled(Tokens(), 5, axes=(1,)), (4, 5)),
    "slopes": (lambda: Pooled(nn.PReLU(4), 4, inputs=6, axes=(2,)), (4, 6)),
    "one slope": (lambda: Pooled(nn.PReLU(), 6, inputs=6), (6,)),
    "cross attention": (lambda: Pooled(Crossed(), 8, axes=(1,)), (4, 8)),
    "length first": (lambda: Turned(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 8), (8, 8)),
    "functional calls": (lambda: Pooled(Functional(), 7, axes=(1,)), (4, 5)),
    "checkpointed": (lambda: Pooled(Checkpointed(use_reentrant=False), 6, inputs=5, axes=(1,)), (4, 5)),
    "checkpointed again": (lambda: Pooled(Checkpointed(use_reentrant=True), 6, inputs=5, axes=(1,)), (4, 5)),
    "adapter": (lambda: Pooled(Adapted(), 6, axes=(1,)), (4, 5)),
    "frames of a film": (Frames, (4, 3, 6, 6)),
    "in place": (
        lambda: Pooled(nn.Sequential(nn.Conv1d(3, 6, 3), nn.ReLU(inplace=True)), 6, axes=(2,)),
        (3, 9),
    ),
    "used twice": (lambda: Pooled(Twice(), 5, axes=(1,)), (4, 5)),
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
        ClippedSums(Centred(), nn.CrossEntropyLoss(), clip=1.0)(*batch, torch.ones(4))
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


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(5, 6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(x)))


class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Bilinear(5, 5, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(x, x)))


class Penalised(nn.Module):
    """A model whose output depends on a matrix outside of its layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x):
        return self.layer(x) + self.layer.weight.square().sum()


class Shuffled(nn.Module):
    """A model that puts positions before examples and then forgets the difference."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x):
        flat = x.transpose(0, 1).reshape(-1, 5)
        return self.head(torch.tanh(self.layer(flat)).reshape(x.shape[1], x.shape[0], 6).mean(0))


@pytest.mark.parametrize(
    ("make", "shape"), [(Normed, (5,)), (Bilinear, (5,)), (Penalised, (5,)), (Shuffled, (4, 5))]
)
def test_unknown_uses_are_refused_or_go_the_exact_way(make, shape):
    model = make()
    inputs, targets = numbers(*shape)
    with pytest.raises(TacitError, match=r"no fast rule|differ from its exact ones"):
        ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3, method="book-keeping")(
            inputs, targets, torch.ones(8)
        )
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3)
    found, norms = sums(inputs, targets, torch.ones(8))
    assert sums.method == "exact"
    assert sums.reason
    wanted, lengths = definition(model, sums.step.losses, inputs, targets, torch.ones(8), clip=0.3)
    torch.testing.assert_close(norms, lengths, rtol=1e-5, atol=1e-7)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_hooks_that_change_outputs_are_part_of_the_model():
    model = Pooled(nn.Linear(5, 7), 7)
    model.layer.register_forward_hook(lambda module, args, out: out * 2 + 1)
    assert_exact(model, *numbers(5))
    model = Pooled(nn.Linear(5, 7), 7)
    model.layer.register_forward_hook(lambda module, args, out: out * module.weight.sum())
    with pytest.raises(TacitError, match=r"layer\.weight"):
        ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3, method="book-keeping")(*numbers(5), torch.ones(8))


def test_frozen_parts_stay_out_and_unused_parts_have_zeros():
    model = Pooled(nn.Linear(5, 7), 7)
    model.layer.weight.requires_grad_(False)
    model.spare = nn.Linear(2, 2)
    sums = assert_exact(model, *numbers(5))
    assert "layer.weight" not in sums.step.names
    found, _ = sums(*numbers(5), torch.ones(8))
    assert not any(value.any() for name, value in zip(sums.step.names, found, strict=True) if "spare" in name)


def test_dropout_is_drawn_for_each_example():
    model = nn.Sequential(nn.Linear(5, 40), nn.Dropout(0.5), nn.Linear(40, 3))
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3, method="book-keeping")
    x, y = torch.ones(6, 5), torch.zeros(6).long()
    _, norms = sums((x,), (y,), torch.ones(6))
    assert len(set(norms.tolist())) == 6
    model.eval()
    _, norms = sums((x,), (y,), torch.ones(6))
    torch.testing.assert_close(norms, norms[:1].expand(6))


def test_weight_zero_is_padding():
    model = Pooled(nn.Linear(5, 7), 7)
    (x,), (y,) = numbers(5)
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3)
    weights = torch.tensor([1.0, 1, 1, 1, 1, 0, 0, 0])
    found, norms = sums((x,), (y,), weights)
    wanted, _ = sums((x[:5],), (y[:5],), torch.ones(5))
    assert norms[5:].tolist() == [0.0, 0.0, 0.0]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_contributions_in_low_precision_stay_below_the_bound():
    model = Text()
    index, target = torch.randint(1, 11, (8, 6)), torch.randint(0, 11, (8, 6))
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.1, precision="bfloat16", method="book-keeping")
    for i in range(8):
        weights = torch.zeros(8)
        weights[i] = 1
        found, norms = sums((index,), (target,), weights)
        assert float(norms[i]) > 0.1
        assert float(torch.stack([value.norm() for value in found]).norm()) <= 0.1


class TwoWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.usual, self.rare = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        first, second = (self.rare, self.usual) if x.max() > 10 else (self.usual, self.rare)
        return first(x) + second(2 * x)


def test_one_unit_does_not_change_the_way_of_others_through_the_model():
    torch.manual_seed(0)
    x, y = torch.rand(5, 3), torch.randint(0, 2, (5,))
    x[4] = 11
    sums = ClippedSums(TwoWays(), nn.CrossEntropyLoss(), clip=0.5)
    without, _ = sums((x[:4],), (y[:4],), torch.ones(4))
    assert sums.method == "exact"  # the trial steps see that its course follows the data
    alone, _ = sums((x[4:],), (y[4:],), torch.ones(1))
    for run in (sums, sums.unchecked):
        together, norms = run((x,), (y,), torch.ones(5))
        assert norms.shape == (5,)
        for all_of_them, four, one in zip(together, without, alone, strict=True):
            torch.testing.assert_close(all_of_them, four + one)
    with pytest.raises(TacitError, match="makes decisions or sorts by the values of its examples"):
        ClippedSums(TwoWays(), nn.CrossEntropyLoss(), clip=0.5, method="book-keeping")(
            (x,), (y,), torch.ones(5)
        )


def test_a_scaled_gradient_that_is_rounded_again_stays_below_the_bound():
    torch.manual_seed(0)
    sums = ClippedSums(nn.Linear(8, 1, bias=False), nn.MSELoss(), clip=0.1, precision="bfloat16")
    x, y = torch.randn(200, 8), 50 * torch.randn(200, 1)
    longest = 0.0
    for i in range(200):
        ((total,), _) = sums((x[i : i + 1],), (y[i : i + 1],), torch.ones(1))
        longest = max(longest, float(total.double().norm()))
    assert 0.1 / 1.001 < longest <= 0.1  # a margin of a thousandth would let some of them pass the bound


def test_automatic_clipping():
    model = Pooled(nn.Linear(5, 7), 7)
    inputs, targets = numbers(5)
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3, automatic=True)
    weights = torch.zeros(8)
    weights[3] = 1
    found, norms = sums(inputs, targets, weights)
    length = torch.stack([value.norm() for value in found]).norm()
    torch.testing.assert_close(length, 0.3 * norms[3] / (norms[3] + 0.01))


def test_a_gradient_that_cancels_is_never_taken_for_a_short_one():
    from tacit.learn.layers._bookkeeping import gram_squares

    left = torch.cat([torch.full((1, 1, 64), 1e4), torch.full((1, 1, 64), -1e4 * (1 + 1e-6))], 1)
    right = torch.ones(1, 2, 64)
    true = float(torch.bmm(right.double().mT, left.double()).norm())
    assert float(gram_squares(left, right).sqrt()) >= 0.99 * true


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
@pytest.mark.parametrize("method", ["book-keeping", "exact"])
def test_a_hugging_face_model_from_its_configuration(kind, method):
    transformers = pytest.importorskip("transformers")
    common = {"vocab_size": 40, "attn_implementation": "eager"}
    if kind == "gpt2":
        config = transformers.GPT2Config(
            n_embd=16, n_layer=2, n_head=2, n_positions=12, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
            use_cache=False, **common,
        )  # fmt: skip
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.BertConfig(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=12, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **common,
        )  # fmt: skip
        model = transformers.BertForMaskedLM(config)
    index, target = torch.randint(0, 40, (4, 6)), torch.randint(0, 40, (4, 6))

    def loss(outputs, target):
        return nn.functional.cross_entropy(outputs.logits.transpose(1, 2), target, reduction="none").mean(1)

    assert_exact(model, (index,), (target,), loss=loss, method=method)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tied", [False, True])
def test_a_compiled_step_equals_the_plain_one(tied):
    model = Text(tied=tied)
    index, target = torch.randint(0, 11, (6, 6)), torch.randint(0, 11, (6, 6))
    plain = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3)
    fast = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3).compiled()
    for _ in range(2):
        wanted, lengths = plain((index,), (target,), torch.ones(6))
        found, norms = fast((index,), (target,), torch.ones(6))
        torch.testing.assert_close(norms, lengths)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.9)
        for sums in (plain, fast):
            sums.clip.fill_(0.2)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_step_with_a_large_tied_table_and_classes_before_places():
    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.inner = nn.Embedding(300, 16), nn.Linear(16, 16)

        def forward(self, index):
            seen = self.inner(self.words(index)).tanh()
            return nn.functional.linear(seen, self.words.weight).transpose(1, 2)

    model = Large()
    index, target = torch.randint(0, 300, (4, 6)), torch.randint(0, 300, (4, 6))
    wanted, lengths = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3)((index,), (target,), torch.ones(4))
    fast = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3).compiled()
    found, norms = fast((index,), (target,), torch.ones(4))
    torch.testing.assert_close(norms, lengths)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_step_traces_into_one_flat_graph():
    from tacit.learn.layers._clipped_step import traced_step

    model = Pooled(nn.LSTM(5, 6, batch_first=True), 6, inputs=5, axes=(1,))
    inputs, targets = numbers(4, 5)
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3)
    layouts = sums.prepare(inputs, targets)
    graph = traced_step(sums.step, sums.parameters, inputs, targets, torch.ones(8), sums.clip, layouts)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.9)
    wanted, lengths = sums(inputs, targets, torch.ones(8))
    found, norms = graph([p.detach() for p in sums.parameters], inputs, targets, torch.ones(8), sums.clip)
    torch.testing.assert_close(norms, lengths)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_group_normalisation_for_devices_keeps_the_layout():
    from tacit.learn.layers._normalisation import _native_backward, backward_groups, normalised_groups

    x = torch.randn(3, 6, 4, 5).to(memory_format=torch.channels_last)
    weight, bias = torch.randn(6), torch.randn(6)
    out, mean, rstd = normalised_groups(x, weight, bias, 2, 1e-5)
    torch.testing.assert_close(out, nn.functional.group_norm(x, 2, weight, bias), rtol=1e-5, atol=1e-5)
    wanted = torch.native_group_norm(x, weight, bias, 3, 6, 20, 2, 1e-5)
    torch.testing.assert_close((mean, rstd), wanted[1:], rtol=1e-5, atol=1e-5)
    assert out.is_contiguous(memory_format=torch.channels_last)
    grad = torch.randn_like(x)
    found = backward_groups(grad, x, weight, mean, rstd, 2)
    torch.testing.assert_close(found, _native_backward(grad, x, weight, mean, rstd, 2), rtol=1e-4, atol=1e-5)
    assert found[0].is_contiguous(memory_format=torch.channels_last)


def test_losses_that_need_probabilities_are_tried_with_probabilities():
    model = nn.Sequential(nn.Linear(5, 1), nn.Sigmoid())
    assert_exact(model, (torch.randn(8, 5),), (torch.rand(8, 1),), loss=nn.BCELoss())


def test_other_hugging_face_models_from_their_configurations():
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = transformers.LlamaConfig(vocab_size=40, max_position_embeddings=12, use_cache=False, **small)
    index = torch.randint(0, 40, (4, 6))

    def words(outputs, target):
        return nn.functional.cross_entropy(outputs.logits.transpose(1, 2), target, reduction="none").mean(1)

    assert_exact(transformers.LlamaForCausalLM(config), (index,), (index,), loss=words)
    config = transformers.ViTConfig(image_size=16, patch_size=4, num_labels=5, **small)
    images, labels = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 4])

    def classes(outputs, target):
        return nn.functional.cross_entropy(outputs.logits, target, reduction="none")

    assert_exact(transformers.ViTForImageClassification(config), (images,), (labels,), loss=classes)


def test_gradients_that_a_caller_holds_stay_as_they_are():
    model = nn.Linear(5, 3)
    model.weight.grad = torch.ones_like(model.weight)
    sums = ClippedSums(model, nn.CrossEntropyLoss(), clip=0.3)
    with torch.no_grad():
        found, _ = sums(*numbers(5), torch.ones(8))
    assert bool(found[0].any())
    assert bool((model.weight.grad == 1).all())
    assert model.bias.grad is None
