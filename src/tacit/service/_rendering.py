"""Pages from templates: always escaped, and an unknown name in a template is an error."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tacit.service import _release_contents
from tacit.service._release_contents import answer_chart, chart_of
from tacit.service._times import read_moment, shown_moment
from tacit.show import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall


@cache
def environment() -> Environment:
    """Return the templates; every text is escaped.

    Templates see the drawings ``charts.answer``, ``charts.burn_down``, ``charts.odds``, ``charts.attack``,
    ``charts.budget`` and ``charts.release``, and the filters ``moment``, ``iso``, ``shown`` and ``percent``.

    Examples
    --------
    >>> environment().from_string("{{ doc }} {{ '1/3' | shown }}").render(doc="<b>")
    '&lt;b&gt; 1/3 (0.3333)'
    """
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["charts"] = SimpleNamespace(
        answer=answer_chart,
        attack=_release_contents.attack_chart,
        budget=_release_contents.budget_bar,
        burn_down=_release_contents.burn_down_chart,
        odds=_release_contents.odds_chart,
        release=chart_of,
    )
    made.filters |= {
        "combine": _combine,
        "iso": _iso,
        "moment": shown_moment,
        "percent": _percent,
        "percent_up": _percent_up,
        "full_sentence": _full_sentence,
        "sentence": _sentence,
        "shown": _shown,
    }
    return made


def render(template: str, call: ServiceCall, document: Mapping[str, Any]) -> bytes:
    """Render a page: templates see the operation's document, the call, and the name of the service."""
    name = call.service.settings.name
    text = environment().get_template(template).render(doc=document, call=call, service_name=name)
    return text.encode("utf-8")


def _combine(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {**first, **second}


def _iso(moment: object) -> str:
    return read_moment(moment).isoformat(timespec="seconds").replace("+00:00", "Z")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _full_sentence(text: str) -> str:
    """Write words as a sentence of its own: with a full stop too, unless it has one."""
    return _sentence(text) + ("" if text[-1:] in ".!?" else ".")


def _percent(share: object) -> str:
    return f"{100 * float(Fraction(str(share))):.3g} %"


def _percent_up(share: float) -> str:
    """Write an upper bound as a percentage, rounded up, so that it never looks better than it is."""
    return f"{math.ceil(10_000 * share - 1e-9) / 100:g} %"


def _shown(value: object) -> str:
    """Write a number for people; an exact text such as 1/3 gets its decimals beside it."""
    if value is None:
        return "–"
    text = shown(float(Fraction(str(value))))
    return f"{value} ({text})" if isinstance(value, str) and "/" in value else text
