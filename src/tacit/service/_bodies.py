"""What is read from a request: strict JSON and forms, numbers, names, cursors; no error repeats the input.

Names are those with which people sign in, those that pages call them, and datasets that may be left open.
Lists come in parts: each part names the next one by a cursor, and no part says how many there are in all.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar
from urllib.parse import parse_qsl

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)

from tacit.errors import TacitError
from tacit.exact import rational
from tacit.fixes import Set
from tacit.parameters import Integer
from tacit.service._refusals import body_too_large, body_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.parameters import Parameter
    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall


#: The most bytes of a body.
MAX_BYTES: Final = 64 * 1024
#: The most bytes of a question, and of the certificate of its answer: both hold the keys of its groups.
MAX_QUESTION: Final = 1024 * 1024
#: What reading a document of somebody else's may raise.
UNREADABLE: Final = (
    LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MemoryError,
)  # fmt: skip
_DEPTH = 40  # the document of a long plan has more than 20
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e-?[0-9]{1,3})?|[0-9]+/[0-9]+", re.IGNORECASE | re.ASCII)
_FIELDS = 200  # of a form

B = TypeVar("B", bound="Body")
#: Numbers of people (``u_...``) are not names: an erased person has only the number.
_USER_NAME = re.compile(r"(?!u_[a-z2-7]{16}$)[a-z0-9][a-z0-9._@+-]{0,99}", re.ASCII)
_ENTRIES = 50  # of a part of a list, where nobody asks for more
_MAX_ENTRIES = 200
_CURSOR = re.compile(r"[A-Za-z0-9_]{0,40}", re.ASCII)


def read_exact(value: object) -> Fraction:
    """Read an exact number: text such as ``1/2`` or ``0.1``, or a JSON number."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal | Fraction):
        raise ValueError("must be a number, or a number in text")  # noqa: TRY004 - pydantic reads ValueErrors
    try:
        return rational("number", _fraction(value) if isinstance(value, str) else value, zero=True)
    except (TacitError, ValueError, ZeroDivisionError):
        raise ValueError("must be a finite number that is not negative") from None


def _fraction(text: str) -> Fraction:
    """Read a number in text; a huge exponent is refused before it becomes a huge number."""
    if len(text) > 60 or not _NUMBER.fullmatch(text.strip()):
        raise ValueError("not a number")
    return Fraction(text.strip())


#: A number that is not negative, exactly: text such as ``"1/2"``, or a JSON number.
ExactNumber = Annotated[
    Fraction,
    BeforeValidator(read_exact),
    WithJsonSchema({"anyOf": [{"type": "string", "maxLength": 60}, {"type": "number", "minimum": 0}]}),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
#: The name of a dataset in the service; it is part of addresses.
DatasetName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
#: A few sentences for people.
Words = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]


def empty_as_none(value: object) -> object:
    """Read the empty field of a form as nothing."""
    return None if isinstance(value, str) and not value.strip() else value


def typed_integer(value: object) -> object:
    """Read a whole number, or nothing, that somebody typed into a form."""
    if not isinstance(value, str) or not value.strip():
        return empty_as_none(value)
    if not re.fullmatch(r"[0-9]{1,18}", value.strip(), re.ASCII):
        raise ValueError("must be a whole number")
    return int(value.strip())


