"""The fixture ``served``: a real service for the tests of browsers and clients."""

import pytest

from served import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a running service: fast tick, one worker and the drawer, people by ``served.person``."""
    service = Served(tmp_path_factory.mktemp("served")).start()
    yield service
    service.stop()
