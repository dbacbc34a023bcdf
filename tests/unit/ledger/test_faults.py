"""A disk that is full, fails or lies: nothing acknowledged is lost, nothing refused is charged."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger

# Stands between SQLite and the kernel; what it does is written in a file that the test changes.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ours(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return strstr(path, ".ledger-wal") != NULL || (n > 7 && strcmp(path + n - 7, ".ledger") == 0);
}

static int beside(int fd) {  /* any file of the ledger: also its shared memory */
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return strstr(path, ".ledger") != NULL;
}

static char mode(void) {
  char c = 0;
  int fd = open(getenv("FAULT_MODE"), O_RDONLY);
  if (fd >= 0) { if (read(fd, &c, 1) != 1) c = 0; close(fd); }
  return c;
}

static void count(void) {
  int fd = open(getenv("FAULT_COUNT"), O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (fd >= 0) { if (write(fd, "x", 1) != 1) abort(); close(fd); }
}

static int sync_(int fd, const char *name) {
  if (ours(fd)) {
    count();
    if (mode() == 's') { errno = EIO; return -1; }
  }
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return sync_(fd, "fsync"); }
int fdatasync(int fd) { return sync_(fd, "fdatasync"); }

static __thread int half_done;
static ssize_t pwrite_(int fd, const void *b, size_t n, off_t o, const char *name) {
  if (beside(fd)) switch (mode()) {
    case 'F': errno = ENOSPC; return -1;
    case 'q': errno = EDQUOT; return -1;
  }
  if (ours(fd)) switch (mode()) {
    case 'f': errno = ENOSPC; return -1;
    case 'e': errno = EIO; return -1;
    case 'h':
      if (half_done) { errno = ENOSPC; return -1; }
      half_done = 1; n /= 2; break;
    default: half_done = 0;
  }
  return ((ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name))(fd, b, n, o);
}
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { return pwrite_(fd, b, n, o, "pwrite"); }
ssize_t pwrite64(int fd, const void *b, size_t n, off_t o) { return pwrite_(fd, b, n, o, "pwrite64"); }

static int fcntl_(int fd, int command, void *argument, const char *name) {
  if (mode() == 'l' && (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK)) return 0;
  return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, name))(fd, command, argument);
}
int fcntl(int fd, int command, ...) {
  va_list rest; va_start(rest, command); void *a = va_arg(rest, void *); va_end(rest);
  return fcntl_(fd, command, a, "fcntl");
}
int fcntl64(int fd, int command, ...) {
  va_list rest; va_start(rest, command); void *a = va_arg(rest, void *); va_end(rest);
  return fcntl_(fd, command, a, "fcntl64");
}
"""

SCRIPT = """
import json, os, sys
from pathlib import Path
from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger

path, fault = Path(sys.argv[1]), sys.argv[2]
mode, syncs = Path(os.environ["FAULT_MODE"]), Path(os.environ["FAULT_COUNT"])
seen = {"acknowledged": [], "refused": [], "syncs": []}
ledger = Ledger.open(path)
ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))

def charge(i):
    before = syncs.stat().st_size if syncs.exists() else 0
    try:
        ledger.charge("visits", Cost.pure(0.01), key=f"k{i}", purpose="x" * 1500)
        seen["acknowledged"].append(f"k{i}")
        seen["syncs"].append(syncs.stat().st_size - before)
    except TacitError as error:
        seen["refused"].append([f"k{i}", error.code])

for i in range(5):
    charge(i)
mode.write_text(fault)
for i in range(5, 8):
    charge(i)
mode.write_text("")
for i in range(8, 10):
    charge(i)
seen["spent"] = str(ledger.account("visits").spent.epsilon * 100)
print(json.dumps(seen))
os._exit(0)  # no farewell: what counts is what is on the disk
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and Linux to stand between SQLite and the disk")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True
    )
    return folder / "shim.so"


def live(shim, folder, fault, script=SCRIPT, at_first=""):
    mode = folder / "mode"
    mode.write_text(at_first)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "FAULT_MODE": str(mode),
        "FAULT_COUNT": str(folder / "n"),
    }
    done = subprocess.run(
        [sys.executable, "-c", script, folder / "a.ledger", fault],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def keys(ledger):
    return {entry.key for entry in ledger.history("visits") if entry.kind == "charge"}


def test_every_acknowledged_charge_was_synced_to_the_disk(shim, tmp_path):
    seen = live(shim, tmp_path, "")
    assert seen["acknowledged"] == [f"k{i}" for i in range(10)]
    assert min(seen["syncs"]) >= 1


@pytest.mark.parametrize("fault", ["f", "h", "q"], ids=["full disk", "short write, then full", "full quota"])
def test_a_full_disk_refuses_and_recovers(shim, tmp_path, fault):
    seen = live(shim, tmp_path, fault)
    assert [code for _, code in seen["refused"]] == ["disk-full"] * 3
    assert seen["spent"] == "7"
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        assert keys(ledger) == set(seen["acknowledged"])
        assert ledger.account("visits").spent.epsilon * 100 == 7
        assert ledger.verify(witness=ledger.witness).complete


OPENS = """
import json, os, sys
from tacit.errors import TacitError
from tacit.ledger import Ledger

