"""Options that several commands share, declared once, in a dataclass. Commands take an object of it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, kw_only=True)
class Total:
    """What an answer may cost."""

    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="What the answer may cost.")] = None
    delta: Annotated[
        float, typer.Option(help="Allow Gaussian noise and private groups, with this delta.")
    ] = 0
    rho: Annotated[float | None, typer.Option(help="Instead of epsilon: the cost in rho (zCDP).")] = None
    confidence: Annotated[float, typer.Option(help="How often the intervals cover the noise.")] = 0.95

    @property
    def goal(self) -> dict[str, Any]:
        """What the plan of a question takes."""
        return {name: getattr(self, name) for name in ("epsilon", "delta", "rho", "confidence")}


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks, and for which purpose."""

    who: Annotated[str, typer.Option(help="Who asks; recorded in the ledger.")] = ""
    purpose: Annotated[str, typer.Option(help="For which purpose; recorded in the ledger.")] = ""


@dataclass(frozen=True)
class Further:
    """The options of a command that no parameter of its function names, and the command that was typed."""

    command: Any
    values: Mapping[str, Any]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Expand each parameter of a command that is such a dataclass into the options of its fields.

    A parameter whose class is a `Further` gets the options that the command's own class adds.
    """
    own = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: one.annotation for name, one in own.items() if is_dataclass(one.annotation)
    }
    further = next((name for name, group in groups.items() if issubclass(group, Further)), "")
    rest = groups.pop(further, None)
    shared = {name: _options(group) for name, group in groups.items()}
    alone = {name: one for name, one in own.items() if name not in groups and name != further}
    listed = [option for name, one in own.items() if name != further for option in shared.get(name, [one])]
    known = {option.name: option for option in listed}

    def run(context: typer.Context, **values: Any) -> None:
        made = {name: values[name] for name in alone}
        for name, options in shared.items():
            made[name] = groups[name](**{one.name: values[one.name] for one in options})
        if rest is not None:
            made[further] = rest(context.command, {k: v for k, v in values.items() if k not in known})
        command(**made)

    here = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [*sorted(known.values(), key=lambda one: one.kind), here]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _options(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    declared = inspect.signature(group).parameters.values()
    return [one.replace(annotation=hints[one.name]) for one in declared]
