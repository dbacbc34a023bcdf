"""Flower carries the messages: 20 hospitals on a grid in this process, services, and what can go wrong."""

import os

import numpy as np
import pytest

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")  # before Flower is imported
pytest.importorskip("flwr")

from flwr.app import ConfigRecord, RecordDict

import tacit as tc
from tacit import TacitError
from tacit.learn.federated import (
    Client,
    Coordinator,
    FlowerGrid,
    Hospital,
    HospitalKey,
    HospitalService,
    Message,
    Participant,
    ServiceLink,
    Softmax,
    client_app,
    clients,
    flower_exchange,
    in_process,
    pack,
    server_app,
    study,
    unpack,
)


def made(number, *, noise="shared", rounds=4, epsilon=8, features=6):
    """Hospitals with patients of two classes that the first feature separates."""
    keys = {f"hospital {i}": HospitalKey.generate() for i in range(number)}
    listed = {name: Participant(100, key=key.public) for name, key in keys.items()}
    agreed = study(
        "flu",
        Softmax(features, 2),
        listed,
        rounds=rounds,
        epsilon=epsilon,
        delta=1e-3,
        noise=noise,
        disjoint=True,
    )
    hospitals = {}
    for place, (name, key) in enumerate(keys.items()):
        X = np.random.default_rng(place).normal(size=(100, features))
        patients = tc.learn.examples(
            X, (X[:, 0] > 0).astype(int), unit=tc.Unit.row(), size=100, name=name,
            budget=tc.Budget(epsilon=2 * epsilon, delta=1e-2),
        )  # fmt: skip
        hospitals[name] = Hospital(name, agreed, patients, key)
    return agreed, hospitals


def app_of(handlers):
    names = list(handlers)
    return client_app(lambda context: handlers[names[context.node_config["partition-id"]]])


@pytest.mark.parametrize("noise", ["own", "shared"])
def test_twenty_hospitals_train_over_a_grid_in_this_process(noise):
    agreed, hospitals = made(20, noise=noise)
    exchange = flower_exchange(FlowerGrid(app_of(hospitals), 20), list(hospitals))
    release = Coordinator(agreed, exchange).train()
    assert release.rounds == 4
    assert all(len(names) == 20 for names in release.members)
    assert len(release.certificate.members) == 20
    X = np.random.default_rng(99).normal(size=(100, 6))
    assert (release.predict(X) == (X[:, 0] > 0)).mean() > 0.8


def test_the_bytes_are_those_of_the_protocol():
    """Over Flower a hospital gets the same bytes as in this process."""
    seen = {"here": [], "flower": []}

    def recording(where):
        class Recorder:
            name = "north"

            def handle(self, message):
                seen[where].append(message)
                return b"reply"

        return {"north": Recorder()}

    for _ in range(2):
        in_process(recording("here"))({"north": b"\0hello\xff"})
        flower_exchange(FlowerGrid(app_of(recording("flower")), 1), ["north"])({"north": b"\0hello\xff"})
    assert seen["here"] == seen["flower"] == [b"\0hello\xff"] * 2


def test_clients_are_trained_over_flower():
    phones = {f"phone {i}": Client(f"phone {i}", lambda weights: [1 - weights[0]]) for i in range(30)}
    exchange = flower_exchange(FlowerGrid(app_of(phones), 30), list(phones))
    group = clients(list(phones), exchange, size=30, budget=tc.Budget(epsilon=200, delta=1e-2))
    model = group.train([np.zeros(2)], rounds=3, rate=1, clip=2).plan(epsilon=50, delta=1e-2).release()
    assert np.abs(model.weights[0] - 1).max() < 1  # the noise is about 0.05


def test_a_node_that_fails_is_left_out_and_says_nothing():
    class Failing:
        name = "south"

        def handle(self, message):
            raise ValueError("patient 17 has a negative age")

    handlers = {"north": Client("north", lambda weights: weights), "south": Failing()}
    replies = flower_exchange(FlowerGrid(app_of(handlers), 2), list(handlers))({"north": b"x", "south": b"x"})
    assert unpack(replies["south"]).kind == "refusal"
    assert b"17" not in replies["south"]
    assert b"negative" not in replies["south"]


