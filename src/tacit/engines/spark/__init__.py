"""The Spark engine: a session that the user passes in, classic or Spark Connect.

- ``_engine``: the engine.
- ``_session``: Tacit's own session beside the user's.
- ``_sources``: tables of the catalog and Parquet files.
- ``_dialect``: the SQL of Spark.
- ``_functions``: texts and dates with DuckDB's values.
"""

from tacit.engines.spark._dialect import SPARK, SparkDialect
from tacit.engines.spark._engine import SparkEngine, open_engine

__all__ = ["SparkEngine", "dialect", "open_engine"]


def dialect() -> SparkDialect:
    """Return the dialect of Spark."""
    return SPARK
