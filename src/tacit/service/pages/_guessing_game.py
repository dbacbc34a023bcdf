"""A game in the learn corner: be the attacker, see noisy counts, and guess whether one person is in the data.

Everything follows from the number of the round by a public hash, so that a page can be sent again and shared,
and the service keeps nothing. Nobody is protected here: the clinic and its patients are invented.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import create_model

from tacit.parameters import Integer, RealNumber
from tacit.service._bodies import Body, ExactNumber, read_body, read_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.service._operations import ServiceCall

#: How many patients have the condition without Sam; with Sam there is one more.
WITHOUT: Final = 38
_ROUNDS: Final = 1_000_000
_EPSILON: Final = RealNumber(least=0.01, most=10, instead=1)
_NUMBERS: Final = 8
_NAMES: Final = tuple(f"guess{place}" for place in range(1, _NUMBERS + 1))


class GameRound(Body):
    """Which round is played, and at which price."""

    round: ExactNumber = Fraction(1)
    epsilon: ExactNumber = Fraction(1)


_GUESSES: Final[dict[str, Any]] = dict.fromkeys(_NAMES, (Literal["in", "out", ""], ""))
GameGuesses = create_model("GameGuesses", __base__=GameRound, **_GUESSES)


def game_page(call: ServiceCall) -> Mapping[str, Any]:
    """Show the numbers of a round, or how many guesses were right."""
    played: Any = read_body(GameGuesses, dict(call.query))
    asked = int(played.round) if played.round.denominator == 1 else played.round
    number = read_field(Integer(1, _ROUNDS), "round", asked)
    epsilon = read_field(_EPSILON, "epsilon", played.epsilon)
    guesses = [str(getattr(played, name)) for name in _NAMES]
    return game_document(number, float(epsilon), guesses if any(guesses) else None)


def game_form(call: ServiceCall, written: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the page shows beside a problem: the first round."""
    del written
    return game_document(1, 1.0, None) | {"given": call.query.get("epsilon", "")[:60]}


def game_document(number: int, epsilon: float, guesses: Sequence[str] | None) -> dict[str, Any]:
    """Return the numbers of a round, and with guesses also the truth and how many were right.

    Examples
    --------
    >>> document = game_document(1, 1.0, ["in"] * 8)
    >>> document["right"] == document["truth"].count("in")
    True
    """
    truth, numbers = _drawn(number, epsilon)
    best = 1 / (1 + math.exp(-epsilon))
    document: dict[str, Any] = {
        "round": number,
        "next": number % _ROUNDS + 1,
        "epsilon": epsilon,
        "given": f"{epsilon:g}",
        "without": WITHOUT,
        "numbers": numbers,
        "guesses": None,
        "best": best,
    }
    if guesses is None:
        return document
    cleverest = ["in" if value > WITHOUT else "out" for value in numbers]
    return document | {
        "guesses": list(guesses),
        "truth": truth,
        "right": sum(map(str.__eq__, guesses, truth)),
        "cleverest": sum(map(str.__eq__, cleverest, truth)),
    }


def _drawn(number: int, epsilon: float) -> tuple[list[str], list[int]]:
    """Return where Sam is, and the published counts.

    The noise is discrete Laplace: the difference of two geometric numbers with the ratio exp(-epsilon).
    """
    from tacit.audit.lab import hashed_uniform

    places = [number * _NUMBERS + place for place in range(_NUMBERS)]
    coins, up, down = (hashed_uniform(places, stream=stream).tolist() for stream in (31, 32, 33))
    truth = ["in" if coin < 0.5 else "out" for coin in coins]
    counts = [WITHOUT + (one == "in") for one in truth]
    noise = [_geometric(u, epsilon) - _geometric(d, epsilon) for u, d in zip(up, down, strict=True)]
    return truth, [count + extra for count, extra in zip(counts, noise, strict=True)]


def _geometric(uniform: float, epsilon: float) -> int:
    return math.floor(-math.log1p(-uniform) / epsilon)
