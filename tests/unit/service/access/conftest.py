"""Browsers of the first administrator and of invited people."""

from __future__ import annotations

import pytest

from support.service_browser import PASSWORD, Browser, invited
from tacit.service.access import first_link


@pytest.fixture
def browser(house):
    return Browser(house.app)


@pytest.fixture
def admin(house):
    """The browser of the first administrator, signed in by the first link."""
    admin = Browser(house.app)
    answer = admin.form(
        "/welcome", "/welcome", code=first_link(house.service), name="root", shown="Root", password=PASSWORD
    )
    assert answer.status_code == 303, answer.text
    return admin


@pytest.fixture
def ana(house, admin):
    """The browser of an invited person without roles."""
    return invited(house, admin, "ana")
