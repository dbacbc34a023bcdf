"""The Spark engine: a session that the user passes in, classic or Spark Connect."""

from tacit.engines.spark._dialect import SPARK, SparkDialect
from tacit.engines.spark._engine import SparkEngine, open_engine

__all__ = ["SparkEngine", "dialect", "open_engine"]


def dialect() -> SparkDialect:
    """Return the dialect of Spark."""
    return SPARK
