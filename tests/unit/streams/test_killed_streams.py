"""A stream whose process is killed goes on: no day is drawn twice, none is lost, nothing is paid twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tacit as tc
from tacit.streams import open_stream

SCRIPT = Path(__file__).with_name("killed_stream.py")
DAYS = 6
MOMENTS = [
    ("declared", 0),
    ("begun", 0),
    ("written", 2),
    ("linked", 2),
    ("appended", 3),
    ("claimed", 3),
    ("computed", 4),
    ("drawn", 4),
    ("released", 5),
    ("drawn", DAYS),
]
FEW = [("begun", 0), ("linked", 2), ("claimed", 3), ("drawn", 4)]


def go_on(folder, moment, day):
    line = [sys.executable, SCRIPT, folder, str(DAYS), moment, str(day)]
    return subprocess.run(line, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "moments", [FEW, pytest.param(MOMENTS, marks=pytest.mark.long)], ids=["some moments", "all moments"]
)
def test_a_killed_stream_goes_on(tmp_path, moments):
    seen = {}
    for moment, day in moments:
        killed = go_on(tmp_path, moment, day)
        assert killed.returncode == -signal.SIGKILL, (moment, killed.stderr)
        if moment != "declared":  # what was released before stays as it is
            ledger = tc.Ledger.open(tmp_path / "flu.ledger")
            flu = open_stream(tmp_path / "flu", ledger=ledger)
            for number in range(1, flu.status().plans[0][1] + 1):
                days = flu.release(flu.horizon.name(number)).daily["cases"].value
                for at, value in enumerate(days, 1):
                    assert seen.setdefault(at, value) == value
            ledger.close()
    ended = go_on(tmp_path, "never", 0)
    assert ended.returncode == 0, ended.stderr
    ledger = tc.Ledger.open(tmp_path / "flu.ledger")
    flu = open_stream(tmp_path / "flu", ledger=ledger)
    series = flu.release(flu.horizon.name(DAYS)).content
    assert [round(x) for x in series.daily["cases"].value] == list(range(1, DAYS + 1))
    assert round(series.totals["cases"].value[-1]) == sum(range(1, DAYS + 1))
    assert series.daily["cases"].value[: len(seen)] == tuple(seen[n] for n in sorted(seen))
    charges = [entry for entry in ledger.history("flu") if entry.kind in {"charge", "run"}]
    assert len(charges) == 1
    assert not list((tmp_path / "flu" / "days").glob("*.parquet.*"))
    assert ledger.verify()
    ledger.close()


@pytest.mark.long
def test_a_stream_that_is_killed_at_any_time_goes_on(tmp_path):
    """Kill after a short time that grows, until the process comes to its end by itself."""
    for tenths in range(10, 90, 5):
        line = [sys.executable, SCRIPT, tmp_path, str(DAYS), "never", "0"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.communicate(timeout=tenths / 10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        assert process.returncode in {0, -signal.SIGKILL}
        if process.returncode == 0:
            break
    assert go_on(tmp_path, "never", 0).returncode == 0
    ledger = tc.Ledger.open(tmp_path / "flu.ledger")
    series = open_stream(tmp_path / "flu", ledger=ledger).release(f"2026-01-0{DAYS}").content
    assert [round(x) for x in series.daily["cases"].value] == list(range(1, DAYS + 1))
    ledger.close()
