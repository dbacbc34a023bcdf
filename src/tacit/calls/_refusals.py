"""The refusal of a wrong call: which argument is wrong, and a line that works."""

from __future__ import annotations

import ast
import doctest
import inspect
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tacit.calls._kinds import example_of, first_wrong, kind_in_words, kinds_of, words_of
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.fixes import Fix

_PLACED = frozenset({inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
_NAMED = frozenset({inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})


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
