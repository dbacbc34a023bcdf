"""Extras, the optional packages, in the core: name the missing one and the command that installs it."""

from __future__ import annotations

from importlib.util import find_spec

from tacit.errors import TacitError
from tacit.fixes import Do


def needs(what: str, package: str, install: str) -> None:
    """Refuse, before anything else happens, work that needs a package that is not installed.

    Examples
    --------
    >>> needs("to_parrot", "parrot_of_no_name", "tacit[parrot]")
    Traceback (most recent call last):
    tacit.errors.TacitError: to_parrot needs parrot_of_no_name, which is not installed
      why: the base installation stays small and does not include it
      fix: pip install 'tacit[parrot]'
      code: missing-extra
    """
    if find_spec(package) is None:
        raise TacitError(
            "missing-extra",
            f"{what} needs {package}, which is not installed",
            why="the base installation stays small and does not include it",
            fix=Do("install", package=install),
        )
