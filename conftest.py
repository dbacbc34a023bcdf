"""What every test starts with: a Python process in which no dataset was declared before."""

import gc

import pytest

from tacit.ledger import _process_memory, forget_memory

#: Where datasets without a ledger share it by name and source, as for users. Elsewhere in `tests`, one
#: test may declare the same rows in several ways, each with a ledger of its own.
SHARING = frozenset({"test_documentation.py", "test_engine_pages.py", "test_process_memory.py"})
_recognised = _process_memory._recognised  # noqa: SLF001


def pytest_addoption(parser):
    """Offer the tier of `make quick`."""
    parser.addoption(
        "--quick", action="store_true", help="only the tests that tests/support/quick_tier.py lists"
    )


def pytest_configure(config):
    """Choose the tests of the tier if it is asked for."""
    if config.getoption("quick"):
        from support.quick_tier import QuickTier

        config.pluginmanager.register(QuickTier(), "quick_tier")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among the million objects that are collected and stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_unconfigure():
    """Let the end of Python find everything."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Forget the datasets that other tests declared without a ledger, as the end of Python does.

    Docstrings and pages run as users run them.
    """
    forget_memory()
    alone = "tests" in item.path.parts and item.path.name not in SHARING
    _process_memory._recognised = _unlike_any if alone else _recognised  # noqa: SLF001


def _unlike_any(_source):
    return object()
