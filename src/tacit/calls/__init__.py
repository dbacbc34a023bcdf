"""Wrong calls of public functions: a refusal says how a function is called, and no bare ``TypeError`` leaves.

A room hands its public names to `refuse_wrong_calls`. A call that fails is then compared with the signature
and the annotations of the function. What does not agree is refused in one sentence, with a line that works.
What agrees was no mistake of the caller, so the error is raised as it is. A call that succeeds is not looked
at. `_refusals` compares values with annotations and writes the sentences.
"""

from __future__ import annotations

import inspect
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["refuse_wrong_calls", "refusing"]

T = TypeVar("T")
_MARK = "_refuses_wrong_calls"


def refuse_wrong_calls(room: str, names: Iterable[str]) -> None:
    """Let the public functions and classes of a room refuse wrong calls; called once, where they are listed.

    Parameters
    ----------
    room
        The package, which has the names by now. A name that is imported when it is first needed is handed
        to `refusing` at that time.
    names
        Its public names. Those of other rooms and values that cannot be called stay as they are.
    """
    package = sys.modules[room]
    for name in names:
        public = vars(package).get(name)
        if (inspect.isclass(public) or inspect.isfunction(public)) and public.__module__.startswith(room):
            setattr(package, name, refusing(public))


def refusing(made: T) -> T:
    """Return a function that refuses wrong calls; a class is changed in place, with its public methods.

    Examples
    --------
    >>> @refusing
    ... def double(number: int) -> int:
    ...     return number.__index__() * 2
    >>> double(3)
    6
    >>> double([])
    Traceback (most recent call last):
    tacit.errors.TacitError: number must be a whole number, got a list
      fix: number=10
      code: bad-parameter
    """
    if inspect.isclass(made):
        _refuse_in_class(made)
    elif inspect.isfunction(made):
        refuses = _guarded(made)
        home, name = sys.modules.get(made.__module__), refuses.__name__
        if getattr(home, name, None) is made:
            setattr(home, name, refuses)  # where pickle looks for it
        return refuses  # type: ignore[return-value]
    return made


def _refuse_in_class(kind: type) -> None:
    """Guard the methods of a class and of its bases in this package."""
    if issubclass(kind, BaseException) or getattr(kind, "_is_protocol", False):
        return
    for base in kind.__bases__:
        if base.__module__.startswith("tacit."):
            _refuse_in_class(base)
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name not in {"__init__", "__call__"}:
            continue
        if inspect.isfunction(value):
            setattr(kind, name, _guarded(value))
        elif isinstance(value, classmethod | staticmethod) and inspect.isfunction(value.__func__):
            setattr(kind, name, type(value)(_guarded(value.__func__)))


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(function, _MARK):
        return function

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TacitError:
            raise
        except Exception:
            from tacit.calls._refusals import refusal_of  # only a refusal needs it

            refusal = refusal_of(function, args, given)
            if refusal is None:
                raise
            raise refusal from None

    setattr(call, _MARK, True)
    return call
