"""Parquet files in object storage: what is refused, what is read before a charge, and a file that changes.

The tests that read need DuckDB's extension httpfs. It comes from DuckDB's own server, and for DuckDB below 2
also as the package duckdb-extension-httpfs.
"""

from __future__ import annotations

import http.server
import re
import threading

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.engines import read_source
from tacit.engines.sources import _parquet as remote
from tacit.errors import TacitError
from tacit.tables import read_config

ADDRESS = "https://ann:secret@storage.example.org/visits.parquet?signature=secret"


def refusal(work) -> TacitError:
    with pytest.raises(TacitError) as caught:
        work()
    return caught.value


def test_an_address_is_refused_with_a_fix_where_the_extension_is_missing(monkeypatch):
    monkeypatch.setattr(remote, "_can_load", lambda: False)
    error = refusal(lambda: tc.protect(ADDRESS, unit="pid", budget=tc.Budget(epsilon=1)))
    assert error.code == "missing-extra"
    assert "INSTALL httpfs" in str(error)
    assert "secret" not in str(error)


def test_rows_are_not_carried_in_the_clear():
    error = refusal(lambda: read_source("http://storage.example.org/visits.parquet"))
    assert "https://storage.example.org/visits.parquet" in str(error)


@pytest.mark.parametrize(
    "address", ["s3://hospital/visits.csv", "s3://hospital/visits/", "s3://hospital/2026-*.parquet"]
)
def test_only_one_parquet_file_can_be_named(address):
    assert "Parquet" in str(refusal(lambda: read_source(address)))


def test_a_config_keeps_an_address_as_it_is():
    text = '[datasets.visits]\nsource = "s3://h/v.parquet"\nunit = "pid"\nbudget = {epsilon = 1}'
    assert read_config(text).files("visits") == ["s3://h/v.parquet"]


class Storage:
    """A small web server over a folder: serves ranges, as object storage does, and notes them."""

    def __init__(self, folder):
        self.folder, self.asked = folder, []
        storage = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                storage.answer(self, body=False)

            def do_GET(self):
                storage.answer(self, body=True)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, request, *, body):
        file = self.folder / request.path.partition("?")[0].lstrip("/")
        if not file.exists():
            request.send_response(404)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        content, stat = file.read_bytes(), file.stat()
        wanted = re.match(r"bytes=(\d+)-(\d*)", request.headers.get("Range") or "")
        start, end = 0, len(content) - 1
        if body and wanted:
            start, end = int(wanted[1]), int(wanted[2] or end)
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        else:
            request.send_response(200)
        if body:
            self.asked.append((start, end))
        request.send_header("Accept-Ranges", "bytes")
        request.send_header("ETag", f'"{stat.st_mtime_ns}"')
        request.send_header("Last-Modified", request.date_time_string(int(stat.st_mtime)))
        request.send_header("Content-Length", str(end - start + 1))
        request.end_headers()
        if body:
            request.wfile.write(content[start : end + 1])

    def address(self, name):
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def storage(tmp_path):
    if not remote._can_load():
        pytest.skip("DuckDB's extension httpfs is not installed")
    made = Storage(tmp_path)
    yield made
    made.close()


def write_visits(path, rows):
    duckdb.connect().execute(f"COPY (SELECT i AS pid, random() AS x FROM range({rows}) t(i)) TO '{path}'")


def visits(address, **facts):
    return tc.protect(address, unit="pid", budget=tc.Budget(epsilon=10**4), **facts)


def count(data, epsilon):
    return data.agg(n=tc.count()).plan(epsilon=epsilon).release()["n"].value[0]


def test_only_the_footer_is_read_before_a_charge(storage, tmp_path):
    write_visits(tmp_path / "v.parquet", 200_000)
    data = visits(storage.address("v.parquet"))
    data.agg(n=tc.count()).plan(epsilon=1)
    assert data.columns == ("pid", "x")
    size = (tmp_path / "v.parquet").stat().st_size
    assert min(start for start, _ in storage.asked) > size - 2**15


def test_a_remote_file_is_counted_and_read_again_when_it_has_changed(storage, tmp_path):
    write_visits(tmp_path / "v.parquet", 1000)
    data = visits(storage.address("v.parquet?signature=secret"))
    assert abs(count(data, 1000) - 1000) < 1
    write_visits(tmp_path / "v.parquet", 1100)
    assert abs(count(data, 1001) - 1100) < 1
    assert not data._engine._as_bytes  # it was read in place, not fetched as a whole


def test_text_that_is_not_utf8_does_not_fail_a_remote_question(storage, tmp_path):
    texts = pa.array([b"a", b"\xff", b"a"], pa.binary()).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"pid": [1, 2, 3], "who": texts}), tmp_path / "t.parquet")
    data = visits(storage.address("t.parquet"))
    release = data.group_by("who", keys=["a"]).agg(n=tc.count()).plan(epsilon=1000).release()
    assert abs(release["n"].value[0] - 2) < 1


def test_a_file_that_is_gone_is_refused_before_the_charge_without_its_signature(storage, tmp_path):
    write_visits(tmp_path / "v.parquet", 10)
    data = visits(storage.address("v.parquet?signature=secret"))
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    (tmp_path / "v.parquet").unlink()
    error = refusal(plan.release)
    assert error.code != "release-failed"
    assert "secret" not in str(error)
    assert data.remaining.epsilon == 10**4


def test_the_connection_sees_no_other_address(storage, tmp_path):
    for name in ("v.parquet", "w.parquet"):
        write_visits(tmp_path / name, 10)
    data = visits(storage.address("v.parquet"))
    count(data, 1000)
    con = data._engine._connection
    with pytest.raises(duckdb.Error):
        con.execute(f"SELECT * FROM '{storage.address('w.parquet')}'").fetchall()


def test_an_address_of_s3_is_read_in_place(storage, tmp_path):
    (tmp_path / "hospital").mkdir()
    write_visits(tmp_path / "hospital" / "v.parquet", 500)
    server = storage.address("").split("/")[2]
    where = f"s3_endpoint={server}&s3_use_ssl=false&s3_url_style=path&s3_region=here"
    data = visits(f"s3://hospital/v.parquet?{where}&s3_access_key_id=a&s3_secret_access_key=b")
    assert abs(count(data, 1000) - 500) < 1
    assert not data._engine._as_bytes