try:
    with Ledger.open(sys.argv[1]) as ledger:
        print(json.dumps([None, str(ledger.verify())]))
except TacitError as error:
    print(json.dumps([error.code, error.what]))
os._exit(0)
"""


@pytest.mark.parametrize("fault", ["F", "q"], ids=["full disk", "full quota"])
def test_looking_at_a_ledger_on_a_full_disk_does_not_seal_it(shim, tmp_path, fault):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
    assert live(shim, tmp_path, "", OPENS, at_first=fault)[0] == "disk-full"
    assert [file.name for file in tmp_path.glob("*.sealed")] == []
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.charge("visits", Cost.pure(0.01))
        assert ledger.verify(witness=ledger.witness).complete


def test_a_file_system_whose_locks_do_nothing_is_refused(shim, tmp_path):
    code, what = live(shim, tmp_path, "", OPENS, at_first="l")
    assert code == "not-durable"
    assert "locks beside" in what
    assert live(shim, tmp_path, "", OPENS)[0] is None  # the same place with locks that work
    assert [file.name for file in tmp_path.iterdir() if "lock-" in file.name] == []


@pytest.mark.parametrize("fault", ["s", "e"], ids=["failing fsync", "failing write"])
def test_a_failing_disk_seals_the_ledger_for_everybody(shim, tmp_path, fault):
    seen = live(shim, tmp_path, fault)
    assert [code for _, code in seen["refused"]] == ["ledger-sealed"] * 5
    assert seen["acknowledged"] == [f"k{i}" for i in range(5)]
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        with pytest.raises(TacitError, match="code: ledger-sealed"):
            ledger.charge("visits", Cost.pure(0.01))
        assert set(seen["acknowledged"]) <= keys(ledger)
        assert ledger.sealed
        ledger.unseal(statement="disk checked", who="operator")
        ledger.charge("visits", Cost.pure(0.01))
        assert ledger.verify(witness=ledger.witness).complete
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        assert ledger.sealed is None


def test_a_store_that_may_not_grow_refuses_and_loses_nothing(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        connection = ledger._writer.store._write
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")
        charged = 0
        with pytest.raises(TacitError, match="code: disk-full"):
            for _ in range(100):
                ledger.charge("visits", Cost.pure(0.01), purpose="x" * 1500)
                charged += 1
        assert charged > 0
        assert ledger.account("visits").spent.epsilon * 100 == charged
        connection.execute("PRAGMA max_page_count = 1000000")
        ledger.charge("visits", Cost.pure(0.01))
        assert ledger.verify(witness=ledger.witness).complete


def test_a_release_that_cannot_be_stored_is_the_opaque_error(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        connection = ledger._writer.store._write
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(TacitError, match="code: release-failed"):
            ledger.draw("visits", Cost.pure(0.5), plan="p", compute=lambda _: b"x" * 10**6)
        assert ledger.account("visits").spent.epsilon * 2 == 1


@pytest.fixture
def unwritable(tmp_path, monkeypatch):
    """A ledger whose witness is on a disk that is full."""

    def full(file, data, offset):
        raise OSError(28, "No space left on device")

    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3))
        with monkeypatch.context() as broken:
            broken.setattr("tacit.ledger.checks._witness.os.pwrite", full)
            yield ledger, broken


def test_a_witness_that_cannot_be_written_does_not_lose_the_charge(unwritable):
    ledger, _ = unwritable
    ledger.charge("visits", Cost.pure(0.5))
    assert ledger.account("visits").spent.epsilon * 2 == 1
    report = ledger.verify(witness=ledger.witness)
    assert report.ok
    assert report.witnessed == report.entries - 1


def test_no_second_charge_is_made_while_the_witness_cannot_be_written(unwritable):
    ledger, broken = unwritable
    drawn = ledger.draw("visits", Cost.pure(0.5), plan="p", compute=lambda _: b"about 40")
    head = ledger.head
    for _ in range(2):
        with Ledger.open(ledger.name) as other, pytest.raises(TacitError, match="No space left") as caught:
            other.charge("visits", Cost.pure(0.5))
        assert caught.value.code == "ledger-unavailable"
        with pytest.raises(TacitError, match="No space left"):
            ledger.draw("visits", Cost.pure(0.5), plan="q", compute=lambda _: b"about 50")
    again = ledger.draw("visits", Cost.pure(0.5), plan="p", compute=lambda _: b"not run")
    assert again.payload == drawn.payload  # what was paid for is still given
    assert ledger.head == head
    broken.undo()
    ledger.charge("visits", Cost.pure(0.5))
    assert ledger.verify(witness=ledger.witness).witnessed == ledger.head.count
