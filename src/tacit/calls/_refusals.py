"""Refusals of wrong calls: one sentence, after values were compared with the annotations of a function."""

from __future__ import annotations

import ast
import doctest
import inspect
import sys
from collections import abc
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Union, get_args, get_origin

from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.fixes import Fix


_LOOKED_AT = 1_000  # elements of a list: an error that a later one causes stays as it is
_PLACED = frozenset({inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
_NAMED = frozenset({inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})


class _Empty(Protocol): ...


_EVERY_PROTOCOL = frozenset(name for one in _Empty.__mro__ for name in vars(one))


class Numbers:
    """What NumPy reads as an array of numbers: numbers, lists, arrays, columns of a table."""


_NUMBERS = frozenset({int, float, Fraction, Decimal})
_WORDS: dict[object, tuple[str, str, str]] = {  # one, several, an example as Python
    int: ("a whole number", "whole numbers", "10"),
    float: ("a number", "numbers", "0.5"),
    Fraction: ("a fraction", "fractions", "0.5"),
    Decimal: ("a decimal number", "decimal numbers", "0.5"),
    bool: ("True or False", "True or False", "True"),
    str: ("a text", "texts", '"x"'),
    bytes: ("bytes", "bytes", 'b"x"'),
    Path: ("a path", "paths", '"x"'),
    object: ("a value", "values", ""),
    Any: ("a value", "values", ""),
    abc.Callable: ("a function", "functions", ""),
    Numbers: ("numbers", "numbers", "[0.5, 0.25]"),
}


def agrees(kind: Any, value: object) -> bool:
    """Return whether a value is of a kind; a kind that cannot be compared accepts everything.

    Examples
    --------
    >>> agrees(int | None, 3), agrees(int | None, "3"), agrees(list[str], ["a", 3]), agrees(float, True)
    (True, False, False, False)
    """
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return agrees(inside[0], value)
    if origin in {Union, UnionType}:
        return any(agrees(one, value) for one in inside)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inside)
    return _is_one(kind, value) if origin is None else _contains(origin, inside, value)


def _is_one(kind: Any, value: object) -> bool:
    """Return whether a value is of a class."""
    if kind is None or kind is NoneType:
        return value is None
    if kind in {int, float}:
        return not _is_truth(value) and hasattr(value, "__index__" if kind is int else "__float__")
    if kind is bool:
        return _is_truth(value)
    if kind is Numbers:
        many = hasattr(value, "__len__") and not isinstance(value, str | bytes | abc.Mapping)
        return many or hasattr(value, "__array__") or hasattr(value, "__float__")
    if not isinstance(kind, type) or kind is object or kind is Any:
        return True
    if getattr(kind, "_is_protocol", False):
        names = {name for one in kind.__mro__ if one is not object for name in vars(one)}
        return all(hasattr(value, name) for name in names - _EVERY_PROTOCOL)
    return isinstance(value, kind)


def first_wrong(label: str, kind: Any, value: Any) -> tuple[str, Any, Any] | None:
    """Return what does not agree with a kind, with the kind it should have: the value, or a part of it.

    Examples
    --------
    >>> first_wrong("public", abc.Mapping[str, tuple[str, str]], {"nation": "nation.parquet"})
    ('every value of public', tuple[str, str], 'nation.parquet')
    >>> first_wrong("k", int, 3) is None
    True
    """
    if agrees(kind, value):
        return None
    outer = label, kind, value
    options = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    for option in options:
        origin, inside = get_origin(option), get_args(option)
        if not isinstance(origin, type) or not agrees(origin, value) or isinstance(value, str | bytes):
            continue
        if issubclass(origin, abc.Mapping) and isinstance(value, abc.Mapping):
            parts = [(f"every name in {label}", inside[0], one) for one in value]
            parts += [(f"every value of {label}", inside[1], one) for one in value.values()]
        elif isinstance(value, list | tuple | abc.Set) and len(inside) == 1 + (inside[-1] is ...):
            parts = [(f"every element of {label}", inside[0], one) for one in value]
        else:
            continue
        return next(filter(None, (first_wrong(*part) for part in islice(parts, _LOOKED_AT))), outer)
    return outer


def _is_truth(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}


def _contains(origin: Any, inside: tuple[Any, ...], value: Any) -> bool:
    """Return whether a value is a collection of what is inside."""
    if origin is type:
        return isinstance(value, type)
    if origin is abc.Callable:
        return callable(value)
    if not isinstance(origin, type) or not issubclass(origin, abc.Iterable):
        return not isinstance(origin, type) or isinstance(value, origin) or hasattr(value, "__array__")
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return False
    if issubclass(origin, abc.Mapping):
        if not hasattr(value, "keys") or len(inside) != 2:
            return hasattr(value, "keys")
        names, values = inside
        return all(agrees(names, k) and agrees(values, value[k]) for k in islice(value, _LOOKED_AT))
    if not isinstance(value, list | tuple | abc.Set):
        return True  # an array, or something that can be read only once
    if issubclass(origin, tuple) and not (len(inside) == 2 and inside[1] is ...):
        return len(value) == len(inside) and all(map(agrees, inside, value))
    return not inside or all(agrees(inside[0], one) for one in islice(value, _LOOKED_AT))


def words_of(kind: Any, *, several: bool = False) -> str:
    """Return the words for a kind.

    Examples
    --------
    >>> words_of(int | None), words_of(abc.Sequence[str]), words_of(Literal["a", "b"])
    ('a whole number', 'a list of texts', '"a" or "b"')
    """
    origin, inside = get_origin(kind), get_args(kind)
    if kind in _WORDS:
        return _WORDS[kind][several]
    if origin is Annotated:
        return words_of(inside[0], several=several)
    if origin in {Union, UnionType}:
        kinds = [one for one in inside if one is not NoneType]
        if set(kinds) >= {int, float}:
            kinds = [float, *(one for one in kinds if one not in _NUMBERS)]
        return " or ".join(dict.fromkeys(words_of(one, several=several) for one in kinds))
    if origin is Literal:
        return " or ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in inside)
    if origin in _WORDS:
        return _WORDS[origin][several]
    if origin is not None and isinstance(origin, type):
        return _words_of_many(origin, inside, several=several)
    if isinstance(kind, type):
        return kind.__name__ if several else f"{_article(kind.__name__)} {kind.__name__}"
    return "values" if several else "a value"


def _words_of_many(origin: type, inside: tuple[Any, ...], *, several: bool) -> str:
    if issubclass(origin, abc.Mapping):
        words = "mappings" if several else "a mapping"
        return (
            f"{words} from {' to '.join(words_of(one, several=True) for one in inside)}" if inside else words
        )
    if issubclass(origin, tuple) and inside and inside[-1] is not ...:
        words = {2: "pair", 3: "triple"}.get(len(inside), "tuple")
        parts = ", ".join(words_of(one) for one in inside)
        return f"{words}s of {parts}" if several else f"a {words} of {parts}"
    if issubclass(origin, abc.Iterable) and origin.__module__ in {"builtins", "collections.abc"}:
        words = "lists" if several else "a list"
        return f"{words} of {words_of(inside[0], several=True)}" if inside else words
    words = {"ndarray": "array"}.get(origin.__name__, origin.__name__)
    return f"{words}s" if several else f"{_article(words)} {words}"


def _article(noun: str) -> str:
    return "an" if noun[0] in "AEIOaeio" else "a"


def example_of(kind: Any) -> str:
    """Return a value of a kind as Python; empty where there is none.

    Examples
    --------
    >>> example_of(abc.Mapping[str, int]), example_of(Path)
    ('{"x": 10}', '"x"')
    """
    origin, inside = get_origin(kind), get_args(kind)
    if kind in _WORDS:
        return _WORDS[kind][2]
    if origin in {Union, UnionType, Annotated}:
        return next(filter(None, map(example_of, inside)), "")
    if origin is Literal:
        return f'"{inside[0]}"' if isinstance(inside[0], str) else str(inside[0])
    if not isinstance(origin, type) or not issubclass(origin, abc.Iterable):
        return ""
    parts = [example_of(one) for one in inside if one is not ...]
    if not all(parts):
        return ""
    if issubclass(origin, abc.Mapping):
        return f"{{{': '.join(parts)}}}"
    return f"({', '.join(parts)})" if issubclass(origin, tuple) and len(parts) > 1 else f"[{parts[0]}]"


def kind_in_words(value: object) -> str:
    """Return what a value is, never what it holds: it may be private.

    Examples
    --------
    >>> kind_in_words("ana"), kind_in_words([1]), kind_in_words(None), kind_in_words(len)
    ('a text', 'a list', 'None', 'a function')
    """
    if value is None:
        return "None"
    if callable(value) and not isinstance(value, type):
        return "a function"
    name = type(value).__name__
    words = {
        "str": "a text",
        "int": "a whole number",
        "float": "a number",
        "dict": "a mapping",
        "bool": "a truth value",
    }
    return words.get(name) or ("a class" if isinstance(value, type) else f"{_article(name)} {name}")


def kinds_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the kinds of a function's parameters, from its annotations."""
    module = sys.modules.get(function.__module__)
    annotations = getattr(function, "__annotations__", {})
    if module is None:
        return {}
    names = _Names(module.__name__, vars(module))
    return {name: _read(one, vars(module), names) for name, one in annotations.items() if name != "return"}


def _read(annotation: object, here: dict[str, Any], names: _Names) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        kind = eval(annotation, here, names)  # noqa: S307 - the text of an annotation in this package
        return eval(kind, here, names) if isinstance(kind, str) else kind  # noqa: S307 - a written alias
    except Exception:  # noqa: BLE001 - an annotation that is not for reading
        return object


class _Absent(type):
    """The class of classes whose package was not imported: no value can be of them."""

    def __getattr__(cls, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(name, (), {})

    def __getitem__(cls, _: object) -> _Absent:
        return cls


class _Names(abc.Mapping[str, Any]):
    """The names of a module as its annotations see them: also what is imported for type checkers alone."""

    def __init__(self, module: str, here: dict[str, Any]) -> None:
        self._imports = _imports_of(module)
        self._here = here

    def __getitem__(self, name: str) -> Any:
        if name == "ArrayLike":
            return Numbers
        if name in self._here or name not in self._imports:
            raise KeyError(name)
        home, attribute = self._imports[name]
        root = home.partition(".")[0]
        if root not in sys.modules and root not in sys.stdlib_module_names:
            return _Absent(attribute or name, (), {})
        module = import_module(home)
        return getattr(module, attribute) if attribute else module

    def __iter__(self) -> Iterator[str]:
        return iter(self._imports)

    def __len__(self) -> int:
        return len(self._imports)


@lru_cache(maxsize=64)
def _imports_of(module: str) -> dict[str, tuple[str, str]]:
    """Return the names that a module imports, with their homes."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    imports: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            imports |= {one.asname or one.name: (node.module, one.name) for one in node.names}
        if isinstance(node, ast.Import):
            imports |= {
                one.asname or one.name.partition(".")[0]: (
                    one.name if one.asname else one.name.partition(".")[0],
                    "",
                )
                for one in node.names
            }
    return imports


def refusal_of(
    function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> TacitError | None:
    """Return the refusal of a call that failed; None if its arguments agree with the annotations."""
    return _Call(function, args, given).refusal()


@dataclass(frozen=True)
class _Call:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    given: Mapping[str, Any]

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that a caller writes."""
        return {name: one for name, one in self.signature.parameters.items() if name not in {"self", "cls"}}

    @cached_property
    def kinds(self) -> dict[str, Any]:
        return kinds_of(self.function)

    @cached_property
    def owner(self) -> type | None:
        """The class that has the method, or that is made."""
        if self.function.__name__ == "__init__" and self.args:
            return type(self.args[0])
        owner: Any = sys.modules.get(self.function.__module__)
        for part in self.function.__qualname__.split(".")[:-1]:
            owner = getattr(owner, part, None)
        return owner if isinstance(owner, type) else None

    @property
    def name(self) -> str:
        """The name that a caller writes."""
        of_class = self.function.__name__ in {"__init__", "__call__"} and self.owner is not None
        return self.owner.__name__ if of_class else self.function.__name__  # type: ignore[union-attr]

    @cached_property
    def example(self) -> tuple[ast.Call, str] | None:
        """The first call in the examples of the documentation, of the function's own or of its class."""
        for text in (self.function.__doc__, getattr(self.owner, "__doc__", "")):
            for example in doctest.DocTestParser().get_examples(text or ""):
                for node in ast.walk(ast.parse(example.source)):
                    if isinstance(node, ast.Call) and _called(node) == self.name:
                        source = ast.get_source_segment(example.source, node) or ""
                        return node, ast.unparse(node) if "\n" in source else source
        return None

    def refusal(self) -> TacitError | None:
        try:
            bound = self.signature.bind(*self.args, **self.given)
        except TypeError:
            return self._misfit()
        for name, value in bound.arguments.items():
            if name in self.parameters and name in self.kinds:
                for label, part in _parts(self.parameters[name], value):
                    mismatch = first_wrong(label, self.kinds[name], part)
                    if mismatch is not None:
                        return self._wrong(name, *mismatch)
        return None

    def _wrong(self, name: str, label: str, kind: Any, value: Any) -> TacitError:
        """Refuse one argument; its value is not shown, because it may be private."""
        message = f"{label} must be {words_of(kind)}, got {kind_in_words(value)}"
        return _wrong_call(message, self._value(name), parameter=name)

    def _misfit(self) -> TacitError:
        """Refuse arguments that the function does not have, or that it lacks."""
        names = tuple(name for name, one in self.parameters.items() if one.kind in _NAMED)
        open_ended = {one.kind for one in self.parameters.values()}
        takes_any_name = inspect.Parameter.VAR_KEYWORD in open_ended
        takes = (
            f"it takes: {', '.join(names) or 'nothing'}"
            if not takes_any_name
            else "every argument needs a name"
        )
        unknown = [name for name in self.given if name not in self.parameters]
        if unknown and not takes_any_name:
            close = (*get_close_matches(unknown[0], names, n=1), "")[0]
            fix = Choose(names, given=unknown[0], close=close) if names else self._call()
            message = f"{self.name} has no argument {unknown[0]!r}"
            return _wrong_call(message, fix, why=takes, parameter=unknown[0])
        places = [name for name, one in self.parameters.items() if one.kind in _PLACED]
        placed = len(self.args) - (len(self.signature.parameters) - len(self.parameters))
        if placed > len(places) and inspect.Parameter.VAR_POSITIONAL not in open_ended:
            max_words = (
                f"at most {len(places)} argument{'s' * (len(places) != 1)}" if places else "no argument"
            )
            message = f"{self.name} takes {max_words} without a name, got {placed}"
            return _wrong_call(message, self._call(), why=takes)
        filled = places[:placed]
        twice = [name for name in self.given if name in filled]
        if twice:
            message = f"{self.name} got {twice[0]} twice: by its place and by its name"
            return _wrong_call(message, self._call(), parameter=twice[0])
        missing = [
            name for name, one in self.parameters.items()
            if one.default is one.empty and name not in {*filled, *self.given} and one.kind in _NAMED
        ]  # fmt: skip
        message = f"{self.name} needs {' and '.join(missing) or 'further arguments'}"
        return _wrong_call(message, self._call(), why=takes, missing=missing)

    def _value(self, name: str) -> Fix:
        """Return a value for one argument, as the example in the documentation has it."""
        for keyword in () if self.example is None else self.example[0].keywords:
            if keyword.arg == name:
                try:
                    return Set(**{name: ast.literal_eval(keyword.value)})
                except ValueError:
                    return Code(f"{name}={ast.unparse(keyword.value)}")
        example = example_of(self.kinds[name])
        by_name = self.parameters[name].kind in _NAMED
        return Code(f"{name}={example}") if example and by_name and self.example is None else self._call()

    def _call(self) -> Code:
        """Return the call that the documentation shows, or the form of one."""
        if self.example is not None:
            return Code(self.example[1])
        needed = [
            f"{name}={example_of(self.kinds.get(name, object)) or '...'}"
            for name, one in self.parameters.items()
            if one.default is one.empty and one.kind in _NAMED
        ]
        if any(one.kind is one.VAR_KEYWORD for one in self.parameters.values()):
            needed.append("name=...")
        return Code(f"{self.name}({', '.join(needed)})")


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _parts(parameter: inspect.Parameter, value: Any) -> Iterator[tuple[str, Any]]:
    """Return what was given for one parameter, each with its name."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        yield from ((parameter.name, one) for one in value)
    elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
        yield from value.items()
    else:
        yield parameter.name, value


def _wrong_call(message: str, fix: Fix, *, why: str = "", **facts: object) -> TacitError:
    return TacitError("bad-parameter", message, why=why, fix=fix, facts=facts)
