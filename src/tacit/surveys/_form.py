"""The questionnaire of a survey: one HTML file that changes the answer on the respondent's own device."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from math import ceil, exp, floor, log10
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set
from tacit.mechanisms import LinearHashing, NumberWindow, SubsetSelection
from tacit.surveys._answering import odds_factor, what_is_sent

if TYPE_CHECKING:
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion

_WORD = 32  # bits of a word of a seed that the page can draw
_FOOT = "This page loads nothing from the network and stores nothing. Its source shows every step."


def form_page(
    survey: Survey,
    *,
    title: str | None = None,
    intro: str = "",
    post_to: str | None = None,
    invitation: bool = False,
    language: str = "en",
) -> str:
    """Return the questionnaire of a survey as one HTML file that needs no network.

    Guarantee: the page draws the report with the browser's secure generator, by the same whole numbers as
    the library, so each report has the survey's epsilon for the respondent. The true answer is not sent and
    not stored. The policy in its head lets it run its own script only, and lets it reach one address at most.

    Parameters
    ----------
    survey
        Its questions and exact randomizers.
    title, intro
        What the page says at its top; by default the survey's name.
    post_to
        The address that takes reports (https); without it, the page can only save them.
    invitation
        Whether a respondent must give the number of an invitation, if the address of the page has none.
    language
        The language of the questions, for screen readers.
    """
    for question in survey.questions:
        _check_law(question)
    address = None if post_to is None else _address(post_to)
    epsilon = float(survey.epsilon)
    facts = {
        "survey": survey.document(),
        "digest": survey.digest,
        "sent": {question.name: what_is_sent(question) for question in survey.questions},
        "promise": _promise(epsilon),
        "meaning": _meaning(epsilon),
        "post": address,
        "invitation": invitation,
    }
    parts = {
        "@LANG@": html.escape(language),
        "@TITLE@": html.escape(title or survey.name),
        "@INTRO@": html.escape(intro or "Please answer the questions below."),
        "@FOOT@": html.escape(_FOOT if address is None else f"{_FOOT} It sends reports to {address} only."),
        "@DATA@": json.dumps(facts, allow_nan=False).replace("<", "\\u003c"),
    }
    page = files("tacit.surveys").joinpath("form.html").read_text(encoding="utf-8")
    # one pass over the template: a mark inside a title or a question stays as it is written there
    page = re.sub("|".join(parts), lambda mark: parts[mark.group()], page)
    return page.replace("@POLICY@", _policy(page, address), 1)


def _policy(page: str, address: str | None) -> str:
    """Return the content security policy: the page's own style and script by their digests, nothing else."""
    [style], [script] = (re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL) for tag in ("style", "script"))
    allowed = [
        "default-src 'none'",
        f"style-src '{_digest(style)}'",
        f"script-src '{_digest(script)}'",
        "base-uri 'none'",
        "form-action 'none'",
        *([] if address is None else [f"connect-src {address}"]),
    ]
    return "; ".join(allowed)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _check_law(question: SurveyQuestion) -> None:
    """Refuse a question whose report the page cannot draw."""
    law = question.randomizer
    if isinstance(law, LinearHashing) and law.words <= _WORD:
        return
    if not isinstance(law, SubsetSelection | NumberWindow):
        raise TacitError(
            "not-allowed",
            f"the survey page cannot randomize the answers to {question.name!r}: {law.describe()}",
            why="the page stores nothing, so it cannot keep a permanent answer, and it does not support "
            "the older randomized-response designs",
            fix=Code("survey.answer(..., memory=memory).release() on the respondent's device"),
        )


def _address(post_to: str) -> str:
    """Return the collector's address; refuse one that others can read on the way or that ends the policy."""
    parts = urlsplit(post_to)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    safe = re.fullmatch(r"[\w.~:/\[\]@!$&()*+%-]+", post_to, re.ASCII) is not None
    if (
        not safe
        or not parts.hostname
        or not (parts.scheme == "https" or (parts.scheme == "http" and is_local))
    ):
        raise bad_parameter(
            "post_to",
            "an address that starts with https://, without a query",
            post_to,
            why="anyone on the way could read reports sent without encryption",
            fix=Set(post_to="https://survey.example.org/reports"),
        )
    return post_to


def _promise(epsilon: float) -> str:
    """Say what the whole report can give away, in the words of a respondent."""
    return (
        "Seeing your report changes anyone's odds about your answers by a factor of "
        f"{odds_factor(epsilon)} at most, whatever else they know about you."
    )


def _meaning(epsilon: float) -> str:
    """Say what the report that was drawn can give away."""
    doubt = 100 / (1 + exp(epsilon))
    belief = _up(100 - doubt, max(1, 1 - floor(log10(doubt))))
    return (
        "You can deny any answer: the same report could have come from every other answer. Someone who found "
        "two answers of yours equally likely before reading the report can be at most "
        f"{belief} % sure of one of them afterwards."
    )


def _up(value: float, places: int) -> str:
    """Return a number with so many places after the point, never below it."""
    return f"{ceil(value * 10**places - 1e-9) / 10**places:.12g}"
