"""Declared parameters: what a question takes, read and refused in one place for every surface.

A parameter knows the values that it accepts, the words that describe them, and how a value is written as
JSON. So the same mistake gets the same refusal wherever it is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Generic, Protocol, TypeVar

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, accepted_number, count, rational, read_fraction
from tacit.fixes import Choose, Code, Fix, Set

__all__ = [
    "Anything", "Choice", "ColumnName", "Day", "Delta", "Flag", "Instance", "Integer", "Listed",
    "Mapped", "Matching", "Needed", "Omitted", "Pair", "Parameter", "Probability", "RealNumber", "Share",
    "Text", "exactly_one", "refuse_auto",
]  # fmt: skip

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOST_LETTERS = 200


T = TypeVar("T")


def refuse_auto(what: str, value: object, fix: Fix) -> None:
    """Refuse ``"auto"`` where Tacit finds nothing by itself; ``what``, such as ``a regression``, is asked.

    Examples
    --------
    >>> refuse_auto("a histogram", "auto", Set(edges=[0, 10, 20]))
    Traceback (most recent call last):
    tacit.errors.TacitError: a histogram cannot find its bounds by itself
      why: only means, sums, spreads and quantiles of one expression find bounds within their plan
      fix: edges=[0, 10, 20]
      code: not-allowed
    """
    if isinstance(value, str) and value == "auto":
        raise TacitError(
            "not-allowed",
            f"{what} cannot find its bounds by itself",
            why="only means, sums, spreads and quantiles of one expression find bounds within their plan",
            fix=fix,
        )


class Parameter(Protocol):
    """What a declared argument accepts."""

    @property
    def words(self) -> str:
        """What may be given."""

    @property
    def example(self) -> object:
        """Something that may be given."""

    def read(self, name: str, value: Any) -> Any:
        """Return the value as the question uses it, or refuse it."""

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed in a command or a form."""

    def to_json(self, value: Any) -> Any:
        """Write a value that was read, for a plan's document."""

    def from_json(self, document: Any) -> Any:
        """Return what `read` takes from what `to_json` wrote."""