def test_a_hospital_that_cannot_be_opened_is_missing():
    def open_handler(context):
        if context.node_config["partition-id"] == 1:
            raise OSError("no such file: patients.csv")
        return Client("north", lambda weights: weights)

    exchange = flower_exchange(FlowerGrid(client_app(open_handler), 2), ["north", "south"], wait=0)
    assert list(exchange({"north": b"x", "south": b"x"})) == ["north"]


def test_what_went_wrong_when_a_hospital_was_opened_stays_there():
    """Flower sends the words of an exception to the server."""

    def open_handler(context):
        raise ValueError("could not convert string to float: 'patient 17 died'")

    grid = FlowerGrid(client_app(open_handler), 1)
    for kind in ("query.tacit", "train.tacit"):
        asked = grid.create_message(RecordDict({"tacit": ConfigRecord({"bytes": b"x"})}), kind, 1, "")
        [reply] = grid.send_and_receive([asked])
        assert reply.has_content()
        assert "patient" not in str(reply.content)


def test_two_nodes_with_one_name_are_refused():
    grid = FlowerGrid(client_app(lambda context: Client("north", lambda weights: weights)), 2)
    with pytest.raises(TacitError, match="two Flower nodes"):
        flower_exchange(grid, ["north"])


def test_nodes_that_nobody_expects_are_not_asked():
    handlers = {name: Client(name, lambda weights: weights) for name in ("north", "stranger")}
    exchange = flower_exchange(FlowerGrid(app_of(handlers), 2), ["north"], wait=0)
    assert list(exchange({"north": b"x", "stranger": b"x"})) == ["north"]


def test_the_server_app_runs_the_work_on_the_grid():
    from flwr.app import Context, RecordDict

    agreed, hospitals = made(3, noise="own", rounds=2)
    done = []
    app = server_app(lambda exchange: done.append(Coordinator(agreed, exchange).train()), list(hospitals))
    app(FlowerGrid(app_of(hospitals), 3), Context(1, 0, {}, RecordDict(), {}))
    assert done[0].rounds == 2


# a service for each hospital


def test_a_hospital_behind_a_service_keeps_its_secrets_between_messages(tmp_path):
    """Flower may open the app anew for every message: a link has nothing to remember."""
    agreed, hospitals = made(3, rounds=2)
    paths = {name: tmp_path / f"{place}.sock" for place, name in enumerate(hospitals)}
    services = [HospitalService(hospitals[name], path) for name, path in paths.items()]
    names = list(hospitals)

    class Forgetful(FlowerGrid):
        def push_messages(self, messages):
            self._app = client_app(
                lambda context: ServiceLink(
                    names[context.node_config["partition-id"]],
                    paths[names[context.node_config["partition-id"]]],
                )
            )
            return super().push_messages(messages)

    try:
        release = Coordinator(agreed, flower_exchange(Forgetful(client_app(None), 3), names)).train()
    finally:
        for service in services:
            service.close()
    assert release.rounds == 2
    assert not any(path.exists() for path in paths.values())


def test_the_socket_of_a_service_is_private(tmp_path):
    path = tmp_path / "north.sock"
    with HospitalService(Client("north", lambda weights: weights), path):
        assert path.stat().st_mode & 0o077 == 0
        with pytest.raises(TacitError, match="no socket"):
            HospitalService(Client("south", lambda weights: weights), path)
        assert unpack(ServiceLink("north", path).handle(b"x")).kind == "refusal"
    with HospitalService(Client("north", lambda weights: weights), path, group=True):
        assert path.stat().st_mode & 0o777 == 0o660


def test_a_link_without_its_service_refuses(tmp_path):
    reply = unpack(ServiceLink("north", tmp_path / "nobody.sock").handle(pack(Message("begin", "ab"))))
    assert reply.kind == "refusal"
    assert "cannot be reached" in reply.fields["what"]


def test_flower_is_imported_only_when_it_is_asked_for():
    import subprocess
    import sys

    code = "import sys, tacit.learn.federated; print('flwr' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
