"""Tables on a real PostgreSQL server, each test with a schema of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def database(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the owner of the tables; its ``info`` has the address for the engine."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection
        [(schema,)] = connection.execute("SELECT current_schema()").fetchall()
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
