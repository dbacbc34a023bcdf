"""A real Flower simulation: apps run in Ray's processes, and patients stay with the hospitals' services."""

import os

import numpy as np
import pytest

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")  # before Flower is imported
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
pytest.importorskip("flwr")
pytest.importorskip("ray", reason="the extra flwr[simulation] is not installed")

import tacit as tc
from support import hospitals as small
from tacit.learn.federated import (
    Client,
    Coordinator,
    HospitalService,
    ServiceLink,
    client_app,
    clients,
    server_app,
)

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]  # Ray and Flower warn a lot


def simulate(work, app, names):
    from flwr.simulation import run_simulation

    run_simulation(
        server_app(work, names, wait=60, timeout=60), app, num_supernodes=len(names),
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2}},
    )  # fmt: skip


@pytest.mark.parametrize("noise", ["own", "shared"])
def test_hospitals_train_in_a_flower_simulation(noise, tmp_path):
    agreed, keys = small.small_study(noise, hospitals=4, rounds=3, sigma=3, size=60)
    hospitals = small.all_hospitals(agreed, keys)
    names = list(hospitals)
    paths = {name: str(tmp_path / f"{name}.sock") for name in names}
    services = [HospitalService(hospitals[name], paths[name]) for name in names]
    saved = tmp_path / "model.json"

    def open_link(context):
        name = names[int(context.node_config["partition-id"])]
        return ServiceLink(name, paths[name])

    try:
        simulate(
            lambda exchange: Coordinator(agreed, exchange).train().save(saved), client_app(open_link), names
        )
    finally:
        for service in services:
            service.close()
    release = tc.Release.load(saved)
    assert release.rounds == 3
    assert [len(members) for members in release.members] == [4, 4, 4]
    assert len(release.certificate.members) == 4
    assert np.isfinite(release.weights).all()


def test_clients_train_in_a_flower_simulation(tmp_path):
    names = [f"phone {i}" for i in range(6)]
    saved = tmp_path / "model.json"

    def work(exchange):
        group = clients(names, exchange, size=6, budget=tc.Budget(epsilon=500, delta=0.1))
        plan = group.train([np.zeros(2)], rounds=2, rate=1, clip=2).plan(epsilon=50, delta=0.1)
        plan.release().save(saved)

    def open_client(context):
        name = f"phone {context.node_config['partition-id']}"
        return Client(name, lambda weights: [1 - weights[0]])

    simulate(work, client_app(open_client), names)
    weights = tc.Release.load(saved).weights[0]
    assert np.abs(weights - 1).max() < 2  # the noise is about 0.2
