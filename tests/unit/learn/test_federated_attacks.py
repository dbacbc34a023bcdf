"""Attacks on hospitals that train together: a coordinator, or hospitals with it, that break the rules."""

import base64
import copy
import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit as tc
from support import hospitals as h
from tacit.errors import TacitError
from tacit.learn.federated import (
    Coordinator,
    HospitalKey,
    Message,
    Participant,
    Softmax,
    in_process,
    pack,
    study,
    unpack,
)
from tacit.learn.federated._gradients import CLIP_STEPS
from tacit.learn.federated._secure_sums import RoundKey, SignedKey, _signed_words, mask_for


@pytest.fixture
def own():
    agreed, _ = h.small_study("own", hospitals=1)
    return agreed, h.small_hospital("h0", agreed)


@pytest.fixture
def shared():
    agreed, keys = h.small_study("shared", hospitals=4, dropouts=1)
    return agreed, keys, h.all_hospitals(agreed, keys)


def draws(hospital):
    """Return how many instalments of the hospital's run were drawn."""
    return 0 if hospital._run is None else hospital._run.instalments - hospital._run.remaining


# the coordinator asks for more than was agreed


def test_a_round_that_is_asked_twice_gets_the_stored_reply(own):
    agreed, hospital = own
    first = hospital.handle(h.weights_of(agreed, 1))
    assert hospital.handle(h.weights_of(agreed, 1)) == first
    assert hospital.handle(h.weights_of(agreed, 1, np.ones(agreed.model.dimension))) == first
    assert draws(hospital) == 1


def test_the_stored_reply_survives_a_restart(tmp_path):
    agreed, _ = h.small_study("own", hospitals=1)
    ledger = tmp_path / "hospital.ledger"
    first = h.small_hospital("h0", agreed, ledger=ledger).handle(h.weights_of(agreed, 2))
    again = h.small_hospital("h0", agreed, ledger=ledger)
    assert again.handle(h.weights_of(agreed, 2, np.ones(agreed.model.dimension))) == first
    assert draws(again) == 1


def test_a_round_beyond_the_last_is_refused(own):
    agreed, hospital = own
    for number in (1, 2, 3):
        assert unpack(hospital.handle(h.weights_of(agreed, number))).kind == "sum"
    assert h.refused(hospital.handle(h.weights_of(agreed, 4))) == "run-finished"
    assert draws(hospital) == 3


def test_a_round_that_was_never_agreed_is_refused_before_it_is_drawn(own):
    agreed, hospital = own
    assert h.refused(hospital.handle(h.weights_of(agreed, 4))) == "run-finished"
    assert draws(hospital) == 0


def test_two_processes_of_one_hospital_answer_no_more_rounds_than_were_paid_for(tmp_path):
    agreed, _ = h.small_study("own", hospitals=1)
    ledger = tmp_path / "hospital.ledger"
    both = [h.small_hospital("h0", agreed, ledger=ledger) for _ in range(2)]
    for one in both:
        one.begin()
    kinds = [unpack(one.handle(h.weights_of(agreed, number))).kind for number in (1, 2, 3) for one in both]
    assert kinds.count("sum") == 3
    assert kinds.count("refusal") == 3
    last = unpack(both[0].handle(h.weights_of(agreed, 3)))
    assert (last.fields["code"], last.fields["what"]) == ("run-finished", "h0 cannot answer")
    assert "instalments" in both[0].last_refusal.what  # which entry it was stays with the hospital


@pytest.mark.parametrize(
    "change", [{"sigma": 10}, {"rounds": 30}, {"clip": 100}, {"rate": 0.5}, {"dropouts": 1}]
)
def test_a_coordinator_with_a_changed_study_is_refused_before_any_charge(change):
    agreed, keys = h.small_study("shared", hospitals=4)
    other, _ = h.small_study("shared", keys=keys, **change)
    hospital = h.small_hospital("h0", agreed, keys["h0"])
    for kind in ("begin", "round", "members", "certificate"):
        assert h.refused(hospital.handle(h.say(other, kind))) == "study-differs"
    assert hospital._run is None


