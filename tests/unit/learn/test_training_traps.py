"""The traps of private training, each of which a peer fell into: what a step may take from the data."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from torch import nn  # noqa: E402
from torch.func import functional_call, grad, vmap  # noqa: E402

from tacit.learn import AdaptiveClip, Augmentation, Trainer  # noqa: E402
from tacit.learn.training import _mechanisms  # noqa: E402
from tacit.learn.training._optimizer_steps import (  # noqa: E402
    CheckedOptimizer,
    ModelSums,
)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def declared(*arrays, size=40, unit=None, **facts):
    arrays = arrays or (X, Y)
    budget = tc.Budget(epsilon=100, delta=1e-2)
    return tc.learn.examples(*arrays, unit=unit or tc.Unit.row(), size=size, budget=budget, **facts)


def made(model=None, data=None, **given):
    if model is None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    lr = given.pop("lr", 0.1)
    settings = {"batch": 10, "steps": 3, "noise": 1, "delta": 1e-3, **given}
    loss = settings.pop("loss", nn.CrossEntropyLoss())
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=lr)
    return Trainer(model, loss, optimizer, data=data or declared(), **settings)


def opened(trainer):
    """Return the private part of a training, as its task makes it."""
    noisy = replace(trainer.setup, settings=trainer.settings)
    return ModelSums(noisy, trainer.data._arrays, trainer.data.units())


def flat(tensors):
    return torch.cat([one.reshape(-1).double() for one in tensors])


def gradients(model, loss, xs, ys):
    """Return the gradient of each example, in double precision."""
    model = model.double()
    own = {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}

    def one(weights, x, y):
        return loss(functional_call(model, weights, (x[None],)), y[None])

    each = vmap(grad(one), in_dims=(None, 0, 0))(own, torch.as_tensor(xs).double(), torch.as_tensor(ys))
    return torch.cat([each[n].flatten(1) for n in own], 1)


def by_definition(model, loss, clip, xs, ys):
    """Return the sum of clipped gradients."""
    rows = gradients(model, loss, xs, ys)
    return (rows * (clip / rows.norm(dim=1).clamp(min=clip))[:, None]).sum(0)


def test_a_sum_is_that_of_clipped_gradients():
    trainer = made(clip=0.5)
    sample = np.array([0, 3, 7, 20])
    found = flat(opened(trainer).sums(sample))
    expected = by_definition(opened(trainer).model, nn.CrossEntropyLoss(), 0.5, X[sample], Y[sample])
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("physical", [1, 3, 1000])
def test_blocks_of_any_size_give_the_same_sum(physical):
    sample = np.arange(0, 40, 2)
    one = flat(opened(made(physical_batch=physical)).sums(sample))
    assert torch.allclose(one, flat(opened(made()).sums(sample)), atol=1e-5)


# a unit moves a sum by at most the clip


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


@pytest.mark.parametrize("scale", [0.01, 1.0, 1000.0])
def test_tied_weights_move_a_sum_by_at_most_the_clip(scale):
    data = declared(X * scale, Y)
    trainer = made(Tied(), data, clip=0.3)
    sums = opened(trainer)
    for unit in range(10):
        assert flat(sums.sums(np.array([unit]))).norm() <= 0.3
    assert len(trainer.setup.names) == 1
    expected = by_definition(Tied(), nn.CrossEntropyLoss(), 0.3, X[:6] * scale, Y[:6])
    assert torch.allclose(flat(sums.sums(np.arange(6))), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_a_feature_that_is_not_finite_counts_as_zero_and_hurts_nobody_else(value):
    features = X.copy()
    features[5] = value
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    sums = opened(made(model, declared(features, Y)))
    with_it, without = sums.sums(np.arange(10)), sums.sums(np.delete(np.arange(10), 5))
    assert torch.allclose(flat(with_it), flat(without), atol=1e-5)
    release = made(model, declared(features, Y), sampling_rate=1, batch=None).plan().release()
    assert all(np.isfinite(array).all() for array in release.weights.values())


def test_what_fills_a_block_is_nobodys_data():
    """A unit with few examples is filled with its own; a block that is not full, with zeros."""
    features, owners = X.copy(), np.repeat([f"{i:02d}" for i in range(20)], 2)
    features[0] = np.inf  # the first example: where a careless index of padding points
    keep = np.ones(40, bool)
    keep[5] = False  # unit 2 has one example
    data = declared(features[keep], Y[keep], unit="pid", owners=owners[keep], per_unit=2, size=20)
    sums = opened(made(data=data))
    inputs, targets, weights = sums._blocks.gather(sums._rows.at(np.array([2, -1, -1, -1])))
    assert inputs[0].tolist() == [X[4].tolist()] * 2 + [[0.0] * 3] * 6
    assert targets[0].tolist() == [Y[4]] * 2 + [0] * 6
    assert weights.tolist() == [1.0] + [0.0] * 7
    alone, _ = sums._blocks.clipped(inputs, targets, weights)
    assert torch.allclose(flat(alone), flat(sums.sums(np.array([2]))), atol=1e-6)
    assert flat(alone).norm() > 1e-3


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_training_has_the_same_sums():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    fast, plain = opened(made(model, compile=True)), opened(made(model))
    for sample in (np.arange(5), np.arange(37), np.array([], int)):
        assert torch.allclose(flat(fast.sums(sample)), flat(plain.sums(sample)), atol=1e-5)


def test_several_examples_of_a_unit_are_clipped_together():
    owners = np.repeat(np.arange(10), 4)
    data = declared(X * 100, Y, unit="pid", owners=owners, per_unit=4, size=10)
    sums = opened(made(data=data, clip=1, batch=5))
    assert sums.units == 10
    for unit in range(10):
        norm = flat(sums.sums(np.array([unit]))).norm()
        assert norm <= 1
        assert norm > 0.99
    small = opened(made(data=data, clip=1e6, batch=5)).sums(np.array([0]))
    expected = by_definition(opened(made()).model, nn.CrossEntropyLoss(), 1e9, X[:4] * 100, Y[:4])
    assert torch.allclose(flat(small), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("clip", [0.2, 100])
def test_variants_are_averaged_before_the_clip_at_the_same_cost(clip):
    plain, sample = made(clip=clip), np.arange(8)
    same = made(clip=clip, augment=Augmentation(lambda x: x + 0, times=4))
    assert torch.allclose(flat(opened(same).sums(sample)), flat(opened(plain).sums(sample)), atol=1e-5)
    assert same.plan().cost == plain.plan().cost
    wild = made(clip=0.2, augment=Augmentation(lambda x: x + torch.randn_like(x), times=4))
    for unit in range(5):
        assert flat(opened(wild).sums(np.array([unit]))).norm() <= 0.2


def test_the_automatic_clip_gives_every_gradient_nearly_norm_one():
    sums = opened(made(clip="automatic"))
    norms = [float(flat(sums.sums(np.array([unit]))).norm()) for unit in range(10)]
    assert all(0.9 < norm <= 1 for norm in norms)


def test_an_adaptive_clip_moves_towards_its_quantile_within_the_same_sensitivity():
    trainer = made(clip=AdaptiveClip(100, quantile=0.5, rate=0.5, share=0.04), noise=0.01)
    sums = opened(trainer)
    tight = opened(made(clip=AdaptiveClip(1e-3, share=0.04)))
    for unit in range(10):
        assert flat(sums.sums(np.array([unit]))).norm() <= 1
        assert 0.999 < flat(tight.sums(np.array([unit]))).norm() <= 1
    everyone = np.arange(40)
    sums.setup = replace(sums.setup, settings=replace(trainer.settings, rate=Fraction(1)))
    for _ in range(60):
        sums.update(sums.sums(everyone))
    norms = gradients(sums.model, nn.CrossEntropyLoss(), X, Y).norm(dim=1)
    assert 0.3 < float((norms <= sums._clip).double().mean()) < 0.7


# the sample is the one that is charged


def test_the_sample_is_drawn_by_the_mechanism_with_its_rate(monkeypatch):
    seen = []
    draw = _mechanisms.TrainingSteps.draw
    monkeypatch.setattr(_mechanisms.TrainingSteps, "draw", lambda s, n: seen.append(draw(s, n)) or seen[-1])
    made(steps=200).plan().release()
    sizes = [len(one) for one in seen]
    assert len(sizes) == 200
    # 200 x 40 coins of 1/4: a mean of 10, which is missed by 1.2 once in 10^9
    assert abs(np.mean(sizes) - 10) < 1.2
    assert len(set(sizes)) > 3  # a shuffled loader gives equal batches


def test_empty_samples_take_a_step():
    model = nn.Linear(3, 2)
    release = made(model, sampling_rate=1e-9, batch=None, steps=4).plan().release()
    assert release.about["taken"] == 4
    assert not np.array_equal(release.weights["weight"], model.weight.detach().numpy())


def test_epochs_are_rounded_up_to_whole_steps():
    assert made(steps=None, epochs=3, batch=7).settings.steps == math.ceil(3 * 40 / 7)
    assert made(steps=None, epochs=1, batch=None, sampling_rate=0.3).settings.steps == 4


def test_nothing_of_a_plan_depends_on_how_many_units_there_are():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    one, other = (made(model, declared(X[:n], Y[:n])) for n in (40, 11))
    assert one.plan().hash == other.plan().hash
    assert one.plan().cost == other.plan().cost
    assert one.settings.denominator == other.settings.denominator == 10
    assert repr(one.plan()) == repr(other.plan())


# noise


def with_noise(monkeypatch, draw):
    monkeypatch.setattr(_mechanisms, "training_noise", draw)


def test_noise_is_added_once_for_a_step_however_many_blocks_there_are(monkeypatch):
    drawn = []
    with_noise(monkeypatch, lambda n: drawn.append(n) or np.zeros(n, np.float32))
    made(nn.Linear(3, 2), physical_batch=1, sampling_rate=1, batch=None, steps=3).plan().release()
    assert drawn == [8] * 3


def test_the_noise_is_that_of_a_sum_and_the_denominator_is_public():
    """An update of pure noise has the standard deviation lr x noise x clip / expected number."""
    model = nn.Linear(300, 100)
    data = declared(np.zeros((1, 300), np.float32), np.zeros(1, np.int64))
    release = made(model, data, noise=3, clip=2, batch=5, steps=1, lr=0.5).plan().release()
    moved = release.weights["weight"] - model.weight.detach().numpy()
    assert abs(moved.std() / (0.5 * 3 * 2 / 5) - 1) < 0.03  # 30,000 numbers: 7 standard errors
    assert abs(moved.mean()) < 7 * moved.std() / math.sqrt(moved.size)


@pytest.mark.parametrize("way", ["_add_from_processor", "_add_from_device"])
def test_parameters_of_one_shape_get_different_noise_and_each_step_its_own(way):
    tensors = [torch.zeros(50, 50) for _ in range(4)]
    getattr(_mechanisms, way)(tensors[:2], 3.0)
    torch.manual_seed(0)
    getattr(_mechanisms, way)(tensors[2:], 3.0)
    drawn = np.array([one.flatten().numpy() for one in tensors])
    # 2,500 numbers each: correlations of 0.12 are 6 standard errors, deviations of 10 % are 7
    assert abs(np.corrcoef(drawn) - np.eye(4)).max() < 0.12
    assert abs(drawn.std(axis=1) / 3 - 1).max() < 0.1


def test_a_device_takes_a_fresh_seed_for_each_step(monkeypatch):
    seeds = []
    fresh = _mechanisms.generator_seed
    monkeypatch.setattr(_mechanisms, "generator_seed", lambda: seeds.append(fresh()) or seeds[-1])
    for _ in range(5):
        _mechanisms._add_from_device([torch.zeros(3), torch.zeros(2)], 1.0)
    assert len(set(seeds)) == 5


def test_no_two_trainings_share_their_noise():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    one, other = (made(model, declared(), steps=1, sampling_rate=1e-9, batch=None).plan() for _ in range(2))
    torch.manual_seed(0)
    first = one.release()
    torch.manual_seed(0)
    assert not np.array_equal(first.weights["weight"], other.release().weights["weight"])


def test_noise_is_no_less_than_stated_in_low_precision():
    exact, low = made(clip=1), made(clip=1, precision="bfloat16")
    assert exact.plan().mechanisms[0]["sigma"] == low.plan().mechanisms[0]["sigma"]
    sums = opened(made(clip=1, precision="bfloat16", data=declared(X * 1000, Y)))
    for unit in range(5):
        assert flat(sums.sums(np.array([unit]))).norm() <= 1


# parts of a model


def test_a_part_in_evaluation_mode_stays_there():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.9), nn.Linear(5, 2))
    model[1].eval()
    sums = opened(made(model))
    assert not sums.model[1].training
    assert sums.model[0].training
    sample = np.arange(6)
    expected = by_definition(opened(made(model)).model, nn.CrossEntropyLoss(), 1, X[sample], Y[sample])
    assert torch.allclose(flat(sums.sums(sample)), expected, rtol=1e-4, atol=1e-5)


def test_frozen_parts_stay_as_they_are():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    model[0].requires_grad_(False)
    release = made(model).plan().release()
    assert set(release.weights) == {"2.weight", "2.bias"}
    assert torch.equal(release.model[0].weight, model[0].weight)


# the optimizer


def sgd(model, **given):
    return torch.optim.SGD(model.parameters(), lr=0.1, **given)


@pytest.mark.parametrize(
    "make",
    [
        sgd,
        lambda m: sgd(m, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda m: torch.optim.Adam(m.parameters()),
        lambda m: torch.optim.AdamW(m.parameters(), amsgrad=True),
        lambda m: torch.optim.RMSprop(m.parameters(), momentum=0.5, centered=True),
        lambda m: torch.optim.Adagrad(m.parameters()),
        lambda m: torch.optim.NAdam(m.parameters()),
    ],
)
def test_steps_of_the_optimizers_of_pytorch_pass_the_check(make):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    checked = CheckedOptimizer(model, make(model), every=1)
    for _ in range(5):
        before = model.weight.detach().clone()
        checked.step(["weight", "bias"], [torch.randn(3, 4), torch.randn(3)])
        assert not torch.equal(before, model.weight)


def test_a_model_that_something_else_moves_is_noticed():
    model = nn.Linear(4, 3)
    gradients = [torch.ones(3, 4), torch.ones(3)]
    optimizer = sgd(model)
    optimizer.register_step_post_hook(lambda *_: model.weight.data.mul_(1.01))
    with pytest.raises(RuntimeError, match="weight did not move"):
        CheckedOptimizer(model, optimizer).step(["weight", "bias"], gradients)


def test_an_optimizer_of_copied_weights_is_noticed():
    """As with adapters whose wrapper replaces the parameters after the optimizer was made."""
    model = nn.Linear(4, 3)
    optimizer = sgd(model)
    model.weight = nn.Parameter(model.weight.detach().clone())
    with pytest.raises(RuntimeError, match="does not hold"):
        CheckedOptimizer(model, optimizer).step(["weight", "bias"], [torch.ones(3, 4), torch.ones(3)])


def test_an_optimizer_that_changes_the_gradient_is_noticed():
    class Halved(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            type(self).calls += 1
            if type(self).calls > 1:  # the copy steps first
                for group in self.param_groups:
                    for one in group["params"]:
                        one.grad.mul_(0.5)
            super().step()

    model = nn.Linear(4, 3)
    with pytest.raises(RuntimeError, match="did not move"):
        CheckedOptimizer(model, Halved(model.parameters(), lr=0.1)).step(
            ["weight", "bias"], [torch.ones(3, 4), torch.ones(3)]
        )


# what is shown


def test_the_loss_of_public_examples_is_noted_and_changes_no_weight(monkeypatch):
    with_noise(monkeypatch, lambda n: np.zeros(n, np.float32))
    monkeypatch.setattr(_mechanisms.TrainingSteps, "draw", lambda self, n: np.arange(n))
    model = nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.0), nn.Linear(5, 2))
    watching = made(model, steps=6, watch=(X, Y)).plan().release()
    blind = made(model, steps=6).plan().release()
    assert [step for step, _ in watching.about["watched"]] == [1, 2, 3, 4, 5, 6]
    assert all(np.array_equal(watching.weights[n], blind.weights[n]) for n in blind.weights)
    output = torch.as_tensor(watching.predict(X))
    exact = float(nn.functional.cross_entropy(output, torch.as_tensor(Y)))
    assert abs(watching.about["watched"][-1][1] - exact) < 1e-4


def test_progress_shows_the_cost_so_far():
    sums = opened(made(steps=4))
    assert sums.describe() == "Training, step 0 of 4"
    sums.taken = 4
    total = float(sums.setup.settings.epsilon)
    assert sums.describe() == f"Training, step 4 of 4, epsilon {total:.3g} of {total:.3g}"


# refused before anything is charged, on invented examples


class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x - x.mean(0))


class Counting(nn.Module):
    """A model that keeps something of the data in a buffer, which would be released as it is."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("largest", torch.zeros(3))

    def forward(self, x):
        self.largest.copy_(torch.maximum(self.largest, x.detach().amax(0)))
        return self.linear(x)


