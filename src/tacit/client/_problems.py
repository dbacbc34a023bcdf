"""Problems of a service (RFC 9457) as errors of this library: the same code, why and structured fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import CODES, TacitError
from tacit.fixes import Say, from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.client._address import ServiceAddress
    from tacit.fixes import Fix

_MOST_WORDS = 2_000


def refusal_of(problem: Mapping[str, Any], status: int, address: ServiceAddress) -> TacitError:
    """Return the error that a problem document describes.

    A code that this version does not know becomes ``service-differs``, with the words of the service.
    """
    code, what = problem.get("code"), _words(problem.get("detail")) or _words(problem.get("title"))
    if not isinstance(code, str) or not what:
        return not_from_a_service(address, f"its refusal ({status}) has no code")
    why, fix = _words(problem.get("why")), _fix(problem)
    if code in CODES:
        return TacitError(code, what, why=why, fix=fix)
    return TacitError(
        "service-differs", what, why=why or f"the service calls this error {code[:60]!r}", fix=fix
    )


def _fix(problem: Mapping[str, Any]) -> Fix:
    """Return the structured fix; where there is none that can be read, its words."""
    try:
        read = from_json(problem.get("fix_data"))
    except RecursionError:
        read = Say("")
    return read if str(read) else Say(_words(problem.get("fix")))


def _words(given: object) -> str:
    return given[:_MOST_WORDS] if isinstance(given, str) else ""


def unreachable(address: ServiceAddress, error: Exception) -> TacitError:
    """Return the error of a service that does not answer; the operating system's words say why."""
    return TacitError(
        "service-unreachable",
        f"the service at {address} does not answer",
        why=getattr(error, "strerror", None)
        or getattr(error, "verify_message", None)
        or type(error).__name__,
        fix="check the address and the network, and ask again: with the same key nothing is charged twice",
    )


def _reason(error: Exception) -> str:
    """Return why a connection failed, in the words of the operating system or of TLS."""
    told = getattr(error, "verify_message", None)
    if told:
        return f"its certificate is not valid: {told}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def not_from_a_service(address: ServiceAddress, why: str) -> TacitError:
    """Return the error of an answer that a service of Tacit does not give."""
    return TacitError(
        "service-differs",
        f"the program at {address} is not a service that this version of Tacit understands",
        why=why,
        fix="check the address; the service and this library may need the same version",
    )
