"""The places of ledgers that the contract suites share."""

import pytest

from support.ledger_sites import site

everywhere = pytest.fixture(site, params=["memory", "sqlite", "postgres"])
durable = pytest.fixture(site, params=["sqlite", "postgres"])  # a ledger in memory is not opened twice
