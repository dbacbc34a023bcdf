"""Clients with a trusted server: what one client can change, clips on both sides, fixed denominators."""

import json

import numpy as np
import pytest

import tacit as tc
from tacit import TacitError
from tacit.learn import AdaptiveClip
from tacit.learn.federated import Client, Message, clients, in_process, pack, unpack
from tacit.learn.federated._client_rounds import ClientRounds, ClientSums
from tacit.learn.federated._gradients import CLIP_STEPS
from tacit.mechanisms import SampledSteps

ROOMY = tc.Budget(epsilon=100, delta=1e-3)


def rounds_of(clip, *, size=10, steps=4, shapes=((3,),), rate=0.5, momentum=0):
    numbers = sum(int(np.prod(shape)) for shape in shapes)
    mechanism = SampledSteps(sigma=CLIP_STEPS, sensitivity=CLIP_STEPS, rate=rate, steps=steps)
    exact = clip if isinstance(clip, AdaptiveClip) else tc.exact.rational("clip", clip)
    return ClientRounds(np.zeros(numbers), shapes, mechanism, exact, size, 1, momentum)


def group_of(learners, *, size=None, budget=ROOMY, **more):
    made = {f"client {i}": Client(f"client {i}", learn) for i, learn in enumerate(learners)}
    return clients(list(made), in_process(made), size=size or len(made), budget=budget, **more)


def toward(target):
    return lambda weights: [target - weights[0]]


def reply_of(**changed):
    fields = {"round": 1, "client": "x", "below": True, **changed.pop("fields", {})}
    arrays = {"update": np.array([0.1, 0.2, 0.2]), **changed.pop("arrays", {})}
    return pack(Message(changed.get("kind", "learned"), "any", fields, arrays))


HOSTILE = {
    "as it should be": reply_of(),
    "too long": reply_of(arrays={"update": np.array([1e300, -1e300, 1e300])}),
    "not finite": reply_of(arrays={"update": np.array([np.nan, 1.0, 1.0])}),
    "infinite": reply_of(arrays={"update": np.array([np.inf, 1.0, 1.0])}),
    "exactly the clip": reply_of(arrays={"update": np.array([0.6, 0.0, 0.8])}),
    "a little too long": reply_of(arrays={"update": np.array([0.6, 0.0, 0.8]) * (1 + 1e-15)}),
    "tiny": reply_of(arrays={"update": np.full(3, 5e-324)}),
    "another shape": reply_of(arrays={"update": np.ones(4)}),
    "whole numbers": reply_of(arrays={"update": np.ones(3, dtype=np.int64)}),
    "another round": reply_of(fields={"round": 7}),
    "another kind": reply_of(kind="sum"),
    "a bit that is a number": reply_of(fields={"below": 10**9}),
    "no bit": reply_of(fields={"below": None}),
    "no message": b"hello",
    "nothing": b"",
}


@pytest.mark.parametrize(
    "clip", [1, 0.003, 5000, AdaptiveClip(), AdaptiveClip(share=0.5), AdaptiveClip(share=1e-9)]
)
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_no_reply_moves_a_sum_by_more_than_the_sensitivity(clip, reply):
    rounds = rounds_of(clip)
    others = {name: reply_of(arrays={"update": np.array([0.3, -0.1, 0.2])}) for name in ("b", "c")}
    without = ClientSums(rounds, ["b", "c"], lambda _: others).sums(np.arange(2))
    together = ClientSums(rounds, ["b", "c", "a"], lambda _: {**others, "a": reply}).sums(np.arange(3))
    moved = [int(one) for one in together - without]
    assert sum(one * one for one in moved) <= rounds.mechanism.sensitivity**2


def test_random_updates_stay_within_the_sensitivity():
    draws = np.random.default_rng(5)
    for clip in (1, AdaptiveClip(share=0.1)):
        rounds = rounds_of(clip, shapes=((40,),))
        for _ in range(200):
            update = draws.standard_normal(40) * 10 ** draws.uniform(-4, 4)
            reply = reply_of(arrays={"update": update})
            moved = ClientSums(rounds, ["a"], lambda _, reply=reply: {"a": reply}).sums(np.arange(1))
            length = sum(int(one) ** 2 for one in moved)
            assert length <= CLIP_STEPS**2
            if np.linalg.norm(update) > 1 and not rounds.count_steps:
                assert length > 0.99 * CLIP_STEPS**2  # clipped, not dropped