def test_the_whole_run_is_charged_before_the_first_round():
    agreed, _ = h.small_study("own", hospitals=1, rounds=50, sigma=5)
    ledger = tc.Ledger.memory()
    hospital = h.small_hospital("h0", agreed, ledger=ledger)
    before = ledger.remaining("h0").epsilon
    hospital.handle(h.say(agreed, "begin"))
    spent = before - ledger.remaining("h0").epsilon
    assert draws(hospital) == 0
    for number in range(1, 51):
        hospital.handle(h.weights_of(agreed, number))
    assert before - ledger.remaining("h0").epsilon == spent > 0


def test_an_exhausted_budget_refuses_every_round_and_says_nothing_about_itself():
    agreed, _ = h.small_study("own", hospitals=1, sigma=1)
    hospital = h.small_hospital("h0", agreed, budget=tc.Budget(epsilon=0.01, delta=1e-5))
    for message in (h.say(agreed, "begin"), h.weights_of(agreed, 1), h.weights_of(agreed, 2)):
        reply = unpack(hospital.handle(message))
        assert (reply.kind, reply.fields["code"]) == ("refusal", "budget-exceeded")
        assert reply.fields["what"] == "h0 cannot answer"
        assert "0.01" not in json.dumps(dict(reply.fields))
    assert "epsilon" in str(hospital.last_refusal)  # the hospital itself sees all of it
    with pytest.raises(TacitError) as error:
        Coordinator(agreed, in_process({"h0": hospital})).train()
    assert error.value.code == "too-few-hospitals"


# the coordinator sends nonsense


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(own, value):
    agreed, hospital = own
    weights = np.zeros(agreed.model.dimension)
    weights[3] = value
    assert h.refused(hospital.handle(h.weights_of(agreed, 1, weights))) == "bad-message"
    assert draws(hospital) == 0


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, 1e16])
def test_extreme_weights_give_a_sum_like_any_other(own, value):
    agreed, hospital = own
    reply = unpack(hospital.handle(h.weights_of(agreed, 1, np.full(agreed.model.dimension, value))))
    assert reply.kind == "sum"
    assert np.abs(reply.arrays["sum"]).max() < 2**20 * (40 + 20 * 9)


@pytest.mark.parametrize("number", [0, -1, 1.0, "1", None, True, [1], 2**40])
def test_a_round_that_is_no_number_is_refused(own, number):
    agreed, hospital = own
    message = h.say(agreed, "round", {"round": number}, weights=np.zeros(agreed.model.dimension))
    assert h.refused(hospital.handle(message)) == "bad-message"
    assert draws(hospital) == 0


@pytest.mark.parametrize(
    "weights",
    [np.zeros(3), np.zeros(9), np.zeros(0), np.zeros(8, dtype=np.int64), np.zeros(8, dtype=np.uint64)],
)
def test_weights_of_another_shape_or_type_are_refused(own, weights):
    agreed, hospital = own
    message = h.say(agreed, "round", {"round": 1}, weights=weights)
    assert h.refused(hospital.handle(message)) == "bad-message"


@pytest.mark.parametrize("kind", ["", "show-data", "sum", "refusal"])
def test_a_message_of_an_unknown_kind_is_refused(own, kind):
    agreed, hospital = own
    assert h.refused(hospital.handle(h.say(agreed, kind))) == "bad-message"


@given(st.binary(max_size=100))
@settings(max_examples=50)
def test_whatever_the_bytes_are_a_hospital_answers_with_a_refusal(data):
    agreed, _ = h.small_study("own", hospitals=1)
    assert h.refused(h.small_hospital("h0", agreed).handle(data)) == "bad-message"


