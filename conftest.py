"""What every test starts with: a Python process in which no dataset was declared before."""

import pytest

from tacit.ledger import forget_memory


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Forget the datasets that other tests declared without a ledger, as the end of Python does.

    Within a test, and within a docstring, datasets share their budgets as they do for users.
    """
    forget_memory()
