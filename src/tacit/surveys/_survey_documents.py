"""The document of a survey: what a respondent's device needs, as JSON, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.mechanisms import Memo

if TYPE_CHECKING:
    from tacit.surveys._survey import Survey

SURVEY_SCHEMA = "tacit/survey/1"
_STRATEGIES = ("one", "split")


def digest_of_survey(document: Mapping[str, Any]) -> str:
    """Return the digest of a survey's document, however it is written: sorted keys, no spaces, ASCII.

    Examples
    --------
    >>> digest_of_survey({"a": 1, "b": 2}) == digest_of_survey({"b": 2, "a": 1})
    True
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_survey_document(document: object) -> Mapping[str, Any]:
    """Check the outer form of a survey's document."""
    if (
        isinstance(document, Mapping)
        and document.get("schema") == SURVEY_SCHEMA
        and document.get("strategy") in _STRATEGIES
        and isinstance(document.get("questions"), list)
    ):
        return document
    raise not_a_survey(f"a survey is a document with the schema {SURVEY_SCHEMA}")


def check_total(made: Survey) -> None:
    """Refuse a document whose randomizers give away more than it says."""
    each = [question.randomizer.epsilon for question in made.questions]
    memos = [isinstance(question.randomizer, Memo) for question in made.questions]
    if any(memos) and (not all(memos) or made.strategy == "one"):
        raise not_a_survey("a survey that is repeated asks every question each time, each with a memo")
    total = max(each, default=0) if made.strategy == "one" else sum(each)
    names = [name for question in made.questions for name in question.columns]
    if total > made.epsilon or len(set(names)) != len(names) or not each:
        raise not_a_survey("its randomizers give away more than the stated epsilon, or a name is used twice")


def not_a_survey(why: str) -> TacitError:
    """Refuse a document, with the reason."""
    return TacitError(
        "bad-survey",
        "this is not a survey that this version of Tacit can read",
        why=why,
        fix=Code("survey.save(path) writes one"),
    )
