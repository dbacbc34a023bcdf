"""Exact rationals from what users write: every numeric parameter is read here."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import SupportsIndex

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Fix, Set

__all__ = ["Number", "accepted_number", "count", "rational", "read_fraction"]

#: What Tacit accepts as a number. NumPy's float64 is a float; int64 and uint64 are read through ``int``.
Number = int | float | Fraction | Decimal

_SMALLEST = Fraction(2) ** -1022  # the smallest normal double: below it a float has lost digits
_LARGEST = Fraction(2) ** 1023
_SHORT = 2**1000  # a fraction of shorter numbers is of an accepted size and length
_MAX_BITS = 4096  # of a numerator or denominator; a longer number is an attack, not a parameter


def rational(
    name: str,
    value: Number,
    *,
    zero: bool = False,
    negative: bool = False,
    fix: Fix | None = None,
    must_be: str = "",
    why: str = "",
) -> Fraction:
    """Read a number as the exact rational of its decimal notation: ``0.1`` is one tenth.

    Parameters
    ----------
    name
        The parameter's name, for the error message.
    value
        An int, a float (read as its shortest decimal), a Fraction or a Decimal. Booleans, strings, NaN,
        infinities, denormals and NumPy's narrow number types are refused.
    zero, negative
        Whether zero and negative numbers are allowed.
    fix
        What a refusal advises, where the number is one of several of a parameter, such as a bound.
    must_be
        What the number must be, where there is more to say.
    why
        Why it must be this.

    Examples
    --------
    >>> rational("epsilon", 0.1)
    Fraction(1, 10)
    """
    if type(value) is Fraction and 0 < value.numerator < _SHORT > value.denominator:
        return value  # costs are made of exact numbers far more often than of what a user writes
    exact = accepted_number(value)
    if exact is not None and (exact.numerator > 0 or (negative if exact.numerator else zero)):
        return exact  # the words of a refusal take longer than the reading: they are composed below
    exact = _read(value)
    in_range = exact is not None and (zero or exact != 0) and (negative or exact >= 0)
    if exact is None or not in_range or not _is_of_size(exact):
        sign = "" if negative else "non-negative " if zero else "positive "
        must_be = must_be or f"a {sign}finite number"
        must_be += " between 2^-1022 and 2^1023 in size" if in_range else ""
        narrow = exact is None and type(value).__module__ == "numpy"
        raise bad_parameter(name, must_be, value, why=why, fix=_instead(name, fix, narrow=narrow))
    raise TacitError(
        "bad-parameter",
        f"{name} must be shorter: its numerator and denominator may have at most {_MAX_BITS} bits each",
        fix=fix or Code(f"{name}=float(...)"),
    )


def accepted_number(value: object) -> Fraction | None:
    """Return the exact value of a number whose type, size and length are accepted; None for anything else.

    Examples
    --------
    >>> accepted_number(0.1), accepted_number("0.1")
    (Fraction(1, 10), None)
    """
    exact = value if type(value) is Fraction else _read(value)
    if exact is None or -_SHORT < exact.numerator < _SHORT > exact.denominator:
        return exact
    length = max(exact.numerator.bit_length(), exact.denominator.bit_length())
    return exact if length <= _MAX_BITS and _is_of_size(exact) else None


def _is_of_size(exact: Fraction) -> bool:
    return exact == 0 or _SMALLEST <= abs(exact) <= _LARGEST


def _instead(name: str, fix: Fix | None, *, narrow: bool) -> Fix:
    """Return what to write: what the caller advises, unless only NumPy's narrow type is wrong."""
    advised = fix is not None and not (narrow and isinstance(fix, Set) and set(fix.values) == {name})
    if fix is not None and advised:
        return fix
    return Code(f"{name}=float(...)") if narrow else Set(**{name: 0.5})


def count(
    name: str,
    value: SupportsIndex,
    *,
    zero: bool = True,
    fix: Fix | None = None,
    must_be: str = "",
    why: str = "",
) -> int:
    """Read a whole number that counts things: an int or a NumPy integer, never a boolean or a float."""
    if type(value) is int and value > 0:
        return value
    must_be = must_be or ("a non-negative whole number" if zero else "a positive whole number")
    try:
        integer = None if type(value).__name__ == "bool" else value.__index__()  # Python's and NumPy's
    except (AttributeError, TypeError):
        integer = None
    if integer is None or integer < 0 or (integer == 0 and not zero):
        raise bad_parameter(name, must_be, value, why=why, fix=fix or Set(**{name: 10}))
    return integer


_WRITTEN = re.compile(r"-?[0-9]{1,1300}(/[1-9][0-9]{0,1299})?")


def read_fraction(text: object) -> Fraction:
    """Read a fraction as documents have it: digits and a slash, no exponent that could grow without end.

    Raises ``ValueError`` for anything else. A document from outside is read with this, never with
    ``Fraction(text)``, which writes out all digits of ``"1e999999999"``.

    Examples
    --------
    >>> read_fraction("1/3")
    Fraction(1, 3)
    """
    if not isinstance(text, str) or _WRITTEN.fullmatch(text) is None:
        raise ValueError("not a fraction")
    return Fraction(text)


def _read(value: object) -> Fraction | None:
    """Return the exact value, or None if it is not a finite number of an accepted type."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return Fraction(*Decimal(float.__repr__(value)).as_integer_ratio())  # quicker than the text itself
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Fraction):
        return Fraction(value)
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() and abs(value.adjusted()) < _MAX_BITS else None
    if type(value).__module__ == "numpy" and type(value).__name__ in {"int64", "uint64"}:
        return Fraction(int(value))  # type: ignore[call-overload]
    return None