def test_replies_hold_nothing_but_what_the_protocol_needs(shared):
    agreed, _, hospitals = shared
    reply = unpack(hospitals["h0"].handle(h.weights_of(agreed, 1)))
    assert set(reply.fields) == {"hospital", "round", "weights", "key"}
    members = list(h.ready(agreed, hospitals, 1).values())
    reply = unpack(hospitals["h0"].handle(h.listed(agreed, 1, members)))
    assert set(reply.fields) == {"hospital", "round"}
    assert set(reply.arrays) == {"masked"}


# lists of members


def members_of(agreed, hospitals, number=1):
    found = h.ready(agreed, hospitals, number)
    return [found[name] for name in sorted(found)]


def test_a_list_below_the_threshold_is_refused(shared):
    agreed, _, hospitals = shared
    members = members_of(agreed, hospitals)
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, members[:2]))) == "members-refused"
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, []))) == "members-refused"
    assert unpack(hospitals["h0"].handle(h.listed(agreed, 1, members[:3]))).kind == "masked"


def test_a_second_list_for_one_round_is_refused(shared):
    """Two overlapping sums would show their difference: the hospitals that are in one of them alone."""
    agreed, _, hospitals = shared
    members = members_of(agreed, hospitals)
    first = hospitals["h0"].handle(h.listed(agreed, 1, members))
    assert unpack(first).kind == "masked"
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, members[:3]))) == "members-refused"
    assert hospitals["h0"].handle(h.listed(agreed, 1, members)) == first


def test_no_sum_can_be_read_when_hospitals_get_different_lists(shared):
    """A node that is named present to some and absent to others is never unmasked."""
    agreed, _, hospitals = shared
    members = members_of(agreed, hospitals)
    three = [
        unpack(hospitals[n].handle(h.listed(agreed, 1, members[:3]))).arrays["masked"] for n in ("h0", "h1")
    ]
    four = [unpack(hospitals[n].handle(h.listed(agreed, 1, members))).arrays["masked"] for n in ("h2", "h3")]
    largest = 2**20 * (4 * 40 + 4 * 20 * 12)
    for some in (three, four, three + four, three + four[:1], [four[0] - three[0]]):
        total = sum(some[1:], start=some[0]).astype(np.int64)
        assert np.abs(total.astype(float)).max() > 1000 * largest  # uniform: 2^-20 a number, 8 numbers


@pytest.mark.parametrize(
    "spoil", ["twice", "unknown", "unsorted", "other-name", "cut", "no-list", "extra", "bytes"]
)
def test_a_list_that_is_not_in_order_is_refused(shared, spoil):
    agreed, _, hospitals = shared
    members = members_of(agreed, hospitals)
    stranger = RoundKey(agreed.digest, 1, "h9", HospitalKey.generate()).signed.document()
    bad = {
        "twice": [members[0], members[0], *members[1:3]],
        "unknown": [*members[:3], stranger],
        "unsorted": members[::-1],
        "other-name": [members[0], ["h1", *members[2][1:]], members[2], members[3]],
        "cut": [members[0], members[1][:2], members[2], members[3]],
        "no-list": {"h0": members[0]},
        "extra": [*members, stranger],
        "bytes": [members[0], ["h1", "zz", "zz"], members[2]],
    }[spoil]
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, bad))) == "members-refused"
    assert unpack(hospitals["h0"].handle(h.listed(agreed, 1, members))).kind == "masked"  # nothing was lost


def test_a_list_without_the_hospital_itself_is_refused(shared):
    agreed, _, hospitals = shared
    members = members_of(agreed, hospitals)
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, members[1:]))) == "members-refused"


