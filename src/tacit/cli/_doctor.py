"""The ``tacit doctor`` command: what is installed, and whether the foundations work on this machine."""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Annotated

import typer

import tacit
from tacit.cli._app import app
from tacit.cli._output import JsonOption, say, show_json
from tacit.errors import TacitError
from tacit.report import Report, Reportable, ReportTable

if TYPE_CHECKING:
    from collections.abc import Callable

#: Extras that only serve those who work on Tacit itself.
_FOR_CONTRIBUTORS = frozenset({"docs", "lint", "test", "test-quick"})
_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+))?")


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True, repr=False)
class Health(Reportable):
    """Versions, extras and checks."""

    tacit: str
    python: str
    system: str
    packages: dict[str, str | None]
    extras: dict[str, bool]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether everything that Tacit needs is installed and works."""
        return all(check.ok for check in self.checks) and None not in self.packages.values()

    def report(self) -> Report:
        """Return the facts to show."""
        lead = (f"Tacit {self.tacit}, Python {self.python}, {self.system}.",)
        packages = tuple((name, found or "missing") for name, found in self.packages.items())
        extras = tuple(
            (name, "installed" if there else f"not installed: pip install 'tacit[{name}]'")
            for name, there in self.extras.items()
        )
        checks = tuple((check.name, "ok" if check.ok else "FAILED", check.detail) for check in self.checks)
        verdict = "Everything works." if self.ok else "Something is wrong: see above."
        grids = (
            ReportTable("needed", ("package", "version"), packages),
            ReportTable("optional", ("extra", "state"), extras),
            ReportTable("checks", ("what", "state", "detail"), checks),
        )
        return Report("Health of this installation", lead, grids, (verdict,))


def examine(ledger: str | None = None) -> Health:
    """Look at the installation, test its foundations and verify the named ledger. Touches no data."""
    checks, needed = dict(_CHECKS), _needed()
    if ledger is not None:
        checks["ledger"] = lambda: _ledger(ledger)
    return Health(
        tacit=tacit.__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages={name: _version(name) for name in needed.pop("", ())},
        extras={extra: all(map(_version, names)) for extra, names in needed.items()},
        checks=tuple(_try(name, check) for name, check in checks.items()),
    )


@app.command()
def doctor(
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", envvar="TACIT_LEDGER", help="Also verify this ledger: a path or an address."
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show versions and what is installed, and test the foundations; exit status 1 means a problem."""
    health = examine(ledger)
    if as_json:
        show_json({**health.to_dict(), "ok": health.ok})
    else:
        say(health)
    if not health.ok:
        raise typer.Exit(1)


def _needed() -> dict[str, list[str]]:
    """Return the packages that each extra needs, by its name; under "", those that Tacit always needs."""
    needed: dict[str, list[str]] = {}
    for line in requires("tacit") or ():
        if match := _REQUIREMENT.match(line):
            needed.setdefault(match[2] or "", []).append(match[1])
    return {extra: names for extra, names in needed.items() if extra not in _FOR_CONTRIBUTORS}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _try(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, ok=True, detail=check())
    except TacitError as refusal:
        return Check(name, ok=False, detail=refusal.what)
    except (ImportError, ArithmeticError, AssertionError) as problem:
        return Check(name, ok=False, detail=f"{type(problem).__name__}: {problem}")


def _randomness() -> str:
    import numpy as np

    from tacit.mechanisms import RandomizedResponse

    survey = RandomizedResponse.coins()  # two fair coins: one answer in four is yes when nobody means it
    answers = int(np.sum(survey.release(np.zeros(100_000, dtype=bool))))
    if abs(answers - 25_000) > 960:  # seven standard deviations: one false alarm in 10^11 runs
        raise ArithmeticError(f"{answers:,} of 100,000 answers by two coins were yes, expected about 25,000")
    return "100,000 pairs of fair coins from the operating system's generator"


def _accounting() -> str:
    from tacit.accounting import Cost

    epsilon = float((800 * Cost.gaussian(sigma=25, sensitivity=1)).epsilon(delta=1e-7))
    if not 6.148798 <= epsilon < 6.52:  # the truth is 6.1488, the plain zCDP bound 6.514
        raise ArithmeticError(f"800 Gaussian queries cost {epsilon}, expected 6.1488 or a little more")
    return f"800 Gaussian queries cost epsilon {epsilon:.4f} at delta 1e-7"


def _ledger(where: str) -> str:
    from tacit.ledger import Ledger

    with Ledger.open(where, create=False) as ledger:
        report = ledger.verify()
        sealed = ledger.sealed
    if sealed is not None:
        raise ArithmeticError(f"sealed: {sealed}")
    if not report.ok:
        raise ArithmeticError("; ".join(report.problems))
    return str(report)


def _integers() -> str:
    if sys.maxsize < 2**63 - 1:
        raise ArithmeticError("this Python is not a 64-bit one")
    return "64-bit machine integers"


_CHECKS: dict[str, Callable[[], str]] = {
    "randomness": _randomness,
    "accounting": _accounting,
    "integers": _integers,
}
