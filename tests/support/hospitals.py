"""Small studies for tests: a few hospitals with a few patients each, in one process."""

import numpy as np

import tacit as tc
from tacit.learn.federated import Hospital, HospitalKey, Message, Participant, Softmax, pack, study, unpack

MODEL = Softmax(features=3, classes=2)


def patients(size, seed=0, shift=0.0):
    draw = np.random.default_rng(seed)
    y = np.arange(size) % 2
    return draw.normal(size=(size, 3)) + (2 * y[:, None] - 1) * (1 + shift), y


def small_study(noise="shared", hospitals=4, rounds=3, size=40, keys=None, **facts):
    """Return a study, and the secret keys of its hospitals."""
    keys = keys or {f"h{i}": HospitalKey.generate() for i in range(hospitals)}
    facts = {"sigma": 20, "delta": 1e-5, "disjoint": True, "rounds": rounds, **facts}
    rate = facts.pop("rate", 1)
    members = {name: Participant(size, rate, key.public) for name, key in keys.items()}
    return study("small", facts.pop("model", MODEL), members, noise=noise, **facts), keys


def small_hospital(
    name, agreed, key=None, data=None, budget=None, ledger=None, unit=None, owners=None, per_unit=1
):
    X, y = patients(agreed.hospitals[name].size) if data is None else data
    made = tc.learn.examples(
        X, y, unit=unit or tc.Unit.row(), size=agreed.hospitals[name].size, name=name, owners=owners,
        per_unit=per_unit, budget=budget or tc.Budget(epsilon=10**7, delta=1e-3), ledger=ledger,
    )  # fmt: skip
    return Hospital(name, agreed, made, key)


def all_hospitals(agreed, keys, **more):
    return {name: small_hospital(name, agreed, key, **more) for name, key in keys.items()}


def say(agreed, kind, fields=None, **arrays):
    return pack(Message(kind, agreed.digest, fields or {}, arrays))


def weights_of(agreed, number, weights=None):
    given = np.zeros(agreed.model.dimension) if weights is None else np.asarray(weights, dtype=np.float64)
    return say(agreed, "round", {"round": number}, weights=given)


def ready(agreed, hospitals, number, names=None):
    """Send the weights of a round, and return the signed keys that come back."""
    replies = {
        name: unpack(hospitals[name].handle(weights_of(agreed, number))) for name in names or hospitals
    }
    assert {one.kind for one in replies.values()} == {"ready"}
    return {name: one.fields["key"] for name, one in replies.items()}


def listed(agreed, number, members):
    return say(agreed, "members", {"round": number, "members": members})


def refused(reply):
    """Return the code of a refusal."""
    message = unpack(reply)
    assert message.kind == "refusal", message.kind
    assert not message.arrays
    return message.fields["code"]


def masked(agreed, hospital, number, members):
    """Send a list of members, and return the masked sum that comes back."""
    return unpack(hospital.handle(listed(agreed, number, members))).arrays["masked"]