def test_a_client_that_is_not_asked_cannot_add_anything():
    sums = ClientSums(rounds_of(1), ["a", "b"], lambda _: {"a": reply_of(), "b": reply_of(), "z": reply_of()})
    one, both = sums.sums(np.array([0])), sums.sums(np.arange(2))
    assert (both == 2 * one).all()


def test_a_client_shortens_its_own_update():
    asked = pack(
        Message("learn", "run", {"round": 1, "clip": 0.5, "shapes": [[2], [1]]}, {"weights": np.zeros(3)})
    )
    long = unpack(Client("a", lambda w: [np.array([3.0, 4.0]), np.zeros(1)]).handle(asked))
    assert np.linalg.norm(long.arrays["update"]) == pytest.approx(0.5)
    assert long.fields["below"] is False
    short = unpack(Client("a", lambda w: [np.array([0.1, 0.0]), np.zeros(1)]).handle(asked))
    assert short.arrays["update"].tolist() == [0.1, 0, 0]
    assert short.fields["below"] is True
    spoilt = unpack(Client("a", lambda w: [np.array([np.nan, 0.0]), np.zeros(1)]).handle(asked))
    assert spoilt.arrays["update"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("learn", [lambda w: 1 / 0, lambda w: [np.ones(7)], lambda w: ["text"]])
def test_a_client_that_fails_says_nothing_about_its_data(learn):
    asked = pack(
        Message("learn", "run", {"round": 1, "clip": 0.5, "shapes": [[2]]}, {"weights": np.zeros(2)})
    )
    reply = unpack(Client("a", learn).handle(asked))
    assert reply.kind == "refusal"
    assert "text" not in json.dumps(dict(reply.fields))
    assert "division" not in json.dumps(dict(reply.fields))


@pytest.mark.parametrize("bytes_", [b"", b"hello", pack(Message("learn", "run", {"round": 1}))])
def test_a_client_answers_nonsense_with_a_refusal(bytes_):
    assert unpack(Client("a", toward(1)).handle(bytes_)).kind == "refusal"


def test_the_denominator_is_public_and_missing_clients_count_as_zero():
    rounds = rounds_of(1, size=10, rate=0.5)
    sums = ClientSums(rounds, ["a"], lambda _: {})
    sums.update(np.array([5 * CLIP_STEPS, 0, 0]))  # five clips long, and five clients are expected
    assert sums.result()[0] == tc.learn._arrays.to_document(np.array([1.0, 0, 0]))
    assert sums.sums(np.array([0])).tolist() == [0, 0, 0]


def test_without_any_sampled_client_a_round_is_taken_all_the_same():
    asked = []
    sums = ClientSums(rounds_of(AdaptiveClip()), ["a"], lambda sent: asked.append(sent) or {})
    assert sums.sums(np.zeros(0, dtype=np.int64)).tolist() == [0, 0, 0, 0]
    assert not asked
    sums.update(np.zeros(4))
    assert len(sums.result()[2]) == 1


def test_an_adaptive_clip_grows_where_updates_are_longer_and_shrinks_where_they_are_shorter():
    """The bit says that an update is *below* the clip; a peer had it the other way round."""
    for length, direction in ((100.0, 1), (0.001, -1)):
        made = {f"c{i}": Client(f"c{i}", lambda w, n=length: [np.array([n, 0, 0])]) for i in range(5)}
        sums = ClientSums(rounds_of(AdaptiveClip(start=1, quantile=0.5)), list(made), in_process(made))
        for _ in range(3):
            sums.update(sums.sums(np.arange(5)))  # without noise
        clips = [*sums.result()[2], sums.result()[3]]
        assert clips == sorted(clips, reverse=direction < 0)
        assert clips[-1] == pytest.approx(np.exp(direction * 3 * 0.2 * 0.5), rel=1e-6)


def test_the_step_of_a_round_uses_the_clip_of_that_round():
    """A peer moved the clip first, and scaled sums and noise by the wrong one."""
    made = {f"c{i}": Client(f"c{i}", lambda w: [np.array([100.0, 0, 0])]) for i in range(5)}
    sums = ClientSums(rounds_of(AdaptiveClip(start=1)), list(made), in_process(made))
    sums.update(sums.sums(np.arange(5)))
    first = tc.learn._arrays.from_document(sums.result()[0])
    assert first[0] == pytest.approx(1.0, rel=1e-5)


def test_adaptive_clipping_is_paid_for():
    for share in (0.01, 0.3):
        rounds = rounds_of(AdaptiveClip(share=share))
        assert rounds.count_steps**2 + rounds.update_steps**2 <= CLIP_STEPS**2
        assert rounds.count_steps**2 == pytest.approx(share * CLIP_STEPS**2, rel=1e-4)
    assert rounds_of(1).update_steps == CLIP_STEPS


def test_the_cost_is_that_of_sampled_gaussians_and_known_before():
    group = group_of([toward(1.0)] * 3, size=1000)
    plan = group.train([np.zeros(2)], rounds=200, rate=0.05).plan(epsilon=1.5606, delta=1e-5)
    law = plan.cost
    assert float(law.epsilon(delta=1e-5)) <= 1.5606
    steps = SampledSteps.calibrated(epsilon=1.5606, delta=1e-5, sensitivity=1, rate=0.05, steps=200)
    assert float(steps.sigma) == pytest.approx(2, rel=1e-3)
    question = group.train([np.zeros(2)], rounds=200, rate=0.05, clip=AdaptiveClip())
    adaptive = question.plan(epsilon=1.5606, delta=1e-5)
    assert adaptive.cost == law
    assert dict(plan.facts)["denominator"].startswith("50:")


def test_nobody_is_asked_before_the_charge():
    asked = []
    group = clients(
        ["a"], lambda sent: asked.append(sent) or {}, size=1000, budget=tc.Budget(epsilon=0.1, delta=1e-5)
    )
    with pytest.raises(TacitError) as refusal:
        group.train([np.zeros(2)], rounds=2, rate=1).plan(epsilon=1, delta=1e-5).release()
    assert refusal.value.code == "budget-exceeded"
    assert not asked


def test_the_same_plan_again_is_the_stored_model_and_asks_nobody():
    asked = []
    made = {f"c{i}": Client(f"c{i}", toward(1.0)) for i in range(20)}

    def exchange(sent):
        asked.append(len(sent))
        return in_process(made)(sent)

    group = clients(list(made), exchange, size=20, budget=ROOMY)
    first = group.train([np.zeros(2)], rounds=3, rate=1).plan(epsilon=20, delta=1e-3).release()
    assert asked == [20, 20, 20]
    again = group.train([np.zeros(2)], rounds=3, rate=1).plan(epsilon=20, delta=1e-3).release()
    assert len(asked) == 3
    assert again.weights[0].tolist() == first.weights[0].tolist()


def test_a_run_continues_from_its_checkpoints():
    seen = []

    def learn(weights):
        seen.append(weights[0].tolist())
        return [1 - weights[0]]

    group = group_of([learn], size=1)
    plan = group.train([np.zeros(2)], rounds=7, rate=1, checkpoints=3).plan(epsilon=50, delta=1e-3)
    run = plan.run()
    first = run.next()
    assert len(first.clips) == 2  # 7 rounds in 3 parts: 2, 2, 3
    again = group.train([np.zeros(2)], rounds=7, rate=1, checkpoints=3).plan(epsilon=50, delta=1e-3).run()
    second, last = again.next(), again.next()
    assert [len(second.clips), len(last.clips)] == [4, 7]
    assert seen[2] == first.weights[0].tolist()
    assert seen[4] == second.weights[0].tolist()
    assert float(plan.cost.epsilon(delta=1e-3)) <= 50


def test_five_hundred_clients_learn_digits():
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    order = np.argsort(np.sin(np.arange(1797) * 12.9898) * 43758.5453 % 1)
    X, y = digits.data[order] / 16, digits.target[order]

    def learner(X, y):
        def learn(weights):
            matrix, bias = (one.copy() for one in weights)
            for _ in range(3):
                scores = np.exp(X @ matrix + bias)
                scores /= scores.sum(axis=1, keepdims=True)
                scores[np.arange(len(y)), y] -= 1
                matrix -= 0.5 * X.T @ scores / len(y)
                bias -= 0.5 * scores.mean(axis=0)
            return [matrix - weights[0], bias - weights[1]]

        return learn

    group = group_of([learner(X[3 * i : 3 * i + 3], y[3 * i : 3 * i + 3]) for i in range(500)])
    start = [np.zeros((64, 10)), np.zeros(10)]
    question = group.train(start, rounds=25, rate=0.2, learning_rate=3)
    model = question.plan(epsilon=20, delta=1e-3).release()
    matrix, bias = model.weights
    right = ((X[1500:] @ matrix + bias).argmax(axis=1) == y[1500:]).mean()
    assert right > 0.8  # about .92; the noise moves it by about .01


def test_the_model_survives_a_file(tmp_path):
    released = (
        group_of([lambda w: [1 - w[0], 1 - w[1]]], size=1, name="other")
        .train([np.zeros((2, 2)), np.zeros(3)], rounds=2, rate=1)
        .plan(epsilon=50, delta=1e-3)
        .release()
    )
    released.save(tmp_path / "model.json")
    read = tc.Release.load(tmp_path / "model.json")
    assert [one.tolist() for one in read.weights] == [one.tolist() for one in released.weights]
    assert read.clips == released.clips
    assert "after 2 of 2 rounds" in str(read)
    assert read.plot()._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"delta": 0.2}, "delta"),
        ({"rate": 1.5}, "rate"),
        ({"rounds": 0}, "rounds"),
        ({"momentum": 1}, "momentum"),
        ({"clip": 0}, "clip"),
        ({"start": []}, "start"),
        ({"start": [np.array([np.nan])]}, "start"),
        ({"checkpoints": 9}, "checkpoints"),
        ({"epsilon": -1}, "epsilon"),
    ],
)
def test_nonsense_is_refused(change, named):
    given = {"start": [np.zeros(2)], "rounds": 3, "rate": 0.5, "epsilon": 1, "delta": 1e-2, **change}
    start, goal = given.pop("start"), {name: given.pop(name) for name in ("epsilon", "delta")}
    with pytest.raises(TacitError, match=named) as refusal:
        group_of([toward(1.0)] * 10).train(start, **given).plan(**goal)
    assert refusal.value.code == "bad-parameter"