class _AsItIs:
    """A value that is typed and written as it is."""

    __slots__ = ()

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed."""
        return self.read(name, text)  # type: ignore[attr-defined]

    def to_json(self, value: Any) -> Any:
        """Return the value."""
        return value

    def from_json(self, document: Any) -> Any:
        """Return the value."""
        return document


@dataclass(frozen=True, slots=True)
class Integer(_AsItIs):
    """A whole number between two others, both included.

    Examples
    --------
    >>> Integer(1, 20).read("k", 3), Integer(1, 20).words
    (3, 'a whole number from 1 to 20')
    """

    low: int = 0
    high: int | None = None
    why: str = ""
    instead: int | None = None

    @property
    def words(self) -> str:
        """What may be given."""
        if self.high is None:
            return f"a whole number of at least {self.low:,}"
        if self.high <= self.low + 1:
            return _from_to(self.low, self.high)
        return f"a whole number from {self.low:,} to {_written(self.high)}"

    @property
    def example(self) -> int:
        """Something that may be given."""
        return self.low if self.instead is None else self.instead

    def read(self, name: str, value: object) -> int:
        """Return the number, or refuse it."""
        if type(value) is int and value >= self.low and (self.high is None or value <= self.high):
            return value  # the words of a refusal take longer than the reading
        usual = max(self.low, min(10, self.high or 10))
        fix = Set(**{name: usual if self.instead is None else self.instead})
        must_be = self.words
        if self.high is None and self.low in {0, 1}:
            must_be = f"a {'positive' if self.low else 'non-negative'} whole number"
        number: Any = value  # what is no number is refused like one out of range
        integer = count(name, number, fix=fix, must_be=must_be, why=self.why)
        if integer < self.low or (self.high is not None and integer > self.high):
            raise bad_parameter(name, must_be, value, why=self.why, fix=fix)
        return integer

    def from_text(self, name: str, text: str) -> int:
        """Read what somebody typed."""
        if not re.fullmatch(r"-?[0-9]{1,18}", text.strip(), re.ASCII):
            raise bad_parameter(name, self.words, text, fix=Set(**{name: self.example}))
        return self.read(name, int(text))


@dataclass(frozen=True, slots=True)
class RealNumber:
    """A positive finite number, read exactly; or one between ends that belong to it or not.

    Parameters
    ----------
    zero, negative
        Whether zero and negative numbers are allowed, where no ends are given.
    least, most
        The smallest and the largest number that is allowed.
    above, below
        Instead: ends that are not allowed themselves.
    why
        Why it has these ends.
    instead
        A number that is allowed, for the fix.

    Examples
    --------
    >>> RealNumber().read("clip", 0.1)
    Fraction(1, 10)
    >>> RealNumber(above=0, most=1).words, RealNumber(least=0, most=1).words
    ('a number above 0 and at most 1', 'a number from 0 to 1')
    """

    zero: bool = False
    negative: bool = False
    least: Number | None = None
    most: Number | None = None
    above: Number | None = None
    below: Number | None = None
    why: str = ""
    instead: Number | str = 0.5

    @property
    def words(self) -> str:
        """What may be given."""
        ends = [f"above {_written(self.above)}"] if self.above is not None else []
        if self.least is not None and self.most is not None:
            return f"a number from {_written(self.least)} to {_written(self.most)}"
        ends += [f"of at least {_written(self.least)}"] if self.least is not None else []
        ends += [f"below {_written(self.below)}"] if self.below is not None else []
        if self.most is not None:
            ends += [f"at most {_written(self.most)}" if ends else f"of at most {_written(self.most)}"]
        if ends:
            return f"a number {' and '.join(ends)}"
        kind = "a finite" if self.negative else "a non-negative finite" if self.zero else "a positive finite"
        return f"{kind} number"

    @property
    def example(self) -> Number | str:
        """Something that may be given."""
        return self.instead

    def read(self, name: str, value: object) -> Fraction:
        """Return the exact rational, or refuse it."""
        exact = accepted_number(value)
        if exact is not None and self._has(exact):
            return exact  # the words of a refusal take longer than the reading
        number: Any = value  # None is refused like text
        fix = Set(**{name: self.instead})
        if (self.least, self.most, self.above, self.below) == (None, None, None, None):
            own_fix = None if self.instead == 0.5 else fix
            return rational(name, number, zero=self.zero, negative=self.negative, fix=own_fix)
        exact = rational(name, number, zero=True, negative=True, must_be=self.words, why=self.why, fix=fix)
        whole = exact.denominator == 1
        readable = (int(exact) if whole else float(exact)) if isinstance(value, Fraction) else value
        raise bad_parameter(name, self.words, readable, why=self.why, fix=fix)

    def _has(self, exact: Fraction) -> bool:
        """Return whether a number lies between the ends; without ends, whether its sign is allowed."""
        if self.least is None and self.most is None and self.above is None and self.below is None:
            return exact.numerator > 0 or (self.negative if exact.numerator else self.zero)
        return (
            (self.least is None or exact >= self.least)
            and (self.most is None or exact <= self.most)
            and (self.above is None or exact > self.above)
            and (self.below is None or exact < self.below)
        )

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed."""
        try:
            return self.read(name, float(text))
        except ValueError:
            raise bad_parameter(name, self.words, text, fix=Set(**{name: self.example})) from None

    def to_json(self, value: object) -> str:
        """Write the number exactly."""
        return str(value)

    def from_json(self, document: object) -> Any:
        """Read the number back."""
        return read_fraction(document)


def Share(*, instead: Number | str = 0.5, why: str = "") -> RealNumber:  # noqa: N802 - reads like the others
    """Return the parameter of a share above 0 and at most 1."""
    return RealNumber(above=0, most=1, instead=instead, why=why)


def Probability(*, instead: Number | str = 0.5, why: str = "") -> RealNumber:  # noqa: N802
    """Return the parameter of a probability from 0 to 1."""
    return RealNumber(least=0, most=1, instead=instead, why=why)