class Body(BaseModel):
    """What a body may hold: exactly these fields, of exactly these types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)


def read_json(raw: bytes, max_bytes: int = MAX_BYTES) -> Any:
    """Read JSON strictly: exact decimals, no NaN, no doubled field, no lone surrogate, limited depth."""
    if len(raw) > max_bytes:
        raise body_too_large(max_bytes)
    try:
        text = raw.decode("utf-8")
        document = json.loads(
            text,
            parse_float=_number,
            parse_int=_number,
            parse_constant=_no_constant,
            object_pairs_hook=_pairs,
        )
        _check_depth(document, 0)
    except TacitError:
        raise
    except (ValueError, RecursionError):
        raise body_unreadable("it is not valid JSON in UTF-8") from None
    return document


def with_floats(value: Any) -> Any:
    """Return a document as the standard reader of JSON would have read it: decimals are floats."""
    match value:
        case Decimal():
            return float(value)
        case Mapping():
            return {name: with_floats(member) for name, member in value.items()}
        case list():
            return [with_floats(member) for member in value]
        case _:
            return value


def read_document(value: object, must: str = "JSON", max_bytes: int = MAX_BYTES) -> object:
    """Read a field that holds a JSON document: as JSON itself, or as the text of a form.

    Parameters
    ----------
    value
        What was sent.
    must
        What the field must be, for the refusal; nothing of what was sent is repeated.
    max_bytes
        The most bytes of the document.
    """
    if not isinstance(value, str):
        return value
    try:
        return read_json(value.encode("utf-8", "surrogatepass"), max_bytes)
    except TacitError as refusal:
        raise ValueError(f"must be {must}: {refusal.why or refusal.what}") from None


def json_field(must: str, max_bytes: int = MAX_BYTES) -> BeforeValidator:
    """Return how a field that holds a JSON document is read; see `read_document`."""
    return BeforeValidator(lambda value: read_document(value, must, max_bytes))


def read_form(raw: bytes, max_bytes: int = MAX_BYTES) -> dict[str, str]:
    """Read a form as fields with one text each; repeated fields are joined by line ends."""
    if len(raw) > max_bytes:
        raise body_too_large(max_bytes)
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=_FIELDS,
            errors="strict",
        )  # fmt: skip
    except ValueError:
        raise body_unreadable("it is not a valid form") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        _check_text(name + value)
        fields[name] = f"{fields[name]}\n{value}" if name in fields else value.replace("\r\n", "\n")
    return fields


def read_body(model: type[B], document: Any) -> B:
    """Read parsed JSON or a form as the fields of an operation; the refusal names fields, never values."""
    if not isinstance(document, dict):
        raise body_unreadable("it must be one JSON object")
    try:
        return model.model_validate(document)
    except ValidationError as error:
        error_details = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in error_details["loc"] if part in _names(model)) or "a field"
        field_names = ", ".join(model.model_fields)
        message = {
            "extra_forbidden": f"the body has a field that is not known here; known are: {field_names}",
            "missing": f"the field {field} is missing",
        }.get(
            error_details["type"],
            f"the field {field} is not valid: {error_details['msg'].removeprefix('Value error, ')}",
        )
        raise TacitError("bad-parameter", message, why=f"the fields are: {field_names}") from None


def read_field(accepts: Parameter, name: str, value: object) -> Any:
    """Read a value as a declared parameter; the refusal says what is accepted, never what was sent."""
    return _unrepeated(accepts, name, accepts.read, value)


def read_typed(accepts: Parameter, name: str, text: str) -> Any:
    """Read what somebody typed as a declared parameter; the refusal does not repeat it."""
    return _unrepeated(accepts, name, accepts.from_text, text)


def _unrepeated(accepts: Parameter, name: str, reader: Callable[[str, Any], Any], value: object) -> Any:
    try:
        return reader(name, value)
    except TacitError as refusal:
        message, fix = f"{name} must be {accepts.words}", Set(**{name: accepts.example})
        raise TacitError("bad-parameter", message, why=refusal.why, fix=fix) from None


def _names(model: type[BaseModel]) -> Mapping[str, object]:
    return model.model_fields


def _number(text: str) -> int | Decimal:
    if len(text) > 60:
        raise body_unreadable("a number has more than 60 characters")
    number = Decimal(text)
    if abs(number.adjusted()) > 400:
        raise body_unreadable("a number is too large or too small")
    return int(text) if text.lstrip("-").isdigit() else number


def _no_constant(_: str) -> Any:
    raise body_unreadable("NaN and infinity are not numbers here")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise body_unreadable("a field is there twice")
    return fields


def _check_depth(value: Any, depth: int) -> None:
    if depth > _DEPTH:
        raise body_unreadable(f"it is nested more than {_DEPTH} levels deep")
    match value:
        case str():
            _check_text(value)
        case dict():
            for name, member in value.items():
                _check_text(name)
                _check_depth(member, depth + 1)
        case list():
            for member in value:
                _check_depth(member, depth + 1)


def _check_text(text: str) -> None:
    """Refuse what cannot be written back or stored: a lone surrogate, or the character NUL."""
    text.encode("utf-8")
    if "\x00" in text:
        raise body_unreadable("a text holds the character NUL")


def _user_name(name: str) -> str:
    if name and not _USER_NAME.fullmatch(name):
        raise ValueError(
            "a name has 1 to 100 letters a to z, digits or marks . _ @ + - and begins with a letter or digit"
        )
    return name


def _display_name(name: str) -> str:
    """Refuse invisible characters, by which one name can look like another."""
    if any(unicodedata.category(mark) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for mark in name):
        raise ValueError("a name cannot hold invisible characters")
    return name


def taken(attribute: str) -> TacitError:
    """Refuse a name or a subject that another person has."""
    fix = f"choose another {attribute}"
    return TacitError("bad-parameter", f"another person has this {attribute} already", fix=fix)


def user_name(name: str) -> str:
    """Return a name to sign in with, or empty text for one that is not allowed."""
    name = name.strip().lower()
    return name if _USER_NAME.fullmatch(name) else ""


def display_name(name: str) -> str:
    """Return a name to show, or empty text for one that is not allowed."""
    try:
        return _display_name(name.strip()[:100])
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


def limit_of(call: ServiceCall) -> int:
    """Return how many entries were asked for."""
    limit: int = read_typed(Integer(1, _MAX_ENTRIES), "limit", call.query.get("limit") or str(_ENTRIES))
    return limit


def cursor_of(call: ServiceCall, form: re.Pattern[str] = _CURSOR, max_cursor: int | None = None) -> str:
    """Return the cursor after which entries were asked for, or empty text.

    Parameters
    ----------
    call
        The call.
    form
        How cursors of this list are written.
    max_cursor
        The largest cursor, where cursors are numbers.
    """
    cursor = call.query.get("after", "")
    if not form.fullmatch(cursor) or (max_cursor is not None and int(cursor or 0) > max_cursor):
        raise TacitError("bad-parameter", "after must be the cursor that an earlier part named")
    return cursor


def part(name: str, rows: list[ServiceRow], limit: int, cursor: str) -> dict[str, Any]:
    """Return the first ``limit`` rows as a document; there must be one row more if there is a next part."""
    entries = rows[:limit]
    return {name: entries, "next": str(entries[-1][cursor]) if len(rows) > limit else ""}
