"""What each error code means: the address that a problem names as its type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import CODES
from tacit.service._problems import status_of
from tacit.service._refusals import not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall


def error_code_page(call: ServiceCall) -> Mapping[str, Any]:
    """Explain one code in a line."""
    code = call.path["code"]
    if code not in CODES:
        raise not_found()
    return {"code": code, "meaning": CODES[code], "status": status_of(code)}
