"""The Spark engine: a session that the user passes in, classic or Spark Connect."""

from tacit.engines.spark._engine import SparkEngine, open_engine

__all__ = ["SparkEngine", "open_engine"]