class HalfUsed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.spare = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x)


def mixed_loss(output, target):
    return (output - output.mean(0)).square().sum(1) + target


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), {}, "BatchNorm1d"),
        (Centred(), {}, "mixes the examples"),
        (nn.Linear(3, 2), {"loss": mixed_loss}, "mixes the examples"),
        (
            nn.Linear(3, 2),
            {"loss": lambda o, t: nn.functional.cross_entropy(o, t) + 0},
            "one value for each example",
        ),
        (Counting(), {}, "largest"),
        (HalfUsed(), {}, r"does not use the parameter spare\.weight"),
        (nn.Linear(4, 2), {}, "fails on invented examples"),
        (nn.Linear(3, 2), {"augment": Augmentation(lambda x: x[:2], 2)}, "changes the number or the shapes"),
        (nn.Linear(3, 2), {"augment": Augmentation(lambda x: x[0].item() * x, 2)}, "fails on invented"),
    ],
)
def test_models_that_cannot_be_trained_privately_are_refused_by_name(model, given, words):
    data = declared()
    before = data.remaining
    with pytest.raises(tc.TacitError, match=words):
        made(model, data, **given)
    assert data.remaining == before


def test_no_value_of_the_data_reaches_a_refusal_or_a_plan():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    strange = declared(np.full_like(X, np.nan), np.full_like(Y, 99))
    assert made(model, strange).plan().hash == made(model).plan().hash


