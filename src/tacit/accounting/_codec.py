"""Costs as JSON data, version 1: laws by name, numbers as exact strings. Written once, readable for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tacit.accounting._stored import VERSION, Json, read, read_fields, write
from tacit.accounting.laws import (
    GDP,
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Group,
    Laplace,
    Law,
    Parallel,
    Parts,
    Pure,
    RandomizedResponse,
    Renyi,
    Sampled,
    Shuffled,
    canonical,
)
from tacit.errors import bad_parameter
from tacit.exact import count

__all__ = ["decode", "encode"]

#: Stored name -> (law, its numeric fields). Entries may be added, never changed or removed.
_PLAIN: Final[dict[str, tuple[Callable[..., Law], tuple[str, ...]]]] = {
    "gaussian": (Gaussian, ("sigma", "sensitivity")),
    "laplace": (Laplace, ("scale", "sensitivity")),
    "discrete-laplace": (DiscreteLaplace, ("scale", "sensitivity")),
    "discrete-gaussian": (DiscreteGaussian, ("sigma", "sensitivity")),
    "randomized-response": (RandomizedResponse, ("epsilon",)),
    "bounded-range": (BoundedRange, ("epsilon",)),
    "pure": (Pure, ("epsilon",)),
    "approximate": (Approximate, ("epsilon", "delta")),
    "zcdp": (ZCDP, ("rho",)),
    "gdp": (GDP, ("mu",)),
}
_NAMES: Final = {law: name for name, (law, _) in _PLAIN.items()}
_DEEPEST = 16


def encode(parts: Parts, adjacency: str) -> Json:
    """Write parts and adjacency."""
    return {"version": VERSION, "adjacency": adjacency, "parts": _encode(parts)}


def decode(data: object) -> tuple[Parts, object]:
    """Read what `encode` wrote, checking every field; the adjacency is checked by the cost itself."""
    stored = read_fields("cost", data, {"adjacency", "parts"})
    return _decode(stored["parts"], 0), stored["adjacency"]


def _encode(parts: Parts) -> list[Json]:
    return [{**_encode_law(law), "times": times} for law, times in parts]


def _encode_law(law: Law) -> Json:
    match law:
        case Renyi(curve):
            return {"law": "renyi", "curve": [[write(order), write(value)] for order, value in curve]}
        case Sampled(q, parts):
            return {"law": "sampled", "q": write(q), "parts": _encode(parts)}
        case Shuffled(n, epsilon0):
            return {"law": "shuffled", "n": n, "epsilon0": write(epsilon0)}
        case Group(m, parts):
            return {"law": "group", "m": m, "parts": _encode(parts)}
        case Parallel(branches):
            return {"law": "parallel", "branches": [_encode(branch) for branch in branches]}
        case _:
            name = _NAMES[type(law)]
            return {"law": name, **{field: write(getattr(law, field)) for field in _PLAIN[name][1]}}


def _decode(data: object, depth: int) -> Parts:
    if depth > _DEEPEST:
        raise bad_parameter("stored cost", f"nested at most {_DEEPEST} deep", "a deeper one")
    return canonical((_decode_law(one, depth), _whole("times", one["times"])) for one in _objects(data))


def _decode_law(data: Mapping[str, object], depth: int) -> Law:
    name = data.get("law")
    match name:
        case "renyi":
            _only(data, "curve")
            points = [_sequence("curve", point) for point in _sequence("curve", data["curve"])]
            if any(len(point) != 2 for point in points):
                raise bad_parameter("curve", "a list of [order, divergence]", data["curve"])
            return Renyi(tuple((read("order", order), read("divergence", value)) for order, value in points))
        case "sampled":
            _only(data, "q", "parts")
            return Sampled(read("q", data["q"]), _decode(data["parts"], depth + 1))
        case "shuffled":
            _only(data, "n", "epsilon0")
            return Shuffled(_whole("n", data["n"]), read("epsilon0", data["epsilon0"]))
        case "group":
            _only(data, "m", "parts")
            return Group(_whole("m", data["m"]), _decode(data["parts"], depth + 1))
        case "parallel":
            _only(data, "branches")
            return Parallel(tuple(_decode(one, depth + 1) for one in _sequence("branches", data["branches"])))
        case str() if name in _PLAIN:
            law, fields = _PLAIN[name]
            _only(data, *fields)
            return law(*(read(field, data[field]) for field in fields))
        case _:
            raise bad_parameter("law", "the name of a known law", name)


def _objects(data: object) -> list[Mapping[str, object]]:
    items = _sequence("parts", data)
    for one in items:
        if not isinstance(one, Mapping) or "times" not in one:
            raise bad_parameter("stored part", 'an object with "law" and "times"', one)
    return [one for one in items if isinstance(one, Mapping)]


def _only(data: Mapping[str, object], *fields: str) -> None:
    if set(data) != {"law", "times", *fields}:
        raise bad_parameter("stored law", f"an object with {', '.join(fields)}", sorted(data, key=str))


def _sequence(name: str, value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise bad_parameter(name, "a list", value)
    return value


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int):
        raise bad_parameter(name, "a positive whole number", value)
    return count(name, value, zero=False)
