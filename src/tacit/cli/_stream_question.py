"""The question of a stream as people type it: ``--ask cases=count --ask "fever=mean(temp)"``."""

from __future__ import annotations

import re
from typing import Any

from tacit.errors import TacitError
from tacit.fixes import Choose, Say

_FORM = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<what>\w+)\s*(?:\((?P<inside>.*)\))?\s*")
#: Statistics of one column that can be added up over days.
_OF_A_COLUMN = ("sum", "mean", "variance", "std")
_KNOWN = ("count", *_OF_A_COLUMN, "histogram")


def read_ask_options(texts: list[str]) -> dict[str, Any]:
    """Read what is measured each day, by name of the released column.

    Examples
    --------
    >>> {name: one.words for name, one in read_ask_options(["n=count", "fever=mean(temp)"]).items()}
    {'n': 'count()', 'fever': 'mean(temp)'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, aggregate = _read(text)
        if name in found:
            raise _unclear(text, f"two --ask options have the name {name!r}")
        found[name] = aggregate
    return found


def _read(text: str) -> tuple[str, Any]:
    import tacit as tc

    form = _FORM.fullmatch(text)
    if form is None:
        raise _unclear(text, f"--ask {text!r} is not a name and a statistic with = between them")
    name, what, inside = form["name"], form["what"].lower(), (form["inside"] or "").strip()
    if what not in _KNOWN:
        raise TacitError(
            "bad-parameter",
            f"--ask {text!r} does not name a statistic that a stream can release",
            why="a stream adds up days, so it needs a statistic that can be added up",
            fix=Choose(_KNOWN, given=what),
        )
    if what == "count":
        if inside not in {"", "*"}:
            raise _unclear(text, f"--ask {text!r}: a count has no column; --where chooses the rows")
        return name, tc.count()
    if not inside:
        raise _unclear(text, f"--ask {text!r} names no column")
    if what in _OF_A_COLUMN:
        return name, getattr(tc, what)(inside)
    column, *edges = [part.strip() for part in inside.split(",")]
    try:
        return name, tc.histogram(column, [float(edge) for edge in edges])
    except ValueError:
        raise _unclear(text, f"--ask {text!r}: the edges of a histogram are numbers") from None


def _unclear(text: str, what: str) -> TacitError:
    example = "ages=histogram(age,0,18,65,120)" if "histogram" in text else "fever=mean(temp)"
    return TacitError("bad-parameter", what, fix=Say(f'--ask cases=count --ask "{example}"'))
