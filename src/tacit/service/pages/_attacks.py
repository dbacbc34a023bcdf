"""The attack lab on invented people: what exact answers give away, and what noisy ones give away.

Each attack runs once in each worker process, with fixed parameters. A visitor may choose one more epsilon, of
two digits, which is attacked with as few trials; so nobody outside decides how much is computed.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from tacit.parameters import RealNumber
from tacit.service._bodies import Body, ExactNumber, read_body, read_field
from tacit.service._refusals import not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall


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
_ONE_AT_A_TIME = threading.Lock()
_DONE: Final[dict[str, dict[str, Any]]] = {}  # what was shown before, without waiting for the lock
_EPSILON: Final = RealNumber(least=0.01, most=1000, instead=1)


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
    read_field(_EPSILON, "epsilon", chosen)
    return await call.in_pool(_lab(), attack_document, name, f"{float(chosen):.2g}")


@cache
def _lab() -> ThreadPoolExecutor:
    """Return the thread of the lab: anybody may ask for attacks, and nobody else waits for them."""
    return ThreadPoolExecutor(1, thread_name_prefix="lab")


def attack_form(call: ServiceCall, written: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the page shows beside a problem: the attack without the epsilon that was refused.

    It has run before, so the event loop neither runs it nor waits for another one.
    """
    del written
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
