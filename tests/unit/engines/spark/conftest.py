"""One Spark session for all tests of this engine in a process; skipped where there is no Java."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
from pathlib import Path

import pytest


def _reason() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed"
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        return "there is no Java, which Spark needs"
    return ""


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Return a local session with hostile settings: Tacit's own session must not inherit them."""
    if reason := _reason():
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.ERROR)
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