def Delta(*, zero: bool = True) -> RealNumber:  # noqa: N802
    """Return the parameter of a delta."""
    why = "a delta of 1 guarantees nothing"
    if zero:
        return RealNumber(least=0, below=1, instead=1e-6, why=why)
    return RealNumber(above=0, below=1, instead=1e-6, why=why)


@dataclass(frozen=True, slots=True)
class Text(_AsItIs):
    """A short text."""

    words: str = "a text"

    @property
    def example(self) -> str:
        """Something that may be given."""
        return "x"

    def read(self, name: str, value: object) -> str:
        """Return the text, or refuse it."""
        if isinstance(value, str) and 0 < len(value) <= _MOST_LETTERS:
            return value
        too_long = isinstance(value, str) and len(value) > _MOST_LETTERS
        must_be = f"{self.words}, with at most {_MOST_LETTERS} characters" if too_long else self.words
        raise bad_parameter(name, must_be, value, fix=Set(**{name: self.instead(name)}))

    def instead(self, name: str) -> str:
        """Return a text that may be given for the parameter of this name."""
        del name
        return self.example


@dataclass(frozen=True, slots=True)
class ColumnName(Text):
    """The name of a column."""

    words: str = "the name of a column"

    def instead(self, name: str) -> str:
        """Return the name of the parameter, which is often the name of its column."""
        return name if name.isidentifier() else self.example


@dataclass(frozen=True, slots=True)
class Choice(_AsItIs):
    """One of a few words, and why there are no others."""

    choices: tuple[str, ...]
    why: str = ""

    @property
    def words(self) -> str:
        """What may be given."""
        if len(self.choices) > 3:
            return f"one of {', '.join(self.choices)}"
        *others, final = (f'"{one}"' for one in self.choices)
        return f"{', '.join(others)} or {final}" if others else final

    @property
    def example(self) -> str:
        """Something that may be given."""
        return self.choices[0]

    def read(self, name: str, value: object) -> str:
        """Return the word, or refuse it."""
        if not isinstance(value, str) or value not in self.choices:
            fix = Choose(self.choices, given=str(value))
            raise bad_parameter(name, self.words, value, why=self.why, fix=fix)
        return value


@dataclass(frozen=True, slots=True)
class Day(_AsItIs):
    """A day, written as 2026-01-31."""

    words: str = "a day such as 2026-01-31"

    @property
    def example(self) -> str:
        """Something that may be given."""
        return "2026-01-01"

    def read(self, name: str, value: object) -> str:
        """Return the day as text, or refuse it."""
        if isinstance(value, date):
            return value.isoformat()[:10]
        if isinstance(value, str) and _DAY.fullmatch(value):
            try:
                return date.fromisoformat(value).isoformat()
            except ValueError:
                pass
        raise bad_parameter(name, self.words, value, fix=Set(**{name: self.example}))


@dataclass(frozen=True, slots=True)
class Flag(_AsItIs):
    """Yes or no."""

    words: str = "yes or no"
    instead: bool = True

    @property
    def example(self) -> bool:
        """Something that may be given."""
        return self.instead

    def read(self, name: str, value: object) -> bool:
        """Return the value, or refuse it."""
        if not isinstance(value, bool):
            must_be = "True or False" if self.words == "yes or no" else self.words
            raise bad_parameter(name, must_be, value, fix=Set(**{name: self.instead}))
        return value

    def from_text(self, name: str, text: str) -> bool:
        """Read what somebody typed."""
        return self.read(name, {"yes": True, "true": True, "no": False, "false": False}.get(text, text))


