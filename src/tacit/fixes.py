"""Fixes as data: what would help after a refusal, which each surface then writes in its own words.

Python writes ``bounds={"stay": (0, 30)}``, the command ``--bounds stay=0:30`` or a line of tacit.toml, SQL
``LEAST(GREATEST(stay, 0), 30)``, a service JSON. ``str(fix)`` is the wording for Python. The other surfaces
match on the classes below and never read the text back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

__all__ = [
    "ACTIONS", "FROM_PUBLIC_KNOWLEDGE", "MAX_NAMES", "Choose", "Code", "Declare", "Do", "Either", "FactName",
    "Fix", "Say", "Set", "as_fix", "from_json", "more_names", "to_json",
]  # fmt: skip

#: The public facts of a dataset that a fix can name; all are parameters of `tacit.protect`.
FactName: TypeAlias = Literal[
    "adjacency", "bounds", "budget", "keys", "limits", "minimum_people", "name", "never_null", "parent",
    "public", "record", "source", "types", "unit", "version",
]  # fmt: skip
#: How many names a fix lists.
MAX_NAMES: Final = 40
_FACTS: Final = get_args(FactName)
_TAKEN: Final = frozenset({"self", "cls"})
_BY_COLUMN = frozenset({"bounds", "keys", "limits", "public", "types"})

#: Added where a range must be filled in: people copy what they see, and a range must not come from the data.
FROM_PUBLIC_KNOWLEDGE: Final = " (from public knowledge, not from the data)"

#: What a fix can ask to be done, with the line of Python that does it; ``{name}`` stands for an argument.
ACTIONS: Final[dict[str, str]] = {
    "ask-a-count": "SELECT COUNT(*) FROM {table}",
    "choose-account": "ledger.create_account({account!r}, parent={dataset!r}, budget=...)",
    "aggregate-per-unit": "SELECT {unit}, MAX({column}) AS {column} FROM {table} GROUP BY {unit}",
    "bound-aggregate": "bounds=({low}, {high})" + FROM_PUBLIC_KNOWLEDGE,
    "clip-in-question": "LEAST(GREATEST({expression}, {low}), {high})" + FROM_PUBLIC_KNOWLEDGE,
    "continue-from-backup": "ledger.continue_from_backup(statement={statement!r}, who=...)",
    "compare-in-question": "{expression} = {value}",
    "convert-csv": "tc.tables.convert_csv({source!r}, {target!r}{reading}, lenient=True)",
    "convert-in-question": "CAST({expression} AS {type})",
    "create-account": "ledger.create_account({account!r}, unit=..., budget=...)",
    "cut-rarely": 'bounds={{"{expression}": "auto"}}, cut="rare"',
    "declare-encoding": "tc.tables.csv_file({source!r}, encoding={encoding!r})",
    "export-release": "release.to_pandas()",
    "find-bounds-first": "data = data.declaring("
    'data.agg(m=tc.mean("{expression}", bounds="auto")).plan(epsilon=0.5).release())',
    "give-key-file": "Ledger.open(..., key={path!r})",
    "give-witness-file": "Ledger.open(..., witness={path!r})",
    "grow-budget": "ledger.grow({account!r}, {new}, statement=..., who=...)",
    "install": "pip install {package!r}",
    "open-ledger": "Ledger.open({path!r})",
    "restore-ledger": "put the latest copy of the ledger back and check it: ledger.verify()",
    "save-certificate": "release.certificate.save({path!r})",
    "suggest-limits": "print(data.suggest_limits().plan(epsilon=0.1).release())",
    "summarise-units": "SELECT AVG(n) AS n FROM (SELECT {unit}, COUNT(*) AS n FROM {table} GROUP BY {unit})",
    "unseal-ledger": "ledger.unseal(statement={statement!r}, who=...)",
    "verify-ledger": "ledger.verify()",
    "wait-for-lock": "Ledger.open(..., wait={seconds})",
}


@dataclass(frozen=True, slots=True)
class Say:
    """Plain words that hold on every surface: ``a larger epsilon or narrower bounds``."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Code:
    """A line of Python, for what only Python can do; elsewhere the advice for the error's code is shown."""

    python: str

    def __str__(self) -> str:
        return self.python


