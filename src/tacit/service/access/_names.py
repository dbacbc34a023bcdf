"""The names in forms: what people sign in with, what pages call them, and datasets that may be left open."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from tacit.errors import TacitError

#: Numbers of people (``u_...``) are not names: an erased person has only the number.
_USER_NAME = re.compile(r"(?!u_[a-z2-7]{16}$)[a-z0-9][a-z0-9._@+-]{0,99}", re.ASCII)


def _user_name(given: str) -> str:
    if given and not _USER_NAME.fullmatch(given):
        raise ValueError(
            "a name has 1 to 100 letters a to z, digits or marks . _ @ + - and begins with a letter or digit"
        )
    return given


def _display_name(given: str) -> str:
    """Refuse invisible characters, by which one name can look like another."""
    if any(unicodedata.category(mark) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for mark in given):
        raise ValueError("a name cannot hold invisible characters")
    return given


def taken(what: str) -> TacitError:
    """Refuse a name or a subject that another person has."""
    fix = f"choose another {what}"
    return TacitError("bad-parameter", f"another person has this {what} already", fix=fix)


def user_name(given: str) -> str:
    """Return a name to sign in with, or empty text for one that is not allowed."""
    given = given.strip().lower()
    return given if _USER_NAME.fullmatch(given) else ""


def display_name(given: str) -> str:
    """Return a name to show, or empty text for one that is not allowed."""
    try:
        return _display_name(given.strip()[:100])
    except ValueError:
        return ""


#: What a person signs in with: small letters, digits and a few marks, so that no two names look alike.
UserName = Annotated[
    str, StringConstraints(strip_whitespace=True, to_lower=True, max_length=100), AfterValidator(_user_name)
]
#: What pages call a person, in any script.
DisplayName = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=100), AfterValidator(_display_name)
]
#: The name of a dataset, or empty for all.
MaybeDataset = Annotated[str, StringConstraints(pattern=r"^([a-z0-9][a-z0-9_-]{0,62})?$")]
