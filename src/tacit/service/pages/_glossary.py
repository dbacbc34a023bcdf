"""The glossary of the pages: the words that curators, analysts and auditors meet; the same as in the docs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall

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
        "of false alarms. It is at most tanh(epsilon / 2) for a pure cost."
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