@dataclass(frozen=True, slots=True)
class Set:
    """Other values for parameters of the call that was refused: ``epsilon=0.5``, ``--epsilon 0.5``.

    Examples
    --------
    >>> str(Set(epsilon=0.5)), str(Set.at_most(epsilon=0.5))
    ('epsilon=0.5', 'epsilon=0.5 or less')
    """

    values: Mapping[str, object]
    upper: bool

    def __init__(self, **values: object) -> None:
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "upper", False)

    @classmethod
    def at_most(cls, **values: object) -> Set:
        """Name the largest values that would be accepted."""
        fix = cls(**values)
        object.__setattr__(fix, "upper", True)
        return fix

    def __str__(self) -> str:
        text = ", ".join(f"{name}={_literal(value)}" for name, value in self.values.items())
        return f"{text} or less" if self.upper else text


@dataclass(frozen=True, slots=True)
class Declare:
    """A public fact of the dataset, to be declared by its curator.

    Parameters
    ----------
    fact
        Which fact: ``bounds``, ``keys``, ``types`` ...
    value
        What to declare; an example unless ``example`` is false.
    column
        The column, table or limit that the fact is about; empty where there is one for the whole dataset.
    example
        Whether the value only shows the form. A range must come from public knowledge, so nobody should copy
        it blindly.
    function
        The function that declares it.

    Examples
    --------
    >>> str(Declare("keys", ["A", "B"], column="ward"))
    'tc.protect(..., keys={"ward": ["A", "B"]})'
    >>> str(Declare("bounds", (0, 30), column="stay"))
    'tc.protect(..., bounds={"stay": (LOW, HIGH)}) (from public knowledge, not from the data)'
    """

    fact: FactName
    value: object
    column: str = ""
    example: bool = True
    function: str = "tc.protect"

    def __str__(self) -> str:
        a_range = self.fact == "bounds" and self.example
        value = "(LOW, HIGH)" if a_range else _literal(self.value)
        if self.fact == "budget" and isinstance(self.value, Mapping):
            value = f"tc.Budget({Set(**self.value)})"
        if self.fact in _BY_COLUMN and self.column:
            value = f"{{{_literal(self.column)}: {value}}}"
        return f"{self.function}(..., {self.fact}={value})" + (FROM_PUBLIC_KNOWLEDGE if a_range else "")


def more_names(names: Sequence[str]) -> str:
    """Say how many names a list leaves out."""
    more = len(names) - MAX_NAMES
    return f" and {more:,} more" if more > 0 else ""


@dataclass(frozen=True, slots=True)
class Choose:
    """One of a few names; ``given`` is what was written instead, ``close`` the name that was likely meant."""

    names: tuple[str, ...]
    given: str = ""
    close: str = ""

    def __str__(self) -> str:
        names = f"one of: {', '.join(self.names[:MAX_NAMES])}" + more_names(self.names)
        return f"did you mean {self.close}? {names}" if self.close else names


@dataclass(frozen=True, slots=True)
class Do:
    """Something to do, by its name in `ACTIONS`; ``words`` may lead up to it.

    Examples
    --------
    >>> str(Do("open-ledger", path="study.ledger"))
    "Ledger.open('study.ledger')"
    """

    action: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __init__(self, action: str, **arguments: object) -> None:
        ACTIONS[action].format(**arguments)  # an unknown action or a missing argument is a programming error
        object.__setattr__(self, "action", action)
        object.__setattr__(self, "arguments", arguments)

    def __str__(self) -> str:
        return ACTIONS[self.action].format(**self.arguments)


@dataclass(frozen=True, slots=True)
class Either:
    """Several ways out; any one of them helps."""

    fixes: tuple[Fix, ...]

    def __init__(self, *fixes: Fix) -> None:
        object.__setattr__(self, "fixes", fixes)

    def __str__(self) -> str:
        return ", or ".join(str(fix) for fix in self.fixes)