def test_the_secret_of_a_pair_depends_on_study_round_list_and_names():
    """Also where a colluding hospital copies the key of another one."""
    identity = HospitalKey.generate()
    own, other = (RoundKey("ab", 1, name, identity) for name in ("h0", "h1"))
    copied = SignedKey("h2", other.signed.key, other.signed.signature)
    about = {"study": "ab", "number": 1, "size": 4}
    masks = [
        mask_for(own, [own.signed, other.signed], **about),
        mask_for(own, [own.signed, copied], **about),
        mask_for(own, [own.signed, other.signed], **about | {"study": "cd"}),
        mask_for(own, [own.signed, other.signed], **about | {"number": 2}),
        mask_for(own, [own.signed, SignedKey("h1", other.signed.key, bytes(64))], **about),
    ]
    assert len({one.tobytes() for one in masks}) == len(masks)


def test_a_key_of_an_earlier_round_is_refused(shared):
    agreed, _, hospitals = shared
    old = members_of(agreed, hospitals, 1)
    new = members_of(agreed, hospitals, 2)
    assert (
        h.refused(hospitals["h0"].handle(h.listed(agreed, 2, [new[0], old[1], *new[2:]])))
        == "members-refused"
    )
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 2, [old[0], *new[1:]]))) == "members-refused"
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, old))) == "members-refused"  # it is over


def test_a_key_that_the_coordinator_made_is_refused(shared):
    agreed, _, hospitals = shared
    members = members_of(agreed, hospitals)
    forged = RoundKey(agreed.digest, 1, "h1", HospitalKey.generate()).signed.document()
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, [members[0], forged, *members[2:]]))) == (
        "members-refused"
    )


def test_a_key_of_another_study_is_refused(shared):
    agreed, keys, hospitals = shared
    other, _ = h.small_study("shared", keys=keys, dropouts=1, sigma=21)
    foreign = RoundKey(other.digest, 1, "h1", keys["h1"]).signed.document()
    members = members_of(agreed, hospitals)
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, [members[0], foreign, *members[2:]]))) == (
        "members-refused"
    )


@pytest.mark.parametrize("point", [bytes(32), b"\x01" + bytes(31)])
def test_a_key_that_makes_every_secret_the_same_is_refused(shared, point):
    """A colluding hospital may sign any bytes as its key, also a point of low order."""
    agreed, keys, hospitals = shared
    members = members_of(agreed, hospitals)
    signature = keys["h3"].sign(_signed_words(agreed.digest, 1, "h3", point))
    weak = SignedKey("h3", point, signature).document()
    assert h.refused(hospitals["h0"].handle(h.listed(agreed, 1, [*members[:3], weak]))) == "members-refused"
    assert unpack(hospitals["h0"].handle(h.listed(agreed, 1, members))).kind == "masked"


def test_colluding_hospitals_see_only_the_sum_of_the_others(monkeypatch):
    """With all secrets of one hospital, the coordinator gets the sum of the other three and nothing less."""
    agreed, keys = h.small_study("shared", hospitals=4)
    hospitals = h.all_hospitals(agreed, keys)
    shares = {}
    for name, one in hospitals.items():
        one.handle(h.weights_of(agreed, 1))
        shares[name] = one._open[1].share.copy()
    members = members_of(agreed, hospitals)
    masked = {
        n: unpack(one.handle(h.listed(agreed, 1, members))).arrays["masked"] for n, one in hospitals.items()
    }
    for name in keys:
        assert (masked[name] != shares[name].astype(np.uint64)).all()
    rest = sum(masked.values()).astype(np.int64) - shares["h3"]
    np.testing.assert_array_equal(rest, shares["h0"] + shares["h1"] + shares["h2"])


def test_masks_are_new_in_every_round_and_for_every_pair():
    agreed, keys = h.small_study("shared", hospitals=4)
    hospitals = h.all_hospitals(agreed, keys)
    seen = set()
    for number in (1, 2, 3):
        for one in hospitals.values():
            one.handle(h.weights_of(agreed, number))
        shares = {n: one._open[number].share.astype(np.uint64) for n, one in hospitals.items()}
        members = members_of(agreed, hospitals, number)
        for name, one in hospitals.items():
            mask = unpack(one.handle(h.listed(agreed, number, members))).arrays["masked"] - shares[name]
            seen |= set(mask.tolist())
    assert len(seen) == 3 * 4 * agreed.model.dimension


