"""The document of a survey: what a respondent's device needs, as JSON, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tacit.errors import TacitError
from tacit.fixes import Code

__all__ = ["SURVEY_SCHEMA", "digest_of_survey", "read_survey_document"]

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
    raise TacitError(
        "bad-survey",
        "this is not a survey that this version of Tacit can read",
        why=f"a survey is a document with the schema {SURVEY_SCHEMA}",
        fix=Code("survey.save(path) writes one"),
    )