@dataclass(frozen=True)  # with slots, `Instance[object](...)` fails: Python notes the type in the object
class Instance(Generic[T]):
    """An object of a class of this library.

    Parameters
    ----------
    kind
        The class.
    example
        A line of Python that makes one.
    words
        What it is, where the name of the class does not say it.
    why
        Why nothing else will do.
    """

    kind: type[T] | tuple[type[T], ...]
    example: str
    words: str = ""
    why: str = ""

    def read(self, name: str, value: object) -> T:
        """Return the object, or refuse another one.

        Examples
        --------
        >>> Instance(Integer, "accepts=Integer(1, 20)").read("accepts", 3)
        Traceback (most recent call last):
        tacit.errors.TacitError: accepts must be an Integer, got 3
          fix: accepts=Integer(1, 20)
          code: bad-parameter
        """
        if isinstance(value, self.kind):
            return value
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        kinds_in_words = " or ".join(
            f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}" for kind in kinds
        )
        raise bad_parameter(name, self.words or kinds_in_words, value, why=self.why, fix=Code(self.example))


@dataclass(frozen=True, slots=True)
class Listed:
    """Several values in a list; what they are is read one by one.

    Parameters
    ----------
    words
        What they are, in the plural.
    example
        A list that may be given, as Python.
    least, most
        How many there must be, and how many there may be.
    different
        Whether no value may be there twice.
    rising
        Whether each value must be above the one before.
    each
        What each of them is.
    why
        Why others are refused.
    """

    words: str
    example: str
    least: int = 1
    most: int | None = None
    different: bool = False
    rising: bool = False
    each: Parameter | None = None
    why: str = ""

    @property
    def must_be(self) -> str:
        """What may be given."""
        order = "different " if self.different else "rising " if self.rising else ""
        if self.most is None:
            number = {0: "", 1: "one or more "}.get(self.least, f"at least {self.least:,} ")
        else:
            number = f"at most {self.most:,} " if not self.least else f"{_from_to(self.least, self.most)} "
        return f"a list of {number}{order}{self.words}"

    def read(self, name: str, value: Any) -> list[Any]:
        """Return the list, or refuse it; its values are not shown, because they may be private.

        Examples
        --------
        >>> Listed("shares", "[0.25, 0.5]", each=Probability()).read("qs", [0.5])
        [Fraction(1, 2)]
        >>> Listed("answers", '["yes", "no"]', least=2, different=True).read("answers", "yes")
        Traceback (most recent call last):
        tacit.errors.TacitError: answers must be a list of at least 2 different answers, got text
          fix: answers=["yes", "no"]
          code: bad-parameter
        """
        if isinstance(value, str | bytes | Mapping):
            is_name = isinstance(value, str) and isinstance(self.each, ColumnName)
            fix = Set(**{name: [value]}) if is_name else None
            raise self._refusal(name, "a mapping" if isinstance(value, Mapping) else "text", fix)
        try:
            values = list(value)
        except TypeError:
            raise self._refusal(name, "one value") from None
        if len(values) < self.least or (self.most is not None and len(values) > self.most):
            raise self._refusal(name, f"{len(values):,}" if values else "none")
        if self.each is not None:
            try:
                values = [self.each.read(name, one) for one in values]
            except TacitError as refused:
                raise refused.but(fix=Code(f"{name}={self.example}")) from None
        if self.different:
            try:
                twice = len(set(values)) < len(values)
            except TypeError:
                raise self._refusal(name, "lists or other values that cannot be compared") from None
            if twice:
                raise self._refusal(name, "one of them twice")
        if self.rising and any(low >= high for low, high in pairwise(values)):
            raise self._refusal(name, "values that do not rise")
        return values

    def _refusal(self, name: str, got: str, fix: Fix | None = None) -> TacitError:
        sentence = f"{name} must be {self.must_be}, got {got}"
        usual = Code(f"{name}={self.example}")
        return TacitError("bad-parameter", sentence, why=self.why, fix=fix or usual)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two numbers, of which the first is the smaller one.

    Parameters
    ----------
    words
        What the two are.
    each
        What each of them is.
    equal
        Whether they may be equal.
    example
        A pair that may be given.
    why
        Why others are refused.
    """

    words: str = "a low and a high number"
    each: Parameter = RealNumber(zero=True, negative=True)
    equal: bool = False
    example: tuple[object, object] = (0, 100)
    why: str = ""

    def read(self, name: str, value: Any) -> tuple[Any, Any]:
        """Return both, or refuse them.

        Examples
        --------
        >>> Pair().read("bounds", (0, 100))
        (Fraction(0, 1), Fraction(100, 1))
        >>> Pair().read("bounds", (100, 0))
        Traceback (most recent call last):
        tacit.errors.TacitError: bounds must be a pair (low, high) with low below high, got (100, 0)
          fix: bounds=(0, 100)
          code: bad-parameter
        """
        fix = Set(**{name: self.example})
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__") or len(value) != 2:
            raise bad_parameter(name, f"a pair of {self.words}", value, why=self.why, fix=fix)
        try:
            low, high = (self.each.read(name, number) for number in value)
        except TacitError:
            raise bad_parameter(name, f"a pair of {self.words}", value, why=self.why, fix=fix) from None
        if low > high or (low == high and not self.equal):
            order = "low at most high" if self.equal else "low below high"
            raise bad_parameter(name, f"a pair (low, high) with {order}", value, why=self.why, fix=fix)
        return low, high


@dataclass(frozen=True, slots=True)
class Mapped:
    """Values by names, as a dictionary.

    Parameters
    ----------
    words
        What it maps: "labels by the names of groups".
    example
        A mapping that may be given, as Python.
    names
        The names that may stand in it; None for all text.
    each
        What each value is.
    whole
        Whether all of ``names`` must be there.
    why
        Why others are refused.
    """

    words: str
    example: str
    names: tuple[str, ...] | None = None
    each: Parameter | None = None
    whole: bool = False
    why: str = ""

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return the mapping, or refuse it; its values are not shown, because they may be private.

        Examples
        --------
        >>> Mapped("numbers by column", "weights={'n': 2}", names=("n", "m")).read("weights", {"k": 2})
        Traceback (most recent call last):
        tacit.errors.TacitError: weights must be numbers by column, for n and m only, got one for 'k'
          fix: weights={'n': 2}
          code: bad-parameter
        """
        fix = Code(self.example)
        if not isinstance(value, Mapping):
            raise TacitError(
                "bad-parameter", f"{name} must be {self.words}, got no mapping", why=self.why, fix=fix
            )
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None:
            raise TacitError(
                "bad-parameter", f"{name} must be {self.words}, got a name that is not text", fix=fix
            )
        if self.names is not None:
            unknown = next((key for key in value if key not in self.names), None)
            missing = next((key for key in self.names if key not in value), None) if self.whole else None
            if unknown is not None or missing is not None:
                got = f"one for {unknown!r}" if unknown is not None else f"none for {missing!r}"
                names_in_words = " and ".join(filter(None, (", ".join(self.names[:-1]), self.names[-1])))
                only = f"for each of {names_in_words}" if self.whole else f"for {names_in_words} only"
                sentence = f"{name} must be {self.words}, {only}, got {got}"
                raise TacitError("bad-parameter", sentence, why=self.why, fix=fix)
        each = self.each
        return {
            key: one if each is None else each.read(f"{name}[{key!r}]", one) for key, one in value.items()
        }


