"""A session for the tests of this engine beside the shared one: it compiles plans, as users' sessions do."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def spark(spark):
    """Return a session with Spark's own way to run plans; the shared one interprets them."""
    beside = spark.newSession()
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled"):
        beside.conf.set(name, "true")
    beside.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    return beside
