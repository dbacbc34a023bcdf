"""A coordinator that sends trap weights: pictures come out of exact sums, and nothing out of a hospital."""

import numpy as np
import pytest

import tacit as tc
from tacit.audit.lab._updates import ScanNetwork, Scans
from tacit.learn.federated import Hospital, Message, Participant, pack, study, unpack
from tacit.learn.federated._gradients import clip_whole

HIDDEN, PATIENTS = 128, 8
SCANS = Scans.of(None, None)


class TwoLayers:
    """The network of the attack lab as a model of a study; its weights are whatever the coordinator sends."""

    dimension = HIDDEN * 64 + HIDDEN + 10 * HIDDEN + 10

    def document(self):
        return {"model": "two-layers", "hidden": HIDDEN}

    def start(self):
        return np.zeros(self.dimension)

    def gradients(self, weights, X, y):
        return network_of(weights).gradients(Scans(np.asarray(X), np.asarray(y)))

    def predict(self, weights, X):
        raise NotImplementedError

    def example(self):
        return np.linspace(0, 1, 128).reshape(2, 64), np.array([0, 1])


def network_of(weights):
    first, bias, second, other = np.split(weights, np.cumsum([HIDDEN * 64, HIDDEN, 10 * HIDDEN]))
    return ScanNetwork(first.reshape(HIDDEN, 64), bias, second.reshape(10, HIDDEN), other, alike=True)


def recovered(network, update, pictures):
    candidates = network.candidates(np.asarray(update, dtype=np.float64))
    apart = [np.abs(candidates - picture).max(axis=1).min() for picture in pictures]
    return float((np.array(apart) <= 0.02).mean())


@pytest.mark.parametrize("epsilon", [1, 8, 50])
def test_trap_weights_get_no_picture_out_of_a_hospital(epsilon):
    some, trap = SCANS.pick(PATIENTS, 31), ScanNetwork.trap(SCANS, HIDDEN, 41)
    weights = np.concatenate(
        [one.ravel() for one in (trap.first, trap.first_bias, trap.second, trap.second_bias)]
    )
    exact = trap.gradients(some)
    assert recovered(trap, exact.sum(axis=0), some.pictures) > 0.6
    assert recovered(trap, clip_whole(exact, 1.0).sum(axis=0), some.pictures) > 0.6  # clipping hides nobody

    agreed = study(
        "scans",
        TwoLayers(),
        {"north": Participant(PATIENTS)},
        rounds=1,
        epsilon=epsilon,
        delta=1e-5,
        noise="own",
    )
    patients = tc.learn.examples(
        some.pictures, some.classes, unit=tc.Unit.row(), size=PATIENTS, name="north",
        budget=tc.Budget(epsilon=10 * epsilon, delta=1e-3),
    )  # fmt: skip
    north = Hospital("north", agreed, patients)
    reply = unpack(north.handle(pack(Message("round", agreed.digest, {"round": 1}, {"weights": weights}))))
    assert recovered(trap, reply.array("sum", "i8", TwoLayers.dimension), some.pictures) == 0
