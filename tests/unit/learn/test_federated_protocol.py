"""Hospitals that train together: messages, exact clipping, masks, and whole runs in one process."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tacit as tc
from support import hospitals as h
from tacit.accounting import Cost
from tacit.errors import TacitError
from tacit.learn.federated import (
    Coordinator,
    FederatedModel,
    Hospital,
    HospitalKey,
    Message,
    Participant,
    Softmax,
    Study,
    in_process,
    pack,
    study,
    unpack,
)  # fmt: skip
from tacit.learn.federated._gradients import CLIP_STEPS, clip_whole

# messages


def test_a_message_comes_back_as_it_was_sent():
    sent = Message(
        "round", "ab", {"round": 7, "members": ["ä"]}, {"w": np.array([1.5, -0.0]), "n": np.arange(3)}
    )
    back = unpack(pack(sent))
    assert (back.kind, back.study, back.fields) == (sent.kind, sent.study, sent.fields)
    assert back.round() == 7
    assert back.array("w", "f8", 2).tobytes() == sent.arrays["w"].tobytes()
    assert back.array("n", "i8", 3).tolist() == [0, 1, 2]


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(TacitError) as error:
        unpack(data)
    assert error.value.code == "bad-message"


@given(st.data())
def test_a_damaged_message_is_read_or_refused_and_nothing_else(data):
    good = pack(Message("round", "ab", {"round": 1}, {"weights": np.zeros(2)}))
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :]
    try:
        unpack(bad[: data.draw(st.integers(0, len(good)))])
    except TacitError as error:
        assert error.code == "bad-message"


@pytest.mark.parametrize(
    "head",
    [
        [], {}, {"kind": 1, "study": "a", "fields": {}, "arrays": []},
        {"kind": "a", "study": "a", "fields": [], "arrays": []},
        {"kind": "a", "study": "a", "fields": {}, "arrays": [["w", "f8", -1]]},
        {"kind": "a", "study": "a", "fields": {}, "arrays": [["w", "O8", 0]]},
        {"kind": "a", "study": "a", "fields": {}, "arrays": [["w", "f8", 10**30]]},
        {"kind": "a", "study": "a", "fields": {}, "arrays": [["w", "f8", True]]},
        {"kind": "a", "study": "a", "fields": {}, "arrays": [["w", "f8", 0], ["w", "f8", 0]]},
        {"kind": "a", "study": "a", "fields": {}, "arrays": [["w", ["f8"], 0]]},
    ],
)  # fmt: skip
def test_a_message_with_a_wrong_head_is_refused(head):
    text = json.dumps(head).encode()
    with pytest.raises(TacitError) as error:
        unpack(b"tacit/federated/1\n" + len(text).to_bytes(4, "little") + text)
    assert error.value.code == "bad-message"


def test_a_message_with_more_behind_its_end_is_refused():
    with pytest.raises(TacitError, match="cannot read this as a message"):
        unpack(pack(Message("begin", "ab")) + b"\0")


# exact clipping

_ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=_ANY),
    st.floats(1e-6, 1e6),
)
def test_no_gradient_is_longer_than_the_clip_in_whole_steps(gradients, clip):
    whole = clip_whole(gradients, clip)
    for line, was in zip(whole.tolist(), gradients, strict=True):
        assert sum(step * step for step in line) <= CLIP_STEPS**2  # in Python's integers
        if not np.isfinite(was).all():
            assert not any(line)


def test_clipping_keeps_the_direction_and_short_gradients():
    gradients = np.array([[3.0, -4.0], [0.3, 0.4], [1e300, 1e300], [5e-324, 0], [0, 0]])
    whole = clip_whole(gradients, 1.0) / CLIP_STEPS
    np.testing.assert_allclose(whole[0], [0.6, -0.8], atol=2e-6)
    np.testing.assert_allclose(whole[1], [0.3, 0.4], atol=2e-6)
    np.testing.assert_allclose(whole[2], [0.5**0.5] * 2, atol=2e-6)
    assert not whole[3:].any()


def test_a_gradient_that_is_too_long_in_whole_steps_becomes_zero(monkeypatch):
    monkeypatch.setattr("tacit.learn.federated._gradients._MARGIN", 1.1)  # a norm that is wrong by 10 %
    assert clip_whole(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).tolist() == [[0, 0], [314572, 419430]]


def test_rounding_instead_of_truncation_would_break_the_norm():
    line = np.full((1, 1000), 1000**-0.5 * (CLIP_STEPS - 0.4) / CLIP_STEPS)
    rounded = np.round(line * CLIP_STEPS).astype(int)
    scaled = np.full((1, 3), 3**-0.5)
    assert (np.ceil(scaled * CLIP_STEPS) ** 2).sum() > CLIP_STEPS**2 >= (clip_whole(scaled, 1.0) ** 2).sum()
    assert (clip_whole(line, 1.0) ** 2).sum() <= (rounded**2).sum()


# the model


def test_softmax_gradients_are_those_of_the_loss():
    model, draw = Softmax(3, 4), np.random.default_rng(1)
    X, y, weights = draw.normal(size=(5, 3)), np.array([0, 1, 2, 3, 0]), draw.normal(size=model.dimension)

    def loss(w, i):
        scores = np.append(X[i], 1) @ w.reshape(4, 4)
        return np.log(np.exp(scores).sum()) - scores[y[i]]

    found = model.gradients(weights, X, y)
    for i in range(5):
        slopes = [
            (loss(weights + step, i) - loss(weights - step, i)) / 2e-6
            for step in 1e-6 * np.eye(model.dimension)
        ]
        np.testing.assert_allclose(found[i], slopes, atol=1e-6)


@pytest.mark.parametrize("label", [-1, 4, 0.5, np.nan, np.inf])
def test_an_example_with_an_unknown_label_counts_as_nothing(label):
    model = Softmax(3, 4)
    gradients = model.gradients(model.start(), np.ones((2, 3)), np.array([1.0, label]))
    whole = clip_whole(gradients, 1.0)
    assert whole[0].any()
    assert not whole[1].any()


# the study


def test_sigma_and_epsilon_have_the_values_of_the_literature():
    ten = {f"h{i}": Participant(100, key=HospitalKey.generate().public) for i in range(10)}
    own = study("s", h.MODEL, ten, rounds=60, epsilon=1, delta=1e-5, noise="own")
    assert float(own.sigma) == pytest.approx(28.897, abs=2e-3)
    for rate, epsilon in ((0.02, 0.5732), (0.05, 1.5606), (0.1, 3.3597), (0.2, 7.3723)):
        one = study("s", h.MODEL, {"h": Participant(100, rate)}, rounds=200, sigma=2, delta=1e-5, noise="own")
        assert float(one.cost("h").epsilon(delta=1e-5)) == pytest.approx(epsilon, abs=2e-3)


def test_a_study_survives_json_and_a_change_changes_its_digest():
    agreed, _ = h.small_study(noise="shared", dropouts=1)
    again = Study.from_json(json.loads(json.dumps(agreed.document())))
    assert again.digest == agreed.digest
    assert again == agreed
    for part, value in (("rounds", 2), ("clip", "2"), ("disjoint", False), ("name", "x")):
        assert Study.from_json({**agreed.document(), part: value}).digest != agreed.digest


@pytest.mark.parametrize("part", ["sigma", "hospitals", "model", "noise", "clip", "schema"])
def test_a_study_with_a_broken_part_is_refused(part):
    agreed, _ = h.small_study()
    with pytest.raises(TacitError) as error:
        Study.from_json({**agreed.document(), part: "nonsense"})
    assert error.value.code in {"study-differs", "bad-parameter"}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"delta": 0.1}, "delta must be a number above 0 and at most"),
        ({"sigma": None}, "epsilon must be given"),
        ({"sigma": 1, "epsilon": 0.1}, "sigma must be enough noise"),
        ({"colluding": 0}, "colluding must be a positive whole number"),
        ({"colluding": 2, "dropouts": 2}, "nobody whose noise stays hidden"),
        ({"noise": "none"}, 'noise must be "own" or "shared"'),
        ({"rounds": 0}, "rounds must be"),
        ({"clip": 0}, "clip must be"),
        ({"rate": 1.5}, "rate must be"),
    ],
)
def test_a_study_that_promises_nothing_is_refused(facts, words):
    with pytest.raises(TacitError, match=words):
        h.small_study(**{"noise": "shared", **facts})


def test_shared_noise_needs_a_key_for_each_hospital():
    two = {"a": Participant(10), "b": Participant(10)}
    with pytest.raises(TacitError, match="public key of its own"):
        study("s", h.MODEL, two, rounds=1, sigma=10, delta=1e-5)
    key = HospitalKey.generate().public
    same = {"a": Participant(10, key=key), "b": Participant(10, key=key)}
    with pytest.raises(TacitError, match="public key of its own"):
        study("s", h.MODEL, same, rounds=1, sigma=10, delta=1e-5)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("sigma", "1e999999999"), ("clip", "1e-999999999"), ("delta", "nan"), ("epsilon", 1.0),
        ("clip", "1/0"), pytest.param("sigma", "9" * 10**6, id="long"), ("rounds", 10**9),
        ("rounds", "3"), ("rounds", True), ("hospitals", []),
    ],
)  # fmt: skip
def test_numbers_of_a_study_that_would_take_for_ever_are_refused(part, value):
    agreed, _ = h.small_study()
    with pytest.raises(TacitError) as error:
        Study.from_json({**agreed.document(), part: value})
    assert error.value.code in {"study-differs", "bad-parameter"}


# whole runs


@pytest.mark.parametrize("noise", ["own", "shared"])
def test_hospitals_train_a_model_and_each_pays_its_own_ledger(noise):
    agreed, keys = h.small_study(noise, rounds=5, size=500, sigma=0.01, delta=1e-6)
    data = {name: h.patients(500, seed=i) for i, name in enumerate(keys)}
    ledgers = {name: tc.Ledger.memory() for name in keys}
    budget = tc.Budget(epsilon=10**7, delta=1e-3)
    hospitals = {
        name: h.small_hospital(name, agreed, keys[name], data=data[name], ledger=ledgers[name], budget=budget)
        for name in keys
    }
    release = Coordinator(agreed, in_process(hospitals)).train()
    X, y = h.patients(1000, seed=9)
    assert np.mean(release.predict(X) == y) > 0.85
    assert release.rounds == 5
    assert set(release.members) == {tuple(keys)}
    assert release.certificate.matches(*ledgers.values())
    assert [one.names for one in release.certificate.members] == list(keys)
    for name, ledger in ledgers.items():
        assert hospitals[name].certificate.matches(ledger)
        assert not hospitals[name].certificate.matches(tc.Ledger.memory())
    law = release.certificate.members[0].fields["mechanisms"][0]
    assert law["numerics"] == "exact"
    assert ("assumes" in law) == (noise == "shared")
    assert ("holds if" in str(release.certificate)) == (noise == "shared")


def test_the_secure_sum_is_the_exact_sum_modulo_two_to_the_64(monkeypatch):
    monkeypatch.setattr("tacit.noise.discrete_gaussian", lambda sigma, shape: np.zeros(shape, dtype=np.int64))
    agreed, keys = h.small_study(hospitals=4, rounds=1)
    data = {name: h.patients(40, seed=i) for i, name in enumerate(keys)}
    hospitals = {name: h.small_hospital(name, agreed, keys[name], data=data[name]) for name in keys}
    coordinator = Coordinator(agreed, in_process(hospitals), learning_rate=1.0, momentum=0.0)
    coordinator.train()
    zero = np.zeros(agreed.model.dimension)
    exact = sum(clip_whole(agreed.model.gradients(zero, *own), 1.0).sum(axis=0) for own in data.values())
    np.testing.assert_array_equal(coordinator.weights, -(exact * (agreed.grid / 160)))


def test_a_model_is_saved_with_its_certificate_and_read_back(tmp_path):
    agreed, keys = h.small_study("own", hospitals=2)
    release = Coordinator(agreed, in_process(h.all_hospitals(agreed, keys))).train()
    release.save(tmp_path / "model.json")
    again = tc.Release.load(tmp_path / "model.json")
    assert isinstance(again.content, FederatedModel)
    X, _ = h.patients(20)
    np.testing.assert_array_equal(again.predict(X), release.predict(X))
    assert again.certificate.fields == release.certificate.fields


def test_the_cost_of_the_run_is_the_largest_only_if_hospitals_are_disjoint():
    costs = {}
    for disjoint in (True, False):
        agreed, keys = h.small_study("own", hospitals=2, disjoint=disjoint)
        release = Coordinator(agreed, in_process(h.all_hospitals(agreed, keys))).train()
        costs[disjoint] = Fraction(release.certificate.fields["promised"]["epsilon"])
    assert costs[False] == 2 * costs[True]


@pytest.mark.parametrize("rates", [(1,), ("1/3", "1/4")])
def test_a_patient_of_several_hospitals_that_share_noise_pays_like_a_group(rates):
    """In each hospital the patient moves the same sum by a clip, against one noise: more than the sum."""
    keys = {f"h{i}": HospitalKey.generate() for i in range(4)}
    members = {
        name: Participant(40, Fraction(rates[i % len(rates)]), key.public)
        for i, (name, key) in enumerate(keys.items())
    }
    agreed = study("transfers", h.MODEL, members, rounds=3, sigma=5, delta=1e-5, disjoint=False)
    ledgers = {name: tc.Ledger.memory() for name in keys}
    hospitals = {n: h.small_hospital(n, agreed, k, ledger=ledgers[n]) for n, k in keys.items()}
    certificate = Coordinator(agreed, in_process(hospitals)).train().certificate
    stated = Cost.from_json(certificate.fields["cost"])
    summed = sum((agreed.cost(name) for name in list(keys)[1:]), agreed.cost("h0"))
    assert stated.epsilon(delta=1e-5) > 1.5 * summed.epsilon(delta=1e-5)
    if rates == (1,):
        one = agreed.mechanism("h0")
        true = 3 * Cost.gaussian_shares(
            sigma=one.sigma, sensitivity=4 * one.sensitivity, shares=one.shares, dimension=one.dimension
        )
        assert stated.epsilon(delta=1e-5) >= true.epsilon(delta=1e-5)
    assert certificate.fields["promised"] == {}
    assert certificate.matches(*ledgers.values())
    assert "not stated" in certificate.report().text()


def test_a_patient_with_many_examples_moves_a_sum_by_one_clip_at_most(monkeypatch):
    monkeypatch.setattr("tacit.noise.rounded_gaussian", lambda sigma, shape: np.zeros(shape, dtype=np.int64))
    agreed, _ = h.small_study("own", hospitals=1, rounds=1)
    X, y = np.full((30, 3), 50.0), np.zeros(30)
    one = h.small_hospital("h0", agreed, data=(X, y), unit="patient_id", owners=["ana"] * 30, per_unit=30)
    sums = unpack(one.handle(h.weights_of(agreed, 1))).array("sum", "i8", agreed.model.dimension)
    assert 0.99 * CLIP_STEPS**2 < int((sums.astype(object) ** 2).sum()) <= CLIP_STEPS**2


def test_one_patient_more_moves_the_exact_sum_by_one_clip_at_most(monkeypatch):
    monkeypatch.setattr("tacit.noise.rounded_gaussian", lambda sigma, shape: np.zeros(shape, dtype=np.int64))
    agreed, _ = h.small_study("own", hospitals=1, rounds=30)
    draw = np.random.default_rng(5)
    hostile = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0]
    for number in range(1, 31):
        X, y = draw.choice(hostile, size=(20, 3)), draw.integers(-1, 3, size=20)
        place = draw.integers(0, 20)
        without = (np.delete(X, place, axis=0), np.delete(y, place))
        weights = draw.normal(size=agreed.model.dimension) * 10.0 ** draw.integers(-3, 4)
        sums = [
            unpack(
                h.small_hospital("h0", agreed, data=data).handle(h.weights_of(agreed, number, weights))
            ).array("sum", "i8", agreed.model.dimension)
            for data in ((X, y), without)
        ]
        assert int(((sums[0] - sums[1]).astype(object) ** 2).sum()) <= CLIP_STEPS**2


def test_a_plan_and_a_model_show_themselves():
    agreed, keys = h.small_study("shared", hospitals=4, dropouts=1, rate=0.5)
    hospitals = h.all_hospitals(agreed, keys)
    shown = str(hospitals["h0"].plan)
    assert "a random sample of 50 % of the patients" in shown
    assert "if all others collude" in shown
    names = {1: {"h3"}, 2: {"h0", "h1"}, 3: set()}
    coordinator = Coordinator(
        agreed,
        lambda sent: in_process(hospitals)(
            {n: m for n, m in sent.items() if n not in names[max(1, coordinator.number)]}
        ),
    )
    release = coordinator.train()
    assert str(release).splitlines()[1] == "1 of 3 rounds was lost: too few hospitals took part"
    picture = release.plot()
    assert [bar.get_height() for bar in picture.axes[0].patches] == [3, 0, 4]
    assert "epsilon" in picture.get_title(loc="left")


def test_hospitals_are_a_part_of_learning():
    assert tc.learn.federated.study is study


@pytest.mark.parametrize("noise", ["own", "shared"])
def test_certificates_of_sampled_rounds_match_and_edits_are_found(noise):
    agreed, keys = h.small_study(noise, rounds=2, rate=0.3, sigma=2)
    ledgers = {name: tc.Ledger.memory() for name in keys}
    hospitals = {n: h.small_hospital(n, agreed, k, ledger=ledgers[n]) for n, k in keys.items()}
    certificate = Coordinator(agreed, in_process(hospitals)).train().certificate
    assert certificate.matches(*ledgers.values())
    for text, other in (('"rate": "3/10"', '"rate": "1/10"'), ('"steps": 1', '"steps": 2')):
        edited = tc.Certificate(json.loads(certificate.to_json().replace(text, other)))
        assert not edited.matches(*ledgers.values())


@pytest.mark.parametrize(
    ("facts", "refused"),
    [
        ({"noise": "shared", "disjoint": False}, True),
        ({"noise": "shared", "disjoint": True}, False),
        ({"noise": "own", "disjoint": False}, False),
    ],
    ids=["shared", "disjoint", "own"],
)
def test_one_account_above_hospitals_that_share_noise_is_refused_before_the_second_charge(facts, refused):
    """It would add up two costs. A patient of both moves one sum twice against one noise: that costs more."""
    agreed, keys = h.small_study(hospitals=3, **facts)
    ledger = tc.Ledger.memory()
    large = tc.Budget(epsilon=10**7, delta=1e-3)
    ledger.create_account("country", unit="row", budget=large)
    ledger.create_account("region", unit="row", budget=large, parent="country")

    def hospital(name, parent):
        X, y = h.patients(40)
        data = tc.learn.examples(
            X, y, unit=tc.Unit.row(), size=40, name=name, budget=large, ledger=ledger, parent=parent
        )
        return Hospital(name, agreed, data, keys[name])

    hospital("h0", "region").begin()
    hospital("h0", "region").begin()  # the same hospital again is no other
    before = ledger.account("country").spent
    for name, parent in (("h1", "region"), ("h2", "country")):
        if refused:
            with pytest.raises(tc.TacitError, match=r"above 'h.' has paid for 'h0' in this study") as refusal:
                hospital(name, parent).begin()
            assert refusal.value.code == "not-allowed"
            assert ledger.account("country").spent == before
        else:
            hospital(name, parent).begin()
    if facts["noise"] == "own":  # three noises, so the costs add up
        assert ledger.account("country").spent.rho == pytest.approx(float(3 * ledger.account("h0").spent.rho))


def test_the_cost_of_a_group_needs_the_certificates_of_all_who_took_part():
    agreed, keys = h.small_study("shared", hospitals=4, disjoint=False, dropouts=1)
    hospitals = h.all_hospitals(agreed, keys)
    silent = set()

    def exchange(sent):
        kind = unpack(next(iter(sent.values()))).kind
        asked = {name: one for name, one in sent.items() if not (kind == "certificate" and name in silent)}
        return in_process(hospitals)(asked)

    silent.add("h3")
    coordinator = Coordinator(agreed, exchange)
    with pytest.raises(tc.TacitError, match=r"took part are missing: h3") as refusal:
        coordinator.train()
    assert refusal.value.code == "too-few-hospitals"
    silent.clear()
    stated = Cost.from_json(coordinator.finish().certificate.fields["cost"])
    assert stated == agreed.cost("h0").group(4)


def test_a_hospital_that_is_lost_after_its_first_round_has_left_its_certificate():
    agreed, keys = h.small_study("shared", hospitals=4, disjoint=False, dropouts=1)
    hospitals = h.all_hospitals(agreed, keys)

    def exchange(sent):
        lost = unpack(next(iter(sent.values()))).fields.get("round", 1) > 1 or "h3" not in hospitals
        if lost:
            hospitals.pop("h3", None)
        return in_process(hospitals)({name: one for name, one in sent.items() if name in hospitals})

    release = Coordinator(agreed, exchange).train()
    assert [len(names) for names in release.members] == [4, 3, 3]
    assert [one.names for one in release.certificate.members] == ["h0", "h1", "h2", "h3"]


def test_a_hospital_without_budget_is_named_with_the_code_of_its_refusal():
    agreed, keys = h.small_study("own", hospitals=3)
    hospitals = h.all_hospitals(agreed, keys)
    hospitals["h2"] = h.small_hospital("h2", agreed, keys["h2"], budget=tc.Budget(epsilon=1e-3, delta=1e-9))
    coordinator = Coordinator(agreed, in_process(hospitals))
    release = coordinator.train()
    assert str(release).splitlines()[1] == "1 of 3 hospitals took part in no round: h2"
    assert coordinator.refusals == {"h2": "h2 cannot answer (budget-exceeded)"}
    assert hospitals["h2"].last_refusal.code == "budget-exceeded"


def test_a_second_training_with_one_study_is_refused_in_words_that_are_true():
    agreed, keys = h.small_study("shared", hospitals=3)
    hospitals = h.all_hospitals(agreed, keys)
    Coordinator(agreed, in_process(hospitals)).train()
    with pytest.raises(tc.TacitError, match="h0 has answered round 2 before"):
        Coordinator(agreed, in_process(hospitals)).train()