# lost hospitals


def test_hospitals_that_are_missing_are_left_out(shared):
    agreed, _, hospitals = shared
    gone = {1: {"h3"}, 2: {"h0", "h1"}, 3: set()}

    def exchange(sent):
        now = max(1, coordinator.number)
        return {n: hospitals[n].handle(m) for n, m in sent.items() if n not in gone[now]}

    coordinator = Coordinator(agreed, exchange)
    release = coordinator.train()
    assert release.members == (("h0", "h1", "h2"), (), ("h0", "h1", "h2", "h3"))
    assert release.rounds == 2
    assert len(release.certificate.members) == 4


def test_a_hospital_that_is_lost_after_the_list_loses_the_round_and_nothing_else(shared):
    agreed, _, hospitals = shared

    def exchange(sent):
        lost = (
            {"h2"}
            if coordinator.number == 2 and unpack(next(iter(sent.values()))).kind == "members"
            else set()
        )
        return {n: hospitals[n].handle(m) for n, m in sent.items() if n not in lost}

    coordinator = Coordinator(agreed, exchange)
    release = coordinator.train()
    assert [len(names) for names in release.members] == [4, 0, 4]


def test_a_lost_reply_is_sent_again_unchanged(shared):
    agreed, _, hospitals = shared
    lost = []

    def exchange(sent):
        replies = in_process(hospitals)(sent)
        if unpack(next(iter(sent.values()))).kind == "members" and len(lost) < 3 and len(sent) == 4:
            lost.append(replies.pop("h1"))
        return replies

    assert [len(names) for names in Coordinator(agreed, exchange).train().members] == [4, 4, 4]
    assert len(lost) == 3


def test_a_restarted_hospital_does_not_mask_a_round_again(tmp_path):
    """Its key and its share are gone; it goes on with the next round."""
    agreed, keys = h.small_study("shared", hospitals=4, dropouts=1)
    others = h.all_hospitals(agreed, {n: k for n, k in keys.items() if n != "h0"})
    first = h.small_hospital("h0", agreed, keys["h0"], ledger=tmp_path / "h0.ledger")
    members = members_of(agreed, {"h0": first, **others})
    assert unpack(first.handle(h.listed(agreed, 1, members))).kind == "masked"
    again = h.small_hospital("h0", agreed, keys["h0"], ledger=tmp_path / "h0.ledger")
    assert h.refused(again.handle(h.weights_of(agreed, 1))) == "instalment-lost"
    assert h.refused(again.handle(h.listed(agreed, 1, members))) == "members-refused"
    assert unpack(again.handle(h.weights_of(agreed, 2))).kind == "ready"
    assert draws(again) == 2


def test_one_share_of_the_noise_is_stored_nowhere(tmp_path):
    agreed, keys = h.small_study("shared", hospitals=4)
    hospital = h.small_hospital("h0", agreed, keys["h0"], ledger=tmp_path / "h0.ledger")
    hospital.handle(h.weights_of(agreed, 1))
    share = hospital._open[1].share
    stored = hospital._run[1].content
    assert stored.sums is None
    assert stored.to_json()["sums"] is None
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert share.tobytes()[:16] not in held
    assert base64.b64encode(share.tobytes())[:20] not in held


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_copy_does_not_mask_the_sum_again(shared):
    agreed, _, hospitals = shared
    members = members_of(agreed, hospitals)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, hospitals["h0"].handle(h.listed(agreed, 1, members[:3])))
        os._exit(0)
    os.waitpid(child, 0)
    assert h.refused(os.read(reader, 10**6)) == "members-refused"
    assert unpack(hospitals["h0"].handle(h.listed(agreed, 1, members))).kind == "masked"


