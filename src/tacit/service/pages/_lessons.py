"""The learn corner: the epsilon explorer, a game of guessing, and the attack lab.

The explorer says what a price means for one person, in odds, bits and an attacker's success.

In the game one is the attacker, sees noisy counts, and guesses whether one person is in the data. Everything
follows from the number of the round by a public hash, so that a page can be sent again and shared, and the
service keeps nothing. Nobody is protected here: the clinic and its patients are invented.

The lab attacks invented people, and shows what exact answers give away, and what noisy ones give away. Each
attack runs once in each worker process, with fixed parameters. A visitor may choose one more epsilon, of two
digits, which is attacked with as few trials; so nobody outside decides how much is computed.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import create_model

from tacit.parameters import Integer, RealNumber
from tacit.service._bodies import Body, ExactNumber, read_body, read_field
from tacit.service._refusals import not_found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.report import ReportTable
    from tacit.service._operations import ServiceCall


_LARGEST: Final = 100
_DELTA: Final = RealNumber(
    least=Fraction(1, 10**30), most=Fraction(1, 100), instead=0, why="a delta of 0 is allowed too"
)
_PRIORS: Final = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_TRIED: Final = ("0.1", "0.5", "1", "3", "10")
#: How many patients have the condition without Sam; with Sam there is one more.
WITHOUT: Final = 38
_ROUNDS: Final = 1_000_000
_PLAYED_EPSILON: Final = RealNumber(least=0.01, most=10, instead=1)
_NUMBERS: Final = 8
_ONE_AT_A_TIME = threading.Lock()
_DONE: Final[dict[str, dict[str, Any]]] = {}  # what was shown before, without waiting for the lock
_ATTACKED_EPSILON: Final = RealNumber(least=0.01, most=1000, instead=1)
_NAMES: Final = tuple(f"guess{place}" for place in range(1, _NUMBERS + 1))


class EpsilonChoice(Body):
    """What the explorer explains; everything has a default."""

    epsilon: ExactNumber = Fraction(1)
    delta: ExactNumber = Fraction(0)
    prior: ExactNumber = Fraction(1, 2)


def epsilon_page(call: ServiceCall) -> Mapping[str, Any]:
    """Explain the epsilon, the delta and the prior of the address."""
    chosen = read_body(EpsilonChoice, dict(call.query))
    _check(chosen)
    return epsilon_document(chosen.epsilon, chosen.delta, chosen.prior) | {"given": _given(call.query)}


def epsilon_form(call: ServiceCall, fields: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the page shows beside a problem: the fields as they were written, and no result."""
    del fields
    return {"given": _given(call.query), "tried": _TRIED, "lead": None}


def _given(query: Mapping[str, str]) -> dict[str, str]:
    defaults = {"epsilon": "1", "delta": "0", "prior": "0.5"}
    return {name: query.get(name, text)[:60] for name, text in defaults.items()}


def _check(chosen: EpsilonChoice) -> None:
    """Refuse what has no meaning, or would take too long to compute."""
    read_field(RealNumber(above=0, most=_LARGEST, instead=1), "epsilon", chosen.epsilon)
    if chosen.delta:
        read_field(_DELTA, "delta", chosen.delta)
    read_field(RealNumber(above=0, below=1), "prior", chosen.prior)


@lru_cache(maxsize=512)
def epsilon_document(epsilon: Fraction, delta: Fraction, prior: Fraction) -> dict[str, Any]:
    """Return what a price means, as a document; every figure is a bound that holds for every attacker.

    Examples
    --------
    >>> document = epsilon_document(Fraction(1, 2), Fraction(0), Fraction(1, 2))
    >>> document["lead"][0]
    'An attacker who gave 50:50 odds that you are in the data can reach at most 62:38 (62.3 %).'
    >>> round(document["bits"], 4)
    0.7213
    """
    from tacit.accounting import Cost
    from tacit.explain import believe, explain

    priors = sorted({*_PRIORS, prior})
    cost = Cost.approximate(epsilon, delta) if delta else Cost.pure(epsilon)
    explanation = explain(
        cost, priors=priors, families=(1, 2) if delta else (1, 2, 5, 10), delta=delta or 1e-6
    )
    loss, condition = explanation.odds_limit
    after = [believe(float(one), loss) for one in priors]
    report = explanation.report()
    return {
        "title": report.title,
        "lead": list(report.lead),
        "condition": condition,
        "epsilon": float(epsilon),
        "delta": float(delta),
        "bits": explanation.bits,
        "advantage": explanation.advantage,
        "right_at_most": (1 + explanation.advantage) / 2,
        "beliefs": [{"prior": b.prior, "at_least": b.at_least, "at_most": b.at_most} for b in after],
        "tables": [_table(table) for table in report.tables],
        "notes": list(report.notes),
        "tried": _TRIED,
    }


def _table(table: ReportTable) -> dict[str, Any]:
    return {"title": table.title, "header": list(table.header), "rows": [list(row) for row in table.rows]}


class GameRound(Body):
    """Which round is played, and at which price."""

    round: ExactNumber = Fraction(1)
    epsilon: ExactNumber = Fraction(1)


_GUESSES: Final[dict[str, Any]] = dict.fromkeys(_NAMES, (Literal["in", "out", ""], ""))
GameGuesses = create_model("GameGuesses", __base__=GameRound, **_GUESSES)


