"""Tables: Tacit against plain and hand-bounded DuckDB and against peers, on the same files.

Run: python benchmarks/tables.py [rows ...]     (default 1e6 and 1e7; `make bench-long` adds 1e8)
Times are CPU seconds of the process (all threads), the best of a few runs where a query can be repeated. The
SQL bounded by hand and Tacit's first question both open their engine; plain and later questions find it open.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import tacit as tc
from peers import ask_peer, peer_python

HOSPITALS = [f"H{i:02d}" for i in range(40)]
LIMIT = 10
HEAD = ("plain", "bounded", "first", "/bounded", "snapshot", "then", "/plain")
Q = "CAST(floor(least(greatest(length_of_stay, 0), 30) * 1024 + 0.5) AS BIGINT)"


def make(rows: int, path: Path) -> None:
    """Write visits with a skew: five a patient on average, some with dozens."""
    duckdb.execute(
        f"""COPY (SELECT CAST(floor(pow(random(), 1.6) * {rows // 5}) AS BIGINT) AS patient_id,
        'H' || lpad(CAST(CAST(floor(pow(random(), 1.5) * 40) AS INT) AS VARCHAR), 2, '0') AS hospital,
        'I' || CAST(floor(pow(random(), 3) * 2000) AS INT) AS icd,
        CAST(least(60, -5 * ln(1 - random())) AS DOUBLE) AS length_of_stay,
        CAST(floor(random() * 100) AS INT) AS age
        FROM range({rows})) TO '{path}' (FORMAT parquet)"""
    )


PLAIN = {
    "per hospital": "SELECT hospital, count(*), sum(length_of_stay) FROM '{p}' GROUP BY 1",
    "total": "SELECT count(*), avg(length_of_stay) FROM '{p}'",
    "patients per code": "SELECT icd, count(DISTINCT patient_id) FROM '{p}' GROUP BY 1",
}
_KEPT = """WITH heavy AS MATERIALIZED (SELECT patient_id FROM '{p}' GROUP BY 1 HAVING count(*) > {m}),
kept AS (SELECT patient_id, hospital, icd, length_of_stay FROM '{p}'
         WHERE patient_id NOT IN (SELECT patient_id FROM heavy)
UNION ALL SELECT patient_id, hospital, icd, length_of_stay FROM (SELECT *, row_number() OVER
         (PARTITION BY patient_id ORDER BY hash(patient_id, hospital, icd, length_of_stay)) AS r FROM '{p}'
         WHERE patient_id IN (SELECT patient_id FROM heavy)) WHERE r <= {m}) """
BOUNDED = {
    "per hospital": _KEPT + f"SELECT hospital, count(*), sum({Q}), count({Q}) FROM kept GROUP BY 1",
    "total": _KEPT + f"SELECT count(*), sum({Q}), count({Q}) FROM kept",
    "patients per code": _KEPT + "SELECT icd, count(DISTINCT patient_id) FROM kept GROUP BY 1",
}


def ask(data: tc.Dataset, name: str) -> object:
    match name:
        case "per hospital":
            stay = "length_of_stay"
            return data.group_by("hospital").agg(n=tc.count(), s=tc.sum(stay), m=tc.mean(stay))
        case "count":
            return data.group_by("hospital").agg(n=tc.count())
        case "total":
            return data.agg(n=tc.count(), m=tc.mean("length_of_stay"))
        case _:
            return data.group_by("icd").agg(n=tc.count_units())


def by_hand(text: str) -> None:
    """From nothing to the answer, as our first question goes."""
    with duckdb.connect() as con:
        con.execute(text).fetchall()


def timed(work, best_of: int = 1) -> float:
    seen = []
    for _ in range(best_of):
        start = time.process_time()
        work()
        seen.append(time.process_time() - start)
    return min(seen)


def tacit(path: Path, name: str) -> tuple[float, float, float]:
    """First query, the one that makes the snapshot, and the ones after it."""
    data = tc.protect(
        path,
        unit="patient_id",
        bounds={"length_of_stay": (0, 30)},
        keys={"hospital": HOSPITALS},
        limits={"rows": LIMIT},
        budget=tc.Budget(epsilon=100, delta=1e-3),
    )
    asked = iter(range(1, 100))

    def once() -> None:
        ask(data, name).plan(epsilon=1 + next(asked) / 1000, delta=1e-6).release()

    return timed(once), timed(once), timed(once, 3)


# Counts only: with a sum of floats beside them OpenDP's search for a noise scale did not end within minutes.
OPENDP = """
import json, sys, time, polars as pl, opendp.prelude as dp
dp.enable_features("contrib", "honest-but-curious")
path, hospitals = sys.argv[1], sys.argv[2].split(",")
start = time.process_time()
context = dp.Context.compositor(
    data=pl.scan_parquet(path).select("patient_id", "hospital"),
    privacy_unit=dp.unit_of(contributions=1, identifier="patient_id"), privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1, margins=[dp.polars.Margin(max_length=10**8)])
keys = pl.LazyFrame({"hospital": hospitals})
query = context.query().truncate_per_group(10).group_by("hospital").agg(dp.len()).with_keys(keys)
query.release().collect()
print(json.dumps({"per hospital": time.process_time() - start}))
"""
SMARTNOISE = """
import json, sys, time, pandas as pd
from snsql import Privacy, from_df
start = time.process_time()
frame = pd.read_parquet(sys.argv[1], columns=["patient_id", "hospital", "length_of_stay"])
meta = {"": {"t": {"t": {"max_ids": 10, "row_privacy": False, "rows": len(frame),
  "patient_id": {"type": "int", "private_id": True}, "hospital": {"type": "string"},
  "length_of_stay": {"type": "float", "lower": 0, "upper": 30}}}}}
reader = from_df(frame, privacy=Privacy(epsilon=1.0, delta=1e-6), metadata=meta)
copied = time.process_time() - start
start = time.process_time()
reader.execute("SELECT hospital, COUNT(*) AS n, SUM(length_of_stay) AS s FROM t.t GROUP BY hospital")
print(json.dumps({"per hospital": time.process_time() - start, "copy": copied}))
"""
PIPELINEDP = """
import json, sys, time, pandas as pd, pipeline_dp
start = time.process_time()
frame = pd.read_parquet(sys.argv[1], columns=["patient_id", "hospital", "length_of_stay"])
rows = list(frame.itertuples(index=False, name=None))
accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
params = pipeline_dp.AggregateParams(
    metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM], noise_kind=pipeline_dp.NoiseKind.LAPLACE,
    max_partitions_contributed=5, max_contributions_per_partition=2, min_value=0, max_value=30)
extractors = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1], value_extractor=lambda r: r[2])
out = engine.aggregate(rows, params, extractors, public_partitions=sys.argv[2].split(","))
accountant.compute_budgets(); list(out)
print(json.dumps({"per hospital": time.process_time() - start}))
"""
# The work is done by a Java process beside Python: its CPU seconds are read from the system and added (those
# of its Python workers, which draw 40 numbers, are not). Starting Spark is not counted.
TUMULT = """
import json, os, sys, tempfile, time
from pathlib import Path
os.environ["PYSPARK_PYTHON"] = sys.executable
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").config(
    "spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "8").getOrCreate()