def test_secrets_cannot_be_copied(shared):
    agreed, keys, hospitals = shared
    hospitals["h0"].handle(h.weights_of(agreed, 1))
    for secret in (hospitals["h0"], hospitals["h0"]._open[1].key, keys["h0"]):
        with pytest.raises(TypeError):
            pickle.dumps(secret)
        with pytest.raises(TypeError):
            copy.deepcopy(secret)
    assert keys["h0"].secret().hex() not in repr(keys["h0"])


# hostile data and models


class Broken:
    """A model that fails on some examples, or mixes them."""

    def __init__(self, how):
        self.how = how

    dimension = 3

    def document(self):
        return {"kind": "broken", "how": self.how}

    def start(self):
        return np.zeros(3)

    def example(self):
        return np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([0, 1])

    def gradients(self, weights, X, y):
        if self.how == "fails" and (X > 100).any():
            raise ZeroDivisionError("a patient is above 100")
        if self.how == "mixes":
            return X - X.mean(axis=0)
        if self.how == "short":
            return X[:1]
        return X / 100

    def predict(self, weights, X):
        return X[:, 0]


def test_an_example_on_which_the_model_fails_counts_as_nothing(monkeypatch):
    monkeypatch.setattr("tacit.noise.rounded_gaussian", lambda sigma, shape: np.zeros(shape, dtype=np.int64))
    agreed, _ = h.small_study("own", hospitals=1, model=Broken("fails"))
    X, y = np.ones((10, 3)), np.zeros(10)
    replies = []
    for value in (np.nan, 1000.0):
        X[4] = value
        replies.append(h.small_hospital("h0", agreed, data=(X.copy(), y)).handle(h.weights_of(agreed, 1)))
    assert replies[0] == replies[1]
    assert unpack(replies[0]).arrays["sum"].tolist() == [9 * 10485] * 3


@pytest.mark.parametrize("how", ["mixes", "short"])
def test_a_model_that_mixes_examples_is_refused(how):
    agreed, _ = h.small_study("own", hospitals=1, model=Broken(how))
    with pytest.raises(TacitError, match="must not depend on other examples"):
        h.small_hospital("h0", agreed)


def test_an_empty_hospital_sends_pure_noise():
    agreed, _ = h.small_study("own", hospitals=1)
    hospital = h.small_hospital("h0", agreed, data=(np.zeros((0, 3)), np.zeros(0)))
    sums = unpack(hospital.handle(h.weights_of(agreed, 1))).arrays["sum"]
    assert 0 < np.abs(sums).max() < 2**20 * 20 * 9


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((np.zeros((5, 4)), np.zeros(5)), "features of the shape"),
        ((np.zeros((5, 3)), np.zeros((5, 2))), "features of the shape"),
        ((np.zeros((5, 3), dtype=object), np.zeros(5)), "arrays of numbers"),
        ((np.zeros((5, 3)), np.array(["a"] * 5)), "arrays of numbers"),
    ],
)
def test_data_that_do_not_fit_are_refused_before_any_charge(data, words):
    agreed, _ = h.small_study("own", hospitals=1)
    with pytest.raises(TacitError, match=words):
        h.small_hospital("h0", agreed, data=data)


def test_a_hospital_must_be_the_one_that_the_study_names():
    agreed, keys = h.small_study("shared", hospitals=4)
    X, y = h.patients(40)
    facts = {"unit": tc.Unit.row(), "budget": tc.Budget(epsilon=100, delta=1e-4)}
    good = tc.learn.examples(X, y, size=40, **facts)
    from tacit.learn.federated import Hospital

    with pytest.raises(TacitError, match="name must be one of"):
        Hospital("h9", agreed, good, keys["h0"])
    with pytest.raises(TacitError, match="the secret key of h0"):
        Hospital("h0", agreed, good, keys["h1"])
    with pytest.raises(TacitError, match="the secret key of h0"):
        Hospital("h0", agreed, good)
    with pytest.raises(TacitError, match="declared with the size"):
        Hospital("h0", agreed, tc.learn.examples(X, y, size=41, **facts), keys["h0"])
    with pytest.raises(TacitError, match="features and labels"):
        Hospital("h0", agreed, tc.learn.examples(X, size=40, **facts), keys["h0"])


