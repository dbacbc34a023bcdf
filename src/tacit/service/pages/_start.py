"""The start page, which says what each role can do here; the learn corner; and what crawlers may read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tacit.service._operations import Download
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
    for title, about, href, wanted in _TASKS:
        held = call.caller.roles_on("") if call.caller and href in _EVERYWHERE else roles
        if wanted & held:
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