def game_page(call: ServiceCall) -> Mapping[str, Any]:
    """Show the numbers of a round, or how many guesses were right."""
    played: Any = read_body(GameGuesses, dict(call.query))
    requested = int(played.round) if played.round.denominator == 1 else played.round
    number = read_field(Integer(1, _ROUNDS), "round", requested)
    epsilon = read_field(_PLAYED_EPSILON, "epsilon", played.epsilon)
    guesses = [str(getattr(played, name)) for name in _NAMES]
    return game_document(number, float(epsilon), guesses if any(guesses) else None)


def game_form(call: ServiceCall, fields: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the page shows beside a problem: the first round."""
    del fields
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


@dataclass(frozen=True, slots=True)
class LabAttack:
    """An attack that the learn corner shows: its function in the lab, with the work it may do."""

    title: str
    about: str
    function: str
    options: Mapping[str, Any]
    choose: bool = True


ATTACKS: Final[dict[str, LabAttack]] = {
    "differencing": LabAttack(
        "Two harmless counts",
        "Each count covers thousands of people. Their difference is one person.",
        "differencing_attack",
        {"trials": 4000},
    ),
    "membership": LabAttack(
        "Is this person in the data?",
        "The attacker knows everybody else. One exact count settles the question.",
        "membership_attack",
        {"trials": 4000},
    ),
    "reconstruction": LabAttack(
        "Solve for the secrets",
        "Enough exact sums are a system of equations, and its solution is the data.",
        "reconstruction_attack",
        {"people": 60, "trials": 100, "epsilons": (1, 10, 100)},
    ),
    "averaging": LabAttack(
        "Ask again and again",
        "Fresh noise averages out. A stored answer does not.",
        "averaging_attack",
        {"trials": 2000},
        choose=False,
    ),
    "linking": LabAttack(
        "Join two anonymous tables",
        "Each table hides every person in a crowd. Together they do not.",
        "linking_attack",
        {"trials": 4000},
    ),
    "homogeneity": LabAttack(
        "A crowd with one secret",
        "Hiding in a crowd does not help if the whole crowd has the same condition.",
        "homogeneity_attack",
        {"trials": 4000},
    ),
}


def attacks_page(call: ServiceCall) -> Mapping[str, Any]:
    """List the attacks."""
    del call
    return {
        "attacks": [{"name": name, "title": one.title, "about": one.about} for name, one in ATTACKS.items()]
    }


class AttackChoice(Body):
    """One more epsilon to attack; empty for none."""

    epsilon: ExactNumber | Literal[""] = ""


async def attack_page(call: ServiceCall) -> Mapping[str, Any]:
    """Show one attack; the first visitor of a worker waits until it has run."""
    name = call.path["attack"]
    if name not in ATTACKS:
        raise not_found()
    if name not in _DONE:  # before the epsilon is refused
        await call.in_pool(_lab(), attack_document, name)
    chosen = read_body(AttackChoice, dict(call.query)).epsilon
    if chosen == "" or not ATTACKS[name].choose:
        return _DONE[name]
    read_field(_ATTACKED_EPSILON, "epsilon", chosen)
    return await call.in_pool(_lab(), attack_document, name, f"{float(chosen):.2g}")


@cache
def _lab() -> ThreadPoolExecutor:
    """Return the thread of the lab: anybody may ask for attacks, and nobody else waits for them."""
    return ThreadPoolExecutor(1, thread_name_prefix="lab")


def attack_form(call: ServiceCall, fields: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the page shows beside a problem: the attack without the epsilon that was refused.

    It has run before, so the event loop neither runs it nor waits for another one.
    """
    del fields
    if call.path["attack"] not in _DONE:
        raise not_found()
    return _DONE[call.path["attack"]] | {"given": call.query.get("epsilon", "")[:60]}


def attack_document(name: str, epsilon: str = "") -> dict[str, Any]:
    """Run an attack, or return what it gave in this process before; with one more epsilon if one is given."""
    with _ONE_AT_A_TIME:
        document = _DONE[name] = _attacked(name)
        return document | {"given": epsilon, "yours": _chosen(name, epsilon)} if epsilon else document


@lru_cache(maxsize=len(ATTACKS))
def _attacked(name: str) -> dict[str, Any]:
    from tacit.audit import lab

    attack = ATTACKS[name]
    result = getattr(lab, attack.function)(**attack.options)
    report = result.report()
    return {
        "name": name,
        "title": attack.title,
        "about": attack.about,
        "choose": attack.choose,
        "given": "",
        "yours": None,
        "unprotected": result.unprotected,
        "lead": list(report.lead),
        "points": _points(result),
        "tables": [
            {"title": table.title, "header": list(table.header), "rows": [list(row) for row in table.rows]}
            for table in report.tables
        ],
        "notes": list(report.notes),
    }


@lru_cache(maxsize=256)
def _chosen(name: str, epsilon: str) -> dict[str, Any]:
    """Attack with the epsilon that a visitor chose."""
    from tacit.audit import lab

    attack = ATTACKS[name]
    result = getattr(lab, attack.function)(**{**attack.options, "epsilons": (Fraction(epsilon),)})
    return _points(result)[0] | {"label": f"yours: {epsilon}"}


def _points(result: Any) -> list[dict[str, Any]]:
    """Return how often the attacker was right; of repeated questions, with fresh noise each time."""
    again = getattr(result, "repeats", None)
    points = result.points if again is None else result.redrawn
    labels = (
        [f"epsilon {p.epsilon:g}" for p in points] if again is None else [f"asked {n:,} x" for n in again]
    )
    return [
        {
            "label": label,
            "epsilon": point.epsilon,
            "low": (1 + point.low) / 2,
            "right": (1 + point.advantage) / 2,
            "high": (1 + point.high) / 2,
            "limit": (1 + point.bound) / 2,
        }
        for label, point in zip(labels, points, strict=True)
    ]
