"""Training from a model to a release: plans, releases, checkpoints, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tacit as tc

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from tacit.learn import AdaptiveClip, Augmentation, TrainedModel, Trainer  # noqa: E402


def patients(n=60, *, size=60, budget=None, **facts):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    budget = budget or tc.Budget(epsilon=50, delta=1e-3)
    return tc.learn.examples(X, y, unit=facts.pop("unit", tc.Unit.row()), size=size, budget=budget, **facts)


def small_model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def trainer(data=None, model=None, *, optimizer=None, **given):
    model = model or small_model()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    settings = {"batch": 20, "steps": 4, "noise": 1, "delta": 1e-4, **given}
    loss = settings.pop("loss", torch.nn.CrossEntropyLoss())
    return Trainer(model, loss, optimizer, data=patients() if data is None else data, **settings)


def test_a_release_has_a_model_with_new_weights_and_a_certificate():
    data, model = patients(), small_model()
    release = trainer(data, model).plan().release()
    assert isinstance(release.content, TrainedModel)
    trained = dict(release.model.named_parameters())
    for name, start in model.named_parameters():
        assert not torch.equal(trained[name], start)
    assert release.predict(np.zeros((5, 3))).shape == (5, 2)
    assert not release.model.training
    [law] = release.certificate.fields["mechanisms"]
    assert (law["mechanism"], law["numerics"], law["steps"]) == ("training-steps", "idealised", 4)
    assert release.certificate.matches(data._ledger)


def test_the_same_plan_again_is_the_stored_release_and_another_start_is_another_plan():
    data, model = patients(), small_model()
    first = trainer(data, model).plan().release()
    left = data.remaining
    again = trainer(data, model).plan().release()
    assert data.remaining == left
    assert all(np.array_equal(first.weights[name], again.weights[name]) for name in first.weights)
    with torch.no_grad():
        model[0].bias[0] += 1
    assert trainer(data, model).plan().hash != trainer(data, small_model()).plan().hash


def test_a_plan_keeps_the_model_as_it_was_when_it_was_made():
    data, model = patients(), small_model()
    made = trainer(data, model)
    digest = made.plan().hash
    with torch.no_grad():
        model[0].bias.fill_(1e9)
    assert made.plan().hash == digest
    assert abs(made.plan().release().weights["0.bias"]).max() < 1e6


@pytest.mark.parametrize(
    "change",
    [
        {"clip": 2}, {"noise": 2}, {"batch": 30}, {"steps": 5}, {"average": 0.9}, {"clip": "automatic"},
        {"loss": torch.nn.CrossEntropyLoss(label_smoothing=0.1)}, {"schedule": lambda step: 1 / (1 + step)},
        {"precision": "bfloat16"}, {"clip": AdaptiveClip()}, {"checkpoints": 2},
        {"augment": Augmentation(lambda x: x + 1, 2)},
    ],
)  # fmt: skip
def test_what_changes_the_training_changes_the_plan(change):
    data = patients()
    assert trainer(data, **change).plan().hash != trainer(data).plan().hash


def test_the_optimizers_settings_and_the_frozen_parts_are_in_the_plan():
    data, hashes = patients(), set()
    for lr, momentum, frozen in ((0.1, 0, False), (0.2, 0, False), (0.1, 0.9, False), (0.1, 0, True)):
        model = small_model()
        model[0].requires_grad_(not frozen)
        chosen = [one for one in model.parameters() if one.requires_grad]
        optimizer = torch.optim.SGD(chosen, lr=lr, momentum=momentum)
        hashes.add(trainer(data, model, optimizer=optimizer).plan().hash)
    assert len(hashes) == 4


def test_the_block_size_changes_nothing_but_speed():
    data = patients()
    assert trainer(data, physical_batch=3).plan().hash == trainer(data).plan().hash


def test_the_noise_meets_epsilon_and_the_cost_is_that_of_the_steps():
    plan = trainer(noise=None, epsilon=3, batch=20, steps=10).plan()
    cost = plan.cost
    assert 2.99 < cost.epsilon(delta=1e-4) <= 3
    law = plan.mechanisms[0]
    one = tc.Cost.gaussian(sigma=Fraction(law["sigma"]), sensitivity=Fraction(law["sensitivity"]))
    assert cost == 10 * one.sampled(Fraction(law["rate"]))
    assert law["rate"] == "1/3"


def test_a_total_fits_a_budget_of_this_epsilon_and_twice_this_delta():
    budget = tc.Budget(epsilon=2, delta=2e-4)
    data = patients(budget=budget)
    plan = trainer(data, noise=None, epsilon=2, delta=1e-4, charge="total").plan()
    plan.release()
    assert data.remaining.epsilon < 1e-4


def test_a_total_and_a_curve_fit_beside_other_charges_by_what_they_promise():
    budget = tc.Budget(epsilon=2.001, delta=2e-4)
    before = tc.Cost.pure(0.001)
    as_total, as_curve = patients(budget=budget), patients(budget=budget)
    for data in (as_total, as_curve):
        data._ledger.charge(data.name, before)
    trainer(as_total, noise=None, epsilon=2, delta=1e-4, charge="total").plan().release()
    plan = trainer(as_curve, noise=None, epsilon=2, delta=1e-4).plan()
    with pytest.raises(tc.TacitError) as refused:  # without its promise, the curve does not fit
        as_curve._ledger.charge(as_curve.name, plan.cost)
    assert refused.value.code == "budget-exceeded"
    plan.release()
    assert max(as_total.remaining.epsilon, as_curve.remaining.epsilon) < 1e-5
    first = patients(budget=tc.Budget(epsilon=2, delta=1e-4))  # nothing was charged before
    trainer(first, noise=None, epsilon=2, delta=1e-4).plan().release()
    assert str(first.remaining) == "nothing of epsilon 2"


# checkpoints


def test_checkpoints_are_instalments_that_continue():
    data = patients()
    plan = trainer(data, steps=7, checkpoints=3).plan()
    assert plan.cost == trainer(data, steps=7).plan().cost
    run = plan.run()
    releases = [run.next() for _ in range(3)]
    assert [one.about["taken"] for one in releases] == [3, 5, 7]
    weights = [one.weights["0.weight"] for one in releases]
    assert not np.array_equal(weights[0], weights[1])
    assert np.array_equal(run[1].weights["0.weight"], weights[0])
    with pytest.raises(tc.TacitError, match="instalment"):
        run.next()


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_a_resumed_training_goes_on_where_it_stopped(kind, monkeypatch, tmp_path):
    """With the same sample and noise, stopping in between changes no bit."""
    makers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        "adam": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    }
    from tacit.learn.training import _mechanisms

    monkeypatch.setattr(_mechanisms.TrainingSteps, "draw", lambda self, units: np.arange(0, units, 3))
    monkeypatch.setattr(_mechanisms, "training_noise", lambda n: np.linspace(-1, 1, n, dtype=np.float32))

    def train(parts, ledger):
        model = small_model()
        data = patients(ledger=ledger)
        given = {"average": 0.9, "clip": AdaptiveClip(0.5)}
        made = trainer(
            data, model, optimizer=makers[kind](model.parameters()), steps=6, checkpoints=parts, **given
        )
        if parts == 1:
            return made.plan().release()
        made.plan().run().next()
        made.plan().run().next()
        return made.plan().run().next()  # each time a new run object reads the ledger

    whole, parts = train(1, None), train(3, tmp_path / "ledger.db")
    for name in whole.weights:
        assert np.array_equal(whole.weights[name], parts.weights[name]), name


def test_checkpoints_need_steps():
    with pytest.raises(tc.TacitError, match="checkpoints must be 1 or 2"):
        trainer(steps=2, checkpoints=3)


# saved releases


def test_a_saved_release_goes_into_a_model_of_the_same_kind(tmp_path):
    release = trainer().plan().release()
    release.save(tmp_path / "model.json")
    loaded = tc.Release.load(tmp_path / "model.json")
    with pytest.raises(tc.TacitError, match="not the model"):
        _ = loaded.model
    assert torch.equal(loaded.into(small_model())[2].weight, release.model[2].weight)
    with pytest.raises(tc.TacitError, match=r"do not fit.*0\.weight"):
        loaded.into(torch.nn.Linear(3, 2))
    assert set(loaded.state()) == set(release.weights)
    assert "trained model" in repr(loaded)
    assert "0.weight" in loaded._repr_html_()


# refusals


def test_data_without_a_unit_is_refused():
    with pytest.raises(tc.TacitError, match="unit") as refused:
        trainer((torch.zeros(4, 3), torch.zeros(4)))
    assert "tc.learn.examples" in str(refused.value)


@pytest.mark.parametrize("delta", [1 / 59, 0.5, 0, None])
def test_a_delta_above_one_over_the_size_is_refused(delta):
    with pytest.raises(tc.TacitError, match=r"delta must be a number above 0 and at most 0\.016") as refused:
        trainer(delta=delta)
    assert "1 / 60, which is 1 / size" in str(refused.value)
    trainer(delta=1 / 60)


def test_a_goal_given_to_the_plan_makes_the_plan_of_one_given_to_the_trainer():
    data = patients()
    question = trainer(data, noise=None, delta=None)
    assert "noise=" not in repr(question)
    plan = question.plan(epsilon=2, delta=1e-4)
    assert plan == trainer(data, noise=None, epsilon=2).plan()
    assert question.plan(epsilon=1, delta=1e-4) != plan
    with pytest.raises(tc.TacitError, match="delta must be a number above 0"):
        question.plan(epsilon=2)
    with pytest.raises(tc.TacitError, match="exactly one of epsilon and noise"):
        question.plan(delta=1e-4)
    with pytest.raises(tc.TacitError, match="rho must be omitted"):
        question.plan(rho=1)


def test_an_exhausted_budget_refuses_before_the_data_is_touched():
    data = patients(budget=tc.Budget(epsilon=0.1, delta=1e-3))
    object.__setattr__(data, "_arrays", None)
    with pytest.raises(tc.TacitError) as refused:
        Trainer.plan(trainer_without_arrays(data)).release()
    assert refused.value.code == "budget-exceeded"


def trainer_without_arrays(data):
    held = patients()._arrays
    object.__setattr__(data, "_arrays", held)
    made = trainer(data, noise=0.5)
    object.__setattr__(data, "_arrays", None)  # whoever touches them now fails in another way
    return made


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch": None}, "exactly one of batch and sampling_rate"),
        ({"sampling_rate": 0.1}, "exactly one of batch and sampling_rate"),
        ({"epochs": 2}, "exactly one of steps and epochs"),
        ({"epsilon": 1}, "exactly one of epsilon and noise"),
        ({"batch": 61}, "batch must be a number above 0 and at most 60"),
        ({"batch": None, "sampling_rate": 1.5}, "above 0 and at most 1"),
        ({"clip": "none"}, "automatic"),
        ({"clip": 0}, "clip"),
        ({"precision": "float8"}, "float32"),
        ({"average": 1}, "at least 0 and below 1"),
        ({"charge": "later"}, '"steps" or "total"'),
        ({"charge": "total", "checkpoints": 2}, "several checkpoints"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(given, words):
    with pytest.raises(tc.TacitError, match=words):
        trainer(**given)


def test_a_model_that_adds_up_gradients_over_devices_is_refused():
    with pytest.raises(tc.TacitError, match="DataParallel wraps the model"):
        trainer(model=torch.nn.DataParallel(small_model()))


def test_an_optimizer_of_other_parameters_is_refused():
    model = small_model()
    with pytest.raises(tc.TacitError, match=r"does not hold 2\.weight"):
        trainer(model=model, optimizer=torch.optim.SGD(model[0].parameters(), lr=0.1))
    with pytest.raises(tc.TacitError, match="other parameters"):
        extra = [*model.parameters(), torch.nn.Parameter(torch.zeros(3))]
        trainer(model=model, optimizer=torch.optim.SGD(extra, lr=0.1))
    with pytest.raises(tc.TacitError, match="LBFGS"):
        trainer(model=model, optimizer=torch.optim.LBFGS(model.parameters()))
    with pytest.raises(tc.TacitError, match="an optimizer of PyTorch"):
        trainer(model=model, optimizer="sgd")


def test_steps_are_timed_on_invented_examples_and_cost_nothing():
    data = patients(n=5, size=60)
    made = trainer(data, schedule=lambda step: 1.0)
    left = data.remaining
    assert 0 < made.seconds_per_step(8, warm=0) < 10
    assert data.remaining == left


def test_a_checkpoint_of_another_run_is_refused():
    data = patients()
    made = trainer(data, steps=6, checkpoints=3)
    first = made.plan().run().next()
    run = made.resume(first)
    assert run.remaining == 2
    assert run.next().about["taken"] == 4
    other = trainer(data, steps=6, checkpoints=3, clip=2)
    left = data.remaining
    with pytest.raises(tc.TacitError, match="belongs to another run") as refused:
        other.resume(first)
    assert refused.value.code == "plan-differs"
    assert data.remaining == left


def test_a_picture_shows_the_loss_of_public_examples():
    pytest.importorskip("matplotlib")
    data = patients()
    with pytest.raises(tc.TacitError, match="watched no public examples"):
        trainer(data).plan().release().plot()
    release = trainer(data, watch=(np.zeros((5, 3)), np.zeros(5, int))).plan().release()
    [axes] = release.plot().axes
    assert list(axes.lines[0].get_xdata()) == [1, 2, 3, 4]


def test_examples_may_stay_in_a_file_that_is_mapped_for_reading(tmp_path):
    held = patients()._arrays
    np.save(tmp_path / "x.npy", held[0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    data = tc.learn.examples(
        mapped, held[1], unit=tc.Unit.row(), size=60, budget=tc.Budget(epsilon=50, delta=1e-3)
    )
    assert trainer(data).plan().release().about["taken"] == 4


def test_a_plan_speaks_of_the_declared_unit():
    data = patients(unit="patient_id", owners=np.arange(60) // 2, per_unit=2, size=30)
    shown = dict(trainer(data).plan().facts)
    assert "each patient with probability" in shown["sampling"]
    assert "up to 2 examples of one patient" in shown["clip"]
    assert shown["denominator"].startswith("20, the expected number of patients")


def test_the_settings_of_a_loss_are_a_part_of_the_plan():
    import functools

    from tacit.learn.training._setup import callable_document

    loss = functools.partial(torch.nn.functional.cross_entropy, label_smoothing=0.1)
    other = functools.partial(torch.nn.functional.cross_entropy, label_smoothing=0.2)
    assert callable_document(loss) == callable_document(functools.partial(loss.func, label_smoothing=0.1))
    assert callable_document(loss) != callable_document(other)

    def weighted(weights):
        return lambda outputs, targets: (outputs - targets).abs().sum(1) * weights[0]

    first, second = torch.zeros(5000), torch.zeros(5000)
    second[2500] = 1  # PyTorch shows the ends of a long tensor alone
    assert callable_document(weighted(first)) != callable_document(weighted(second))


def test_training_is_planned_from_its_risk():
    data, model = patients(), small_model()
    one = trainer(data, model, noise=None, epsilon=1)
    plan = one.plan(advantage=0.2)
    assert plan.cost.advantage <= 0.2
    assert plan.promised["delta"] == Fraction("1e-4")
    assert plan == one.plan(epsilon=plan.promised["epsilon"])
    assert one.plan(epsilon=plan.promised["epsilon"] * 2).cost.advantage > 0.2
    assert plan.release().certificate.plan == plan.hash
    with pytest.raises(tc.TacitError, match="noise must be omitted with a risk"):
        trainer(data, model).plan(advantage=0.2)


def test_a_fit_is_planned_from_its_risk():
    plan = tc.learn.Standardiser(bounds=(-5, 5)).question(patients()).plan(belief=(0.1, 0.3), delta=1e-5)
    assert plan.cost.loss_exceeds(plan.risk.loss) <= 1e-5
    assert plan.cost.epsilon(delta=1e-5) < plan.risk.loss  # the delta itself would allow more