java = spark.sparkContext._gateway.proc.pid
def cpu():
    fields = Path(f"/proc/{java}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
start = cpu()
frame = spark.read.parquet(sys.argv[1]).select("patient_id", "hospital")
session = Session.from_dataframe(PureDPBudget(1), "visits", frame, AddRowsWithID("patient_id"))
keys = KeySet.from_dict({"hospital": sys.argv[2].split(",")})
query = QueryBuilder("visits").enforce(MaxRowsPerID(10)).groupby(keys).count()
session.evaluate(query, PureDPBudget(1)).collect()
print(json.dumps({"per hospital": cpu() - start}))
"""
PEER_SECONDS = 180
PEERS = {
    "OpenDP 0.16 (count)": (("opendp[polars]==0.16.0",), OPENDP),
    "Tumult 0.21 (count)": (("tmlt.analytics==0.21.0",), TUMULT),
    "SmartNoise SQL": (("smartnoise-sql", "pyarrow"), SMARTNOISE),
    "PipelineDP": (("pipeline-dp", "pandas", "pyarrow"), PIPELINEDP),
}


def main() -> None:
    sizes = [int(float(a)) for a in sys.argv[1:]] or [10**6, 10**7]
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            path = Path(folder) / f"{rows}.parquet"
            make(rows, path)
            print(f"\n{rows:,} visits of about {rows // 5:,} patients (CPU seconds)")
            print(f"{'question':20}" + "".join(f"{c:>9}" for c in HEAD))
            first_seen: dict[str, tuple[float, float]] = {}
            for name, plain_sql in PLAIN.items():
                with duckdb.connect() as con:
                    sql = plain_sql.format(p=path)
                    plain = timed(lambda c=con, s=sql: c.execute(s).fetchall(), 3)
                text = BOUNDED[name].format(p=path, m=LIMIT)
                bounded = timed(lambda t=text: by_hand(t), 2)
                first, snapshot, then = tacit(path, name)
                first_seen[name] = (first, then)
                print(
                    f"{name:20}{plain:9.3f}{bounded:9.3f}{first:9.3f}{first / bounded:9.2f}"
                    f"{snapshot:9.2f}{then:9.3f}{then / plain:9.2f}",
                    flush=True,
                )
            if rows <= 10**6:
                first, _, then = tacit(path, "count")
                _peers(path, first_seen | {"count": (first, then)})


def _peers(path: Path, ours: dict[str, tuple[float, float]]) -> None:
    for peer, (requirements, script) in PEERS.items():
        try:
            python = peer_python(*requirements)
            seen = ask_peer(python, script, path, ",".join(HOSPITALS), seconds=PEER_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"{peer:20}did not run: no answer within {PEER_SECONDS} s", flush=True)
            continue
        except Exception as error:
            detail = getattr(error, "stderr", None) or str(error)
            print(f"{peer:20}did not run: {detail.strip().splitlines()[-1][:90]}", flush=True)
            continue
        first, then = ours["count" if "count" in peer else "per hospital"]  # the same work on both sides
        copy = f" after a copy of {seen['copy']:.2f}" if "copy" in seen else ""
        cost = seen["per hospital"]
        whole = cost + seen.get("copy", 0)
        print(
            f"{peer:20}per hospital {cost:8.2f}{copy}: {whole / first:.1f} x our first, "
            f"{cost / then:.0f} x our repeated",
            flush=True,
        )


if __name__ == "__main__":
    main()
