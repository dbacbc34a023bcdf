"""JSON of costs in accounting, version 1: laws by name, exact numbers. Every later release can read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from tacit.accounting._laws import (
    ApproximateLoss,
    BestOfLoss,
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GDPLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    ParallelLoss,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
    ZCDPLoss,
    canonical,
)
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose

#: The version of every stored cost, budget, spend and filter. Later releases still read it.
VERSION = 1
#: The version of a stored spend or filter that also holds values at Renyi orders.
WITH_CURVE = 2
#: The version of a stored spend or filter that also holds promised pairs.
WITH_PROMISE = 3

Json = dict[str, object]
#: Values at Renyi orders, orders ascending; None is not finite.
RenyiCurve = tuple[tuple[Fraction, Fraction | None], ...]

_EXACT = re.compile(r"(0|[1-9][0-9]{0,1999})(/[1-9][0-9]{0,1999})?")

#: Stored name -> (law, its numeric fields). Entries may be added, never changed or removed.
_PLAIN: Final[dict[str, tuple[Callable[..., LossLaw], tuple[str, ...]]]] = {
    "gaussian": (GaussianLoss, ("sigma", "sensitivity")),
    "laplace": (LaplaceLoss, ("scale", "sensitivity")),
    "discrete-laplace": (DiscreteLaplaceLoss, ("scale", "sensitivity")),
    "discrete-gaussian": (DiscreteGaussianLoss, ("sigma", "sensitivity")),
    "randomized-response": (RandomizedResponseLoss, ("epsilon",)),
    "bounded-range": (BoundedRangeLoss, ("epsilon",)),
    "pure": (PureLoss, ("epsilon",)),
    "approximate": (ApproximateLoss, ("epsilon", "delta")),
    "zcdp": (ZCDPLoss, ("rho",)),
    "gdp": (GDPLoss, ("mu",)),
    "discrete-gaussian-vector": (DiscreteGaussianVectorLoss, ("sigma", "squared")),
}
_NAMES: Final = {law: name for name, (law, _) in _PLAIN.items()}
#: Stored names of the laws that hold other laws, a curve or a whole number.
_NESTED: Final = (
    "best-of", "categorical-response", "group", "parallel", "renyi", "sampled", "shuffled",
    "shuffled-response",
)  # fmt: skip
#: How deep laws may stand within laws.
DEEPEST = 16
_UNCHANGED = "use the stored value unchanged, as Tacit wrote it"


def not_as_stored(name: str, must_be: str, got: object, *, why: str = "") -> TacitError:
    """Say that a stored value is not as Tacit wrote it."""
    return bad_parameter(name, must_be, got, why=why, fix=_UNCHANGED)


def write(value: Fraction | None) -> str | None:
    """Write an exact non-negative rational.

    Examples
    --------
    >>> write(Fraction(1, 10)), write(Fraction(3)), write(None)
    ('1/10', '3', None)
    """
    return None if value is None else str(value)


def read(name: str, text: object) -> Fraction:
    """Read what `write` wrote, and nothing else."""
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise not_as_stored(name, 'an exact number such as "1/10"', text, why="stored values are exact")
    return _parsed(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Fraction:
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator or 1))


def write_curve(curve: RenyiCurve) -> list[list[str | None]]:
    """Write values at Renyi orders, None if not finite.

    Examples
    --------
    >>> write_curve(((Fraction(2), Fraction(1, 10)), (Fraction(5, 2), None)))
    [['2', '1/10'], ['5/2', None]]
    """
    return [[str(order), write(value)] for order, value in curve]


def read_curve(data: object) -> RenyiCurve:
    """Read what `write_curve` wrote."""
    points = [_sequence("curve", point) for point in _sequence("curve", data)]
    if any(len(point) != 2 for point in points):
        raise not_as_stored("curve", "a list of [order, divergence]", data)
    return tuple(
        (read("order", order), None if value is None else read("divergence", value))
        for order, value in points
    )


def read_fields(kind: str, data: object, fields: set[str], *, version: int = VERSION) -> Mapping[str, object]:
    """Check the version and the field names of a stored value before reading from it."""
    if not isinstance(data, Mapping):
        raise not_as_stored(kind, "a stored JSON object", data)
    stored = data.get("version")
    if stored != version or isinstance(stored, bool):
        raise TacitError(
            "unknown-version",
            f"this {kind} was stored as version {stored!r}, but this Tacit reads version {version}",
            why="guessing the meaning of a stored guarantee would change the guarantee",
            fix="read it with the version of Tacit that wrote it, or with a later one",
        )
    if set(data) != fields | {"version"}:
        must_be = f"an object with {', '.join(sorted({*fields, 'version'}))}"
        raise not_as_stored(f"stored {kind}", must_be, sorted(data, key=str))
    return data


def decode(data: object) -> tuple[Parts, object]:
    """Read a stored cost and check every field; the cost itself checks the adjacency."""
    stored = read_fields("cost", data, {"adjacency", "parts"})
    return _decode(stored["parts"], 0), stored["adjacency"]


def encode(parts: Parts) -> list[Json]:
    """Return a sum of laws as JSON data."""
    stored: list[Json] = []
    for law, times in parts:
        match law:
            case RenyiLoss(curve):
                fields: Json = {"law": "renyi", "curve": [[str(order), str(value)] for order, value in curve]}
            case SampledLoss(q, inner):
                fields = {"law": "sampled", "q": str(q), "parts": encode(inner)}
            case ShuffledLoss(n, epsilon0):
                fields = {"law": "shuffled", "n": n, "epsilon0": str(epsilon0)}
            case CategoricalResponseLoss(epsilon, k):
                fields = {"law": "categorical-response", "epsilon": str(epsilon), "categories": k}
            case ShuffledResponseLoss(n, epsilon0, k):
                fields = {"law": "shuffled-response", "n": n, "epsilon0": str(epsilon0), "categories": k}
            case GroupLoss(m, inner):
                fields = {"law": "group", "m": m, "parts": encode(inner)}
            case ParallelLoss(branches):
                fields = {"law": "parallel", "branches": [encode(branch) for branch in branches]}
            case BestOfLoss(runs, parameter, candidates):
                each = [encode(one) for one in candidates]
                fields = {"law": "best-of", "runs": runs, "parameter": str(parameter), "candidates": each}
            case _:
                name = _NAMES[type(law)]
                fields = {"law": name, **{field: str(getattr(law, field)) for field in _PLAIN[name][1]}}
        stored.append({**fields, "times": times})
    return stored


def _decode(data: object, depth: int) -> Parts:
    if depth > DEEPEST:
        raise not_as_stored("the stored cost", f"nested at most {DEEPEST} levels deep", "a deeper one")
    return canonical((_decode_law(one, depth), _whole("times", one["times"])) for one in _objects(data))


def _decode_law(data: Mapping[str, object], depth: int) -> LossLaw:
    name = data.get("law")
    match name:
        case "renyi":
            _only(data, "curve")
            points = [_sequence("curve", point) for point in _sequence("curve", data["curve"])]
            if any(len(point) != 2 for point in points):
                raise not_as_stored("curve", "a list of [order, divergence]", data["curve"])
            return RenyiLoss(
                tuple((read("order", order), read("divergence", value)) for order, value in points)
            )
        case "sampled":
            _only(data, "q", "parts")
            return SampledLoss(read("q", data["q"]), _decode(data["parts"], depth + 1))
        case "shuffled":
            _only(data, "n", "epsilon0")
            return ShuffledLoss(_whole("n", data["n"]), read("epsilon0", data["epsilon0"]))
        case "categorical-response":
            _only(data, "epsilon", "categories")
            return CategoricalResponseLoss(
                read("epsilon", data["epsilon"]), _whole("categories", data["categories"])
            )
        case "shuffled-response":
            _only(data, "n", "epsilon0", "categories")
            return ShuffledResponseLoss(
                _whole("n", data["n"]),
                read("epsilon0", data["epsilon0"]),
                _whole("categories", data["categories"]),
            )
        case "group":
            _only(data, "m", "parts")
            return GroupLoss(_whole("m", data["m"]), _decode(data["parts"], depth + 1))
        case "parallel":
            _only(data, "branches")
            return ParallelLoss(
                tuple(_decode(one, depth + 1) for one in _sequence("branches", data["branches"]))
            )
        case "best-of":
            return _decode_best(data, depth)
        case str() if name in _PLAIN:
            law, fields = _PLAIN[name]
            _only(data, *fields)
            return law(*(read(field, data[field]) for field in fields))
        case _:
            raise bad_parameter("law", "the name of a known law", name, fix=Choose((*_PLAIN, *_NESTED)))


def _decode_best(data: Mapping[str, object], depth: int) -> LossLaw:
    _only(data, "runs", "parameter", "candidates")
    candidates = tuple(_decode(one, depth + 1) for one in _sequence("candidates", data["candidates"]))
    return BestOfLoss(str(data["runs"]), read("parameter", data["parameter"]), candidates)


def _objects(data: object) -> list[Mapping[str, object]]:
    items = _sequence("parts", data)
    for entry in items:
        if not isinstance(entry, Mapping) or "times" not in entry:
            raise not_as_stored("stored part", 'an object with "law" and "times"', entry)
    return [entry for entry in items if isinstance(entry, Mapping)]


def _only(data: Mapping[str, object], *fields: str) -> None:
    if set(data) != {"law", "times", *fields}:
        must_be = f"an object with {', '.join(sorted({*fields, 'law', 'times'}))}"
        raise not_as_stored("stored law", must_be, sorted(data, key=str))


def _sequence(name: str, value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise not_as_stored(name, "a list", value)
    return value


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int):
        raise not_as_stored(name, "a positive whole number", value)
    return count(name, value, zero=False)