# hostile replies


@pytest.mark.parametrize("reply", [b"", b"\0" * 100, "other-study", "short", "old-round", "refusal"])
def test_a_coordinator_survives_hostile_replies(reply):
    agreed, keys = h.small_study("own", hospitals=2)
    hospitals = h.all_hospitals(agreed, keys)
    zero = np.zeros(agreed.model.dimension, dtype=np.int64)
    made = {
        "other-study": pack(Message("sum", "ab", {"round": 1}, {"sum": zero})),
        "short": pack(Message("sum", agreed.digest, {"round": 1}, {"sum": zero[:2]})),
        "old-round": pack(Message("sum", agreed.digest, {"round": 77}, {"sum": zero})),
        "refusal": pack(Message("refusal", agreed.digest, {"what": "no"})),
    }.get(reply, reply)

    def exchange(sent):
        found = in_process(hospitals)(sent)
        if unpack(next(iter(sent.values()))).kind == "round":
            found["h1"] = made
            found["stranger"] = made
        return found

    release = Coordinator(agreed, exchange).train()
    assert set(release.members) == {("h0",)}


@pytest.mark.parametrize("how", ["nothing", "empty", "cheap", "list"])
def test_a_certificate_that_does_not_state_the_study_is_left_out(how):
    agreed, keys = h.small_study("own", hospitals=2)
    hospitals = h.all_hospitals(agreed, keys)
    cheap = tc.accounting.Cost.gaussian(sigma=10**6, sensitivity=1).to_json()

    def exchange(sent):
        found = in_process(hospitals)(sent)
        if unpack(next(iter(sent.values()))).kind == "certificate":
            true = unpack(found["h1"]).fields["certificate"]
            made = {"nothing": None, "empty": {}, "cheap": {**true, "cost": cheap}, "list": [1]}[how]
            found["h1"] = pack(Message("certificate", agreed.digest, {"certificate": made}))
        return found

    coordinator = Coordinator(agreed, exchange)
    assert coordinator.train().certificate.names == "h0"
    assert "certificate" in coordinator.refusals["h1"]


def test_a_second_coordinator_does_not_take_old_sums_for_new_weights():
    agreed, keys = h.small_study("own", hospitals=2)
    hospitals = h.all_hospitals(agreed, keys)
    first = Coordinator(agreed, in_process(hospitals)).train()
    again = Coordinator(agreed, in_process(hospitals)).train()
    np.testing.assert_array_equal(again.weights, first.weights)  # the same questions, so the same replies
    other = Coordinator(agreed, in_process(hospitals), learning_rate=0.5)
    assert [len(names) for names in other.train().members] == [2, 0, 0]
    assert "other weights" in other.refusals["h0"]


# what the promise is worth when it is broken


def test_fewer_hidden_shares_cost_what_the_table_says():
    """Ten hospitals, six hidden shares planned; epsilon where there are more or fewer in fact."""
    ten = {f"h{i}": Participant(100, key=HospitalKey.generate().public) for i in range(10)}
    agreed = study("s", h.MODEL, ten, rounds=60, epsilon=1, delta=1e-5, colluding=1, dropouts=3)
    assert (agreed.shares, agreed.least) == (6, 7)
    assert float(agreed.sigma) == pytest.approx(28.897, abs=2e-3)
    for honest, epsilon in ((10, 0.756), (9, 0.801), (6, 1.0), (5, 1.105), (3, 1.465), (1, 2.706)):
        assert float(agreed.cost("h0", honest=honest).epsilon(delta=1e-5)) == pytest.approx(
            epsilon, abs=1.5e-3
        )