@dataclass(frozen=True, slots=True)
class Matching(_AsItIs):
    """A text of a form, such as a name without spaces or ``COLUMN=LOW:HIGH``.

    Parameters
    ----------
    words
        The form, in words or as an example.
    pattern
        The regular expression that the whole text must match.
    example
        A text that may be given.
    most
        The largest number of characters.
    why
        Why others are refused.
    """

    words: str
    pattern: str
    example: str
    most: int = _MOST_LETTERS
    why: str = ""

    def read(self, name: str, value: object) -> str:
        """Return the text, or refuse it.

        Examples
        --------
        >>> Matching("64 hexadecimal signs", "[0-9a-f]{64}", "0" * 64).read("key", "xyz")
        Traceback (most recent call last):
        tacit.errors.TacitError: key must be 64 hexadecimal signs, got 'xyz'
        ...
        """
        if (
            isinstance(value, str)
            and len(value) <= self.most
            and re.fullmatch(self.pattern, value, re.ASCII | re.DOTALL)
        ):
            return value
        raise bad_parameter(name, self.words, value, why=self.why, fix=Set(**{name: self.example}))


@dataclass(frozen=True, slots=True)
class Omitted:
    """A parameter that has no meaning where another one is set.

    Parameters
    ----------
    where
        Where it must be omitted: "for a bipartite graph".
    why
        Why.
    absent
        What stands for an omitted parameter.
    fix
        What to write instead; else the line without it.
    """

    where: str
    why: str = ""
    absent: object = None
    fix: Fix | str = ""

    def read(self, name: str, value: object) -> None:
        """Refuse a parameter that was given.

        Examples
        --------
        >>> Omitted("for a bipartite graph").read("directed", True)
        Traceback (most recent call last):
        tacit.errors.TacitError: directed must be omitted for a bipartite graph, got True
        ...
        """
        if value is not self.absent and value != self.absent:
            fix = self.fix or Set(**{name: self.absent})
            raise bad_parameter(name, f"omitted {self.where}", value, why=self.why, fix=fix)