Fix: TypeAlias = Say | Code | Set | Declare | Choose | Do | Either


def as_fix(given: Fix | str) -> Fix:
    """Read a fix as it is written where an error is raised: plain text stands for `Say`."""
    return Say(given) if isinstance(given, str) else given


def to_json(fix: Fix) -> dict[str, object]:
    """Return a fix as JSON data, for programs: the class by name and what it holds.

    Examples
    --------
    >>> to_json(Set(epsilon=0.5))
    {'fix': 'set', 'values': {'epsilon': 0.5}}
    """
    match fix:
        case Say(text):
            return {"fix": "say", "text": text}
        case Code(python):
            return {"fix": "code", "python": python}
        case Set(values, upper):
            fields = {name: _plain(value) for name, value in values.items()}
            return {"fix": "set", "values": fields, **({"at_most": True} if upper else {})}
        case Declare(fact, value, column, example):
            return {
                "fix": "declare",
                "fact": fact,
                "column": column,
                "value": _plain(value),
                "example": example,
            }
        case Choose(names, given, close):
            return {"fix": "choose", "names": list(names), "given": given, "close": close}
        case Do(action, arguments):
            return {
                "fix": "do",
                "action": action,
                "arguments": {name: _plain(value) for name, value in arguments.items()},
            }
        case Either(fixes):
            return {"fix": "either", "fixes": [to_json(one) for one in fixes]}


def from_json(document: Any) -> Fix:
    """Read a fix that `to_json` wrote, perhaps a newer version elsewhere; what cannot be read says nothing.

    Examples
    --------
    >>> from_json({"fix": "set", "values": {"epsilon": 0.5}})
    Set(values={'epsilon': 0.5}, upper=False)
    >>> from_json({"fix": "dance"})
    Say(text='')
    """
    match document:
        case {"fix": "say", "text": str(text)}:
            return Say(text)
        case {"fix": "code", "python": str(python)}:
            return Code(python)
        case {"fix": "set", "values": {**values}} if _are_parameters(values):
            build = Set.at_most if document.get("at_most") is True else Set
            return build(**_named(values))
        case {"fix": "declare", "fact": fact, "column": str(column), "value": value} if fact in _FACTS:
            pair = tuple(value) if fact in {"bounds", "public"} and isinstance(value, list) else value
            return Declare(fact, pair, column=column, example=document.get("example") is not False)
        case {"fix": "choose", "names": [*names], "given": str(given), "close": str(close)}:
            return Choose(tuple(str(name) for name in names), given, close)
        case {"fix": "do", "action": str(action), "arguments": {**arguments}}:
            try:
                return Do(action, **_named(arguments))
            except (LookupError, TypeError, ValueError, AttributeError):
                return Say("")
        case {"fix": "either", "fixes": [*fixes]} if len(fixes) <= MAX_NAMES:
            return Either(*(one for fix in fixes if str(one := from_json(fix))))
        case _:
            return Say("")


def _named(values: Mapping[Any, object]) -> dict[str, object]:
    return {str(name): value for name, value in values.items()}


def _are_parameters(values: Mapping[Any, object]) -> bool:
    return all(isinstance(name, str) and name.isidentifier() and name not in _TAKEN for name in values)


def _literal(value: object) -> str:
    """Write a value as Python does, with double quotes as the documentation has them."""
    match value:
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple():
            return f"({', '.join(_literal(one) for one in value)}{',' if len(value) == 1 else ''})"
        case list():
            return f"[{', '.join(_literal(one) for one in value)}]"
        case dict():
            return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value.items()) + "}"
        case _:
            return "..." if value is ... else repr(value)


def _plain(value: object) -> object:
    """Return a value that JSON can hold."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list() | range():
            return [_plain(one) for one in value]
        case Mapping():
            return {str(name): _plain(one) for name, one in value.items()}
        case _ if value is ...:
            return None
        case _ if hasattr(value, "to_json"):
            return _plain(value.to_json())
        case _:
            return str(value)