def test_a_plan_shows_what_happens_if_all_others_collude():
    agreed, keys = h.small_study("shared", hospitals=4)
    facts = dict(h.small_hospital("h0", agreed, keys["h0"]).plan.facts)
    assert facts["hidden shares"] == "at least 3 in each sum of at least 4 hospitals"
    assert facts["if all others collude"].startswith("epsilon ")


def test_threads_that_ask_for_one_round_get_one_draw(own):
    agreed, hospital = own
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(hospital.handle, [h.weights_of(agreed, 1)] * 16))
    assert len(set(replies)) == 1
    assert draws(hospital) == 1


# --- weights that enlarge the last bit of a float ---


def cancelling(features=20, classes=2, patients=41, seed=0):
    """Return patients and weights: huge weights cancel, and what is left depends on the order of a sum."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(patients, features))
    X[:, :3] = np.eye(3)[draw.integers(0, 3, patients)]
    X[:, 3] = 40.0  # gradients point the same way
    table = np.zeros((features + 1, classes))
    table[:, 0] = 10 * np.abs(draw.normal(size=features + 1))
    table[:3, 0], table[3, 0], table[-1, 0] = 1e17, 0, -1e17
    return X, np.zeros(patients), table.ravel()


@pytest.mark.parametrize("classes", [2, 10])
def test_no_patient_shows_in_the_last_bit_of_another_ones_gradient(classes):
    for seed in range(5):
        X, y, weights = cancelling(classes=classes, seed=seed)
        model = Softmax(20, classes)
        for scale in (1.0, 1e-17):
            whole = model.gradients(scale * weights, X, y)
            for start in range(len(X)):
                some = model.gradients(scale * weights, X[start:], y[start:])
                np.testing.assert_array_equal(some, whole[start:])


class Matrices:
    """A model of another library: it multiplies matrices, which rounds otherwise if there are more lines."""

    dimension = 42

    def document(self):
        return {"kind": "matrices"}

    def start(self):
        return np.zeros(42)

    def example(self):
        return np.linspace(0, 1, 40).reshape(2, 20), np.zeros(2)

    def gradients(self, weights, X, y):
        inputs = np.column_stack([X, np.ones(len(X))])
        ahead = np.diff(inputs @ weights.reshape(21, 2), axis=1)
        return np.repeat(inputs / (1 + np.exp(np.clip(ahead, -50, 50))), 2, axis=1)

    def predict(self, weights, X):
        raise NotImplementedError


@pytest.mark.parametrize("model", [Softmax(20, 2), Matrices()], ids=["own", "other"])
def test_weights_that_cancel_do_not_make_one_patient_move_the_others(model, monkeypatch):
    monkeypatch.setattr("tacit.noise.rounded_gaussian", lambda sigma, shape: np.zeros(shape, dtype=np.int64))
    agreed, _ = h.small_study("own", hospitals=1, rounds=1, model=model)
    for patients in range(2, 48):
        X, y, weights = cancelling(patients=patients, seed=1)
        sums = []
        for some in (slice(0, None), slice(1, None), slice(0, 1)):
            hospital = h.small_hospital("h0", agreed, data=(X[some], y[some]))
            sums.append(unpack(hospital.handle(h.weights_of(agreed, 1, weights))).arrays["sum"])
        assert int(((sums[0] - sums[1]).astype(object) ** 2).sum()) <= CLIP_STEPS**2
        np.testing.assert_array_equal(sums[0], sums[1] + sums[2])


def test_a_model_that_promises_separate_gradients_and_mixes_their_last_bits_is_refused():
    agreed, _ = h.small_study("own", hospitals=1, model=Rounding())
    with pytest.raises(TacitError, match="must not depend on other examples"):
        h.small_hospital("h0", agreed)


class Rounding(Broken):
    """It says that its gradients are separate, but they differ in their last bits."""

    separate = True

    def __init__(self):
        super().__init__("rounding")

    def gradients(self, weights, X, y):
        return X / 100 * (1 + 1e-15 * len(X))
