"""The noise of quick tests is fixed by their names; whatever else draws, draws afresh."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support import repeatable_noise
from support.repeatable_noise import noise_of, rng
from tacit import noise
from tacit.noise import _bits

WIDE = 2**50


def drawn(name):
    with noise_of(name):
        return (
            noise.discrete_laplace(WIDE),
            tuple(noise.discrete_gaussian(WIDE, size=400_000)[-3:]),
            rng.random(),
        )


def test_a_name_fixes_all_noise_and_another_name_other_noise():
    assert drawn("a") == drawn("a")
    assert all(one != other for one, other in zip(drawn("a"), drawn("b"), strict=True))


def test_noise_goes_on_after_a_fixture():
    with noise_of("test"):
        whole = _bits.words(6)
    with noise_of("test"):
        parts = _bits.words(3)
        drawn("fixture")
        parts += _bits.words(3)
    assert parts == whole


def test_threads_draw_their_own():
    found = []
    with noise_of("threads"):
        for _ in range(3):
            thread = threading.Thread(target=lambda: found.extend(_bits.words(4)))
            thread.start()
            thread.join()
        found += _bits.words(4)
    assert len(set(found)) == 16


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_draws_afresh():
    found = []
    for _ in range(2):
        read, write = os.pipe()
        with noise_of("fork"):
            child = os.fork()
            if child == 0:
                os.write(write, _bits.word().to_bytes(8, "big"))
                os._exit(0)
        os.waitpid(child, 0)
        found.append(os.read(read, 8))
        os.close(read)
        os.close(write)
    assert found[0] != found[1]


def test_the_package_never_reaches_noise_that_a_name_fixes():
    root = Path(__file__).parents[3]
    for file in [*(root / "src").rglob("*.py"), root / "pyproject.toml"]:
        text = file.read_text(encoding="utf-8")
        assert not any(word in text for word in ("fixed_noise", "repeatable_noise", "TACIT_TEST_NOISE")), file


@pytest.mark.skipif(
    repeatable_noise.WORD == "fresh", reason="TACIT_TEST_NOISE=fresh asks for other noise each time"
)
def test_whole_runs_repeat(tmp_path):
    (tmp_path / "test_one.py").write_text(
        "import pytest\nfrom tacit import noise\n"
        "@pytest.fixture(scope='module')\ndef shared():\n    return noise.discrete_laplace(2**50)\n"
        "def test_noise(shared):\n    print('drawn', shared, noise.discrete_laplace(2**50))\n"
        "@pytest.mark.long\ndef test_long():\n    print('afresh', noise.discrete_laplace(2**50))\n"
    )
    (tmp_path / "conftest.py").write_text(
        "from support.repeatable_noise import RepeatableNoise\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'long: draws afresh')\n"
        "    config.pluginmanager.register(RepeatableNoise(), 'repeatable_noise')\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "test_one.py",
    ]
    tests = os.path.dirname(os.path.dirname(repeatable_noise.__file__))  # noqa: PTH120
    outputs = [
        subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": tests},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    first, second = (
        sorted(line for line in lines if "drawn" in line or "afresh" in line) for lines in outputs
    )
    assert ["afresh" in line for line in first] == ["afresh" in line for line in second] == [True, False]
    assert [one == other for one, other in zip(first, second, strict=True)] == [False, True]