def test_the_former_call_warns_and_gives_the_same_plan():
    group = group_of([toward(1.0)] * 3, size=1000)
    with pytest.warns(DeprecationWarning, match=r"\.train\(\.\.\.\)\.plan\(epsilon=1, delta=1e-05\)"):
        former = group.plan([np.zeros(2)], rounds=2, rate=1, epsilon=1, delta=1e-5)
    assert former == group.train([np.zeros(2)], rounds=2, rate=1).plan(epsilon=1, delta=1e-5)


def test_two_clients_with_one_name_are_refused():
    with pytest.raises(TacitError, match="names must be a list of different names"):
        clients(["a", "a"], lambda sent: {}, size=2, budget=ROOMY)


def test_the_proof_speaks_of_the_code_as_it_is():
    from pathlib import Path

    from tacit.learn.federated import _client_rounds, _clients, _gradients

    page = (Path(__file__).parents[3] / "docs/proofs/clients.md").read_text()
    assert "$B=2^{20}$" in page
    assert CLIP_STEPS == 2**20
    homes = (_client_rounds, _client_rounds, _clients, _gradients)
    for name in ("ClientSums", "ClientRounds", "Clients", "clip_whole", "shorten"):
        assert f"`{name}`" in page
        assert any(hasattr(home, name) for home in homes)
