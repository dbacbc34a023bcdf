"""The start page, which says what each role can do here; the list of lessons, the glossary and error codes.

The glossary has the words that curators, analysts and auditors meet, the same as in the docs. The page of an
error code is the address that a problem names as its type. Crawlers find here what they may read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tacit.errors import CODES
from tacit.service._operations import Download
from tacit.service._refusals import not_found, status_of
from tacit.service.access import links_made_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall


#: What people can do: title, words, address, roles that can. The first that fits counts for an address.
_TASKS: Final = (
    (
        "Ask a question",
        "Choose a dataset, write SQL, and see the price and the expected error before you pay.",
        "/datasets",
        {"analyst"},
    ),
    (
        "Look up your answers",
        "Every answer that you paid for stays here, with its intervals and its certificate.",
        "/queries",
        {"analyst"},
    ),
    (
        "See questions and answers",
        "What was asked about the datasets that you look after, with the price and the answer.",
        "/queries",
        {"curator", "auditor"},
    ),
    (
        "Protect a dataset",
        "Choose a listed source, say who is protected, and set a budget. The service reads no row for that.",
        "/declare",
        {"curator"},
    ),
    (
        "Decide requests",
        "Analysts ask for allotments and for single plans. You see the price, the odds and what is left.",
        "/requests",
        {"curator"},
    ),
    (
        "Check the ledger",
        "Verify the chain of all charges, and check a certificate against it.",
        "/ledger",
        {"auditor"},
    ),
    (
        "Read the ledger",
        "Every charge to your datasets and every decision about their budgets.",
        "/ledger",
        {"curator"},
    ),
    ("Manage people", "Invite people, give roles, and withdraw access.", "/users", {"admin"}),
    (
        "See what happened",
        "Who signed in, gave a role or decided something, and when.",
        "/audit-events",
        {"admin"},
    ),
    (
        "Let a program ask for you",
        "Make a token for a notebook, a script or an assistant, with its uses and its last day.",
        "/tokens",
        {"analyst", "curator", "auditor", "admin"},
    ),
)
_LINK_DAYS: Final = 30  # for which the start page says who made a link for this person
#: What needs the role on all datasets.
_EVERYWHERE: Final = {"/declare", "/users", "/audit-events"}
_LESSONS: Final = (
    (
        "Epsilon explorer",
        "Type an epsilon and see what it means for one person: odds, bits, an attacker's success.",
        "/learn/epsilon",
    ),
    (
        "Attack lab",
        "Six attacks on invented people: what exact answers give away, and what noisy answers give away.",
        "/learn/attacks",
    ),
    (
        "Be the attacker",
        "A game: see noisy counts and guess whether one person is in the data.",
        "/learn/game",
    ),
    ("Glossary", "What the words on these pages mean.", "/learn/glossary"),
)


def start_page(call: ServiceCall) -> Mapping[str, Any]:
    """Return what this person can do here, and what everybody can learn."""
    roles = call.caller.roles if call.caller else frozenset()
    tasks: dict[str, dict[str, str]] = {}
    for title, about, href, needed in _TASKS:
        held_roles = call.caller.roles_on("") if call.caller and href in _EVERYWHERE else roles
        if needed & held_roles:
            tasks.setdefault(href, {"title": title, "about": about, "href": href})
    links = links_made_for(call.service.database, call.caller.id, _LINK_DAYS) if call.caller else []
    return {
        "signed_in": call.caller is not None,
        "tasks": list(tasks.values()),
        "lessons": _lessons(),
        "links": links,
    }


def learn_page(call: ServiceCall) -> Mapping[str, Any]:
    """List what everybody can learn here, without signing in."""
    del call
    return {"lessons": _lessons()}


def _lessons() -> list[dict[str, str]]:
    return [{"title": title, "about": about, "href": href} for title, about, href in _LESSONS]


def robots_file(call: ServiceCall) -> Download:
    """Ask crawlers to stay away."""
    del call
    return Download(b"User-agent: *\nDisallow: /\n", "text/plain")


#: Word by word as in docs/explanation/glossary.md; a test compares them.
GLOSSARY: Final[dict[str, str]] = {
    "account": (
        "A named budget in the ledger. An account can have accounts below it, for example one for each team."
    ),
    "adjacency": (
        "The rule that says which two datasets are neighbours: one unit is added or removed (the "
        "default), or one unit's data is replaced."
    ),
    "advantage": (
        "How much better an attacker does than blind guessing: the rate of true alarms minus the rate "
        "of false alarms. It is at most tanh(epsilon / 2) for a pure cost. With advantage 0.05, the attacker "
        "is right 52.5 % of the time instead of 50 %."
    ),
    "allotment": (
        "A part of a dataset's budget that a curator gives to one analyst for one purpose. In the ledger, "
        "it is an account below the dataset's account."
    ),
    "analyst": "The person who asks questions and pays for them from an allotment.",
    "answer time": (
        "The fixed, public moment at which a service hands out an answer, whether it took long to "
        "compute or not."
    ),
    "auditor": "The person who checks the ledger and the certificates, and asks no questions.",
    "bounds": (
        "The public range of a column. Tacit clips values outside the range. Without bounds, one person"
        " could change a sum by any amount."
    ),
    "budget": (
        "How much may be learned about one unit in total: epsilon; epsilon and delta; rho; rho and delta."
    ),
    "certificate": "A file that states the promise of a release in a form that programs can read.",
    "composition": (
        "The rules for adding costs. Costs add up for questions about the same people. For disjoint "
        "people, only the largest cost counts."
    ),
    "cost": "What one plan takes from a budget.",
    "curator": "The person who holds the data and decides how much may be learned.",
    "dataset": "Data, its unit and its public facts. `protect` makes a dataset from tables.",
    "delta": (
        "A small probability with which the promise may fail completely. For pure costs it is zero. It "
        "is not the probability that the odds change by more than epsilon allows."
    ),
    "deniability": (
        "The possibility to deny credibly what an answer seems to say about you. The noise could have "
        "produced any"
        " answer, so an answer proves nothing about one person."
    ),
    "epsilon": (
        "The measure of privacy loss: one person's data can change the probability of any answer by at "
        "most a factor of exp(epsilon). A smaller epsilon is a stronger promise."
    ),
    "group privacy": (
        "The promise for several people together. For k people, the epsilon of a pure cost is k times "
        "as large."
    ),
    "keys": (
        "The values that name the groups of an answer, such as the hospitals. They are public, or Tacit"
        " selects them privately, which needs a delta."
    ),
    "ledger": "The durable record of every charge. It charges before the data is touched and never refunds.",
    "limits": "How much one unit may contribute: rows, groups, rows per group.",
    "mechanism": "A step that adds noise and knows its cost and its error.",
    "neighbours": "Two datasets that differ in one unit. See adjacency.",
    "odds": (
        "The chance that something is true, divided by the chance that it is not. An answer multiplies the "
        "odds by its likelihood ratio: how much more likely the answer is if the statement is true. Epsilon "
        "bounds the logarithm of this ratio."
    ),
    "plan": "What Tacit will compute, with its cost and its expected error. A plan does not touch the data.",
    "policy": (
        "What a curator declared about a dataset in a service: the unit, the bounds, the keys, the "
        "limits, the budget. A policy never changes. To change something, the curator declares a new policy."
    ),
    "post-processing": "Anything that you do with a release afterwards. It is free.",
    "privacy loss": (
        "The logarithm of how much more likely an answer is with a person's data than without it. A "
        "pure cost always bounds it by epsilon. Other costs bound it except with a stated probability."
    ),
    "publication": "A release that a curator put on a page that anybody can read, without signing in.",
    "pure": "A cost with delta zero. The promise holds without exception.",
    "purpose": "What an allotment may be used for. Another purpose needs another request.",
    "release": "The answer to a plan: a content, such as values with intervals, and a certificate.",
    "rho": (
        "The measure of zero-concentrated differential privacy (zCDP). It suits Gaussian noise, because"
        " rhos add up exactly, while a sum of epsilons is larger than needed."
    ),
    "sandbox": (
        "Invented rows with the columns of a dataset. Questions to it are free, and the answers mean nothing."
    ),
    "sensitivity": "The largest amount by which one unit can change an exact answer.",
    "unit": "Who is protected: a patient with all visits, a patient on one day, one visit, a device.",
    "witness": (
        "A small file, best kept on another disk, that records the last entry of a ledger. It shows "
        "whether entries at the end of the ledger were lost or removed."
    ),
}


def glossary_page(call: ServiceCall) -> Mapping[str, Any]:
    """Return the words with their meaning."""
    del call
    return {"words": [{"word": word, "meaning": meaning} for word, meaning in GLOSSARY.items()]}


def error_code_page(call: ServiceCall) -> Mapping[str, Any]:
    """Explain one code in a line."""
    code = call.path["code"]
    if code not in CODES:
        raise not_found()
    return {"code": code, "meaning": CODES[code], "status": status_of(code)}