def test_batch_norm_in_evaluation_mode_is_a_fixed_layer():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model[1].eval()
    made(model).plan().release()


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter beside it (LoRA)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.base = nn.Linear(3, 4).requires_grad_(False)
        self.down, self.up = nn.Linear(3, 2, bias=False), nn.Linear(2, 4, bias=False)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.base(x) + self.up(self.down(x))))


def test_adapters_are_trained_and_released_and_the_frozen_layer_is_not():
    model = Adapted()
    trainer = made(model, clip=0.5)
    sample = np.arange(7)
    expected = by_definition(Adapted(), nn.CrossEntropyLoss(), 0.5, X[sample], Y[sample])
    assert torch.allclose(flat(opened(trainer).sums(sample)), expected, rtol=1e-4, atol=1e-5)
    release = trainer.plan().release()
    assert set(release.weights) == {"down.weight", "up.weight", "head.weight", "head.bias"}
    assert torch.equal(release.model.base.weight, model.base.weight)
    for name, array in release.weights.items():
        assert not np.array_equal(array, dict(model.named_parameters())[name].detach().numpy())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_hugging_face_is_trained():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1,
        n_head=2,
        n_embd=16,
        n_positions=8,
        vocab_size=11,
        attn_pdrop=0,
        embd_pdrop=0,
        resid_pdrop=0,
    )
    model = transformers.GPT2LMHeadModel(config)
    tokens = RNG.integers(0, 11, size=(20, 8))

    def next_token(output, ids):
        each = nn.functional.cross_entropy(
            output.logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none"
        )
        return each.mean(1)

    trainer = made(model, declared(tokens, tokens, size=20), loss=next_token, batch=5, steps=2, clip=0.1)
    for unit in range(3):
        assert 0.09 < flat(opened(trainer).sums(np.array([unit]))).norm() <= 0.1
    release = trainer.plan().release()
    assert "transformer.wte.weight" in release.weights
    assert "lm_head.weight" not in release.weights  # tied to the embedding: trained and released once


class Forgetful(torch.optim.SGD):
    """An optimizer that also moves the model without a gradient, each time a step is taken for real."""

    def step(self, closure=None):
        super().step()
        for group in self.param_groups:
            for one in group["params"]:
                one.data.add_(torch.rand(one.shape))


def test_an_optimizer_that_does_something_else_is_refused_before_the_charge():
    model, data = nn.Linear(3, 2), declared()
    before = data.remaining
    with pytest.raises(tc.TacitError, match="did not move as the optimizer says"):
        Trainer(
            model, nn.CrossEntropyLoss(), Forgetful(model.parameters(), lr=0.1), data=data, batch=10, steps=2,
            noise=1, delta=1e-3,
        )  # fmt: skip
    assert data.remaining == before