@dataclass(frozen=True)  # with slots, `Needed[str](...)` fails: Python notes the type in the object
class Needed(Generic[T]):
    """A parameter that is needed where another one is set, or in one way of asking.

    Parameters
    ----------
    example
        A value that may be given, for the fix.
    where
        Where it must be given: "with a threshold"; empty for always.
    why
        Why.
    fix
        What to write instead; else the example.
    """

    example: object
    where: str = ""
    why: str = ""
    fix: Fix | str = ""

    def read(self, name: str, value: T | None) -> T:
        """Return the value, or refuse None.

        Examples
        --------
        >>> Needed(5, "with a reference").read("clip", None)
        Traceback (most recent call last):
        tacit.errors.TacitError: clip must be given with a reference
          fix: clip=5
          code: bad-parameter
        """
        if value is None:
            sentence = f"{name} must be given {self.where}".strip()
            fix = self.fix or Set(**{name: self.example})
            raise TacitError("bad-parameter", sentence, why=self.why, fix=fix)
        return value


def exactly_one(what: str, /, *, why: str = "", fix: Fix | str, **values: object) -> str:
    """Return the name of the one parameter that is not None, or refuse none and several.

    Examples
    --------
    >>> exactly_one("a budget", fix=Set(epsilon=1), epsilon=1, rho=None)
    'epsilon'
    >>> exactly_one("a budget", fix=Set(epsilon=1), epsilon=1, rho=2)
    Traceback (most recent call last):
    tacit.errors.TacitError: a budget needs exactly one of epsilon and rho, got epsilon and rho
      fix: epsilon=1
      code: bad-parameter
    """
    names = [name for name, value in values.items() if value is not None]
    if len(names) == 1:
        return names[0]
    *others, final = values
    names_in_words = f"{', '.join(others)} and {final}"
    raise TacitError(
        "bad-parameter",
        f"{what} needs exactly one of {names_in_words}, got {' and '.join(names) or 'none'}",
        why=why,
        fix=fix,
    )


@dataclass(frozen=True, slots=True)
class Anything(_AsItIs):
    """A value that the question reads itself, such as polygons or aggregates; Python alone can give it.

    ``shown`` says whether its text says something to people, as "12 polygons" does.
    """

    words: str
    shown: bool = False

    @property
    def example(self) -> object:
        """Nothing can be said of it here."""
        return None

    def read(self, name: str, value: object) -> object:
        """Return the value as it is."""
        del name
        return value

    def from_text(self, name: str, text: str) -> object:
        """Refuse: this cannot be typed."""
        raise bad_parameter(name, self.words, text, why="only Python can give it")


def _written(end: Number | None) -> str:
    """Write an end of a range: a whole number with its commas, another one in a few digits."""
    exact = Fraction(end or 0)
    return f"{int(exact):,}" if exact.denominator == 1 and abs(exact) < 10**19 else f"{float(exact):g}"


def _from_to(low: int, high: int) -> str:
    """Write how many there may be, or which whole numbers."""
    if low == high:
        return f"{low:,}"
    return f"{low:,} or {high:,}" if high == low + 1 else f"{low:,} to {high:,}"
