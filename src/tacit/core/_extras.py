"""Packages that the base installation leaves out: said by name, with the line that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from tacit.errors import TacitError

__all__ = ["needs"]


def needs(what: str, package: str, install: str) -> None:
    """Refuse, before anything is done, what needs a package that is not installed.

    Examples
    --------
    >>> needs("to_parrot", "parrot_of_no_name", "tacit[parrot]")
    Traceback (most recent call last):
    tacit.errors.TacitError: to_parrot needs parrot_of_no_name, which is not installed
      why: it is left out of the base installation to keep it small
      fix: pip install 'tacit[parrot]'
      code: missing-extra
    """
    if find_spec(package) is None:
        raise TacitError(
            "missing-extra",
            f"{what} needs {package}, which is not installed",
            why="it is left out of the base installation to keep it small",
            fix=f"pip install '{install}'" if "[" in install else f"pip install {install}",
        )
