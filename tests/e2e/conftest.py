"""The fixtures ``served``, a real service, and ``browser``, a real Chromium."""

import pytest

from support.browsing import as_new, open_browser
from support.served import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a running service: fast tick, one worker and the runner, people by ``served.person``."""
    service = Served(tmp_path_factory.mktemp("served")).start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a Chromium with an empty profile, which the tests of a module share."""
    driver = open_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def as_it_was(browser):
    """Give a test the browser wide, light and without messages of the tests before."""
    as_new(browser)
