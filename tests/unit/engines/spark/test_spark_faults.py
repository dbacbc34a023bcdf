"""Faults on a cluster: the right integers or the one opaque error, and one charge either way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc

pytestmark = pytest.mark.xdist_group("spark")


def test_a_file_replaced_while_it_is_read_costs_one_charge_and_gives_no_answer(
    spark, tmp_path: Path, monkeypatch
):
    from tacit.engines.spark import SparkEngine

    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"u": list(range(50))}), path)
    data = tc.protect(str(path), engine=spark, unit="u", budget=tc.Budget(epsilon=10**6))
    run = SparkEngine._run

    def replaced(self, *given):
        found = run(self, *given)
        pq.write_table(pa.table({"u": list(range(7))}), path)
        os.utime(path, ns=(1, 1))
        return found

    monkeypatch.setattr(SparkEngine, "_run", replaced)
    with pytest.raises(tc.TacitError) as failed:
        data.agg(n=tc.count()).plan(epsilon=1000).release()
    assert failed.value.code == "release-failed"
    assert data.remaining.epsilon == 10**6 - 1000
    monkeypatch.undo()
    assert data.agg(n=tc.count()).plan(epsilon=1001).release().value == 7
    assert data.remaining.epsilon == 10**6 - 2001


_CLUSTER = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import tacit as tc
from pyspark.sql import SparkSession

folder = Path(sys.argv[1])
rng, n = np.random.default_rng(1), 400_000
pq.write_table(
    pa.table({"u": rng.integers(0, 40_000, n), "h": rng.choice(["A", "B"], n), "x": rng.random(n)}),
    folder / "t.parquet", row_group_size=20_000,
)
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for name, value in {
    "spark.driver.memory": "1g", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4", "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1", "spark.speculation": "true",
    "spark.speculation.multiplier": "1.01", "spark.speculation.quantile": "0.1",
    "spark.speculation.interval": "10ms", "spark.speculation.minTaskRuntime": "1ms",
    "spark.sql.files.maxPartitionBytes": "512k",
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
app = spark.sparkContext.applicationId


def executors():
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in words and app.encode() in words:
            found.append(int(place.name))
    return sorted(found)


def ask(budget, kill):
    data = tc.protect(str(folder / "t.parquet"), engine=spark, unit="u", bounds={"x": (0, 1)},
                      limits={"rows": 5}, budget=tc.Budget(epsilon=budget))
    plan = data.group_by("h", keys=["A", "B"]).agg(n=tc.count(), s=tc.sum("x")).plan(epsilon=10**7)
    killed = []
    if kill:
        def strike():
            time.sleep(kill)
            for process in executors()[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
        threading.Thread(target=strike).start()
    try:
        answer = plan.release()["n"].value
    except tc.TacitError as error:
        answer = error.code
    assert data.remaining.epsilon == budget - 10**7
    return answer, killed


def units():
    return sum(min(int(c), 5) for c in np.unique(rng_u, return_counts=True)[1])


rng_u = pq.read_table(folder / "t.parquet")["u"].to_numpy()
calm, _ = ask(10**8, 0)
assert sum(calm) == units(), (calm, units())
struck = 0
for delay in (0.2, 1.0, 2.5):
    answer, killed = ask(10**8, delay)
    assert answer == "release-failed" or sum(answer) == units(), answer
    struck += len(killed)
assert struck, "no executor was killed"
print("answers", calm, "killed", struck)
spark.stop()
"""


@pytest.mark.long
def test_lost_executors_and_speculation_change_no_integer(spark, tmp_path: Path):
    """Two executors of a cluster on this machine, speculation on; one executor is killed in each question."""
    import pyspark

    del spark  # it says whether Spark can run here
    home, package = tmp_path / "home", Path(pyspark.__file__).parent
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(package / part)
    (tmp_path / "cluster.py").write_text(_CLUSTER)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK", "PYSPARK"))}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "cluster.py"), str(tmp_path)],
        env={**inherited, "SPARK_HOME": str(home)},
        capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "answers" in done.stdout


_CONNECT = """
import sys
import tacit as tc
from pyspark.sql import SparkSession
builder = SparkSession.builder.remote("local[2]")
for name, value in {"spark.driver.memory": "1g", "spark.ui.enabled": "false",
                    "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1",
                    "spark.driver.bindAddress": "127.0.0.1"}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
assert ".connect." in type(spark).__module__
before = spark.conf.getAll
data = tc.protect(sys.argv[1], engine=spark, unit="u", bounds={"x": (0, 9)}, limits={"rows": 3, "groups": 2},
                  budget=tc.Budget(epsilon=10**9, delta=0.1))
for epsilon in (10**6, 10**6 + 1):
    release = data.group_by("h", keys=["A", "B"]).agg(n=tc.count(), s=tc.sum("x"), d=tc.count_distinct("x"))
    release = release.plan(epsilon=epsilon).release()
    assert sum(release["n"].value) == 12, release
assert spark.conf.getAll == before
print("connected")
"""


@pytest.mark.long
def test_spark_connect_answers_as_the_classic_session_does(spark, tmp_path: Path):
    pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")
    pytest.importorskip("zstandard", reason="Spark Connect needs zstandard")
    del spark
    table = pa.table(
        {"u": [i // 4 for i in range(16)], "h": ["A", "B"] * 8, "x": [float(i) for i in range(16)]}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    done = subprocess.run(
        [sys.executable, "-c", _CONNECT, str(tmp_path / "t.parquet")],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()[-9:]) == (0, "connected"), done.stderr[-3000:]
