"""A certificate binds the values of its release: a number that was edited does not match its ledger."""

import copy
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from toy_fields.stream import event_stream

import tacit as tc
from tacit.core import UNBOUND, Release
from tacit.errors import TacitError


@pytest.fixture(scope="module")
def asked():
    ledger = tc.Ledger.memory()
    visits = tc.protect(
        tc.tables.example_visits(), name="visits", unit="patient_id", ledger=ledger,
        bounds={"length_of_stay": (0, 30)}, keys={"hospital": ["north", "south"]},
        budget=tc.Budget(epsilon=20),
    )  # fmt: skip
    return ledger, visits


@pytest.fixture(scope="module")
def plan(asked):
    _, visits = asked
    return visits.group_by("hospital").agg(n=tc.count(), stay=tc.mean("length_of_stay")).plan(epsilon=1)


@pytest.fixture(scope="module")
def saved(plan):
    return json.loads(json.dumps(plan.release().to_json()))


def leaves(document, path=()):
    """Return the path of every number and text in a document."""
    if isinstance(document, dict):
        return [leaf for name, one in document.items() for leaf in leaves(one, (*path, name))]
    if isinstance(document, list):
        return [leaf for place, one in enumerate(document) for leaf in leaves(one, (*path, place))]
    return [path]


def edited(document, path, value):
    changed = copy.deepcopy(document)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value(place[path[-1]])
    return changed


def matches(document, ledger):
    """Whether anybody would be told that a document is what the ledger paid for."""
    try:
        return Release.from_json(document).matches(ledger)
    except TacitError as refusal:
        assert refusal.code in {"bad-release", "bad-certificate"}
        return False


def other(value):
    match value:
        case None:
            return 1.5
        case bool():
            return not value
        case str():
            return f"{value}x"
        case _:
            return value + 1


def test_each_edited_value_is_found(asked, saved):
    ledger, _ = asked
    assert matches(saved, ledger)
    places = leaves(saved["content"], ("content",))
    assert len(places) > 20
    for path in places:
        for change in (other, lambda _: 999_999, lambda _: 10**400, lambda _: "\ud800", lambda _: None):
            forged = edited(saved, path, change)
            assert json.dumps(forged) == json.dumps(saved) or not matches(forged, ledger), path


def test_each_edited_part_of_what_binds_the_values_is_found(asked, saved):
    ledger, _ = asked
    for path in leaves(saved["certificate"], ("certificate",)):
        assert not matches(edited(saved, path, other), ledger), path
    for part in ("values", "binds"):
        assert not matches({**saved, "certificate": without(saved["certificate"], part)}, ledger)
    both = without(without(saved["certificate"], "values"), "binds")
    assert not matches({**saved, "certificate": both}, ledger)
    assert not tc.core.Certificate(both).matches(ledger)


def without(fields, name):
    return {key: one for key, one in fields.items() if key != name}


def test_a_mark_hides_no_forged_value(asked, saved):
    ledger, _ = asked
    forged = edited(saved, ("content", "columns", "n", "value", 0), lambda _: 999_999)
    release = Release.from_json({**forged, "marks": ["rounded"]})
    assert not release.matches(ledger)
    assert "done since: rounded" in release.values_problem


@pytest.mark.parametrize(
    "mark",
    ["the exact count is 99999", "non-negative whole numbers: n, checked by the ministry", "one of us"],
)
def test_a_forged_mark_is_not_verified(asked, saved, mark):
    """No certificate binds marks, so only those that Tacit writes beside unchanged values are accepted."""
    ledger, _ = asked
    release = Release.from_json({**saved, "marks": [mark]})
    assert not release.matches(ledger)
    assert mark in release.values_problem


def test_every_way_to_show_a_stored_answer_is_bound(asked, plan):
    """Names, order and confidence are no part of the plan: each way to show its answer has its digest."""
    ledger, visits = asked
    shown = [
        plan.release(),
        plan.stored(),
        visits.group_by("hospital")
        .agg(stays=tc.mean("length_of_stay"), number=tc.count())
        .plan(epsilon=1)
        .release(),
        visits.group_by("hospital")
        .agg(n=tc.count(), stay=tc.mean("length_of_stay"))
        .plan(epsilon=1, confidence=0.5)
        .release(),
    ]
    assert len({one.certificate.value_digests for one in shown}) > 1
    for release in shown:
        assert release.matches(ledger)
        assert matches(json.loads(json.dumps(release.to_json())), ledger)
    assert not shown[0].rounded().matches(ledger)
    assert Release.from_json(json.loads(json.dumps(shown[0].rounded().to_json()))).values_bound is False


def test_the_values_of_another_release_are_not_bound(asked, saved):
    ledger, visits = asked
    two = visits.agg(n=tc.count()).plan(epsilon=1).release().to_json()
    assert not matches({**saved, "content": two["content"]}, ledger)
    assert not matches({**saved, "certificate": two["certificate"]}, ledger)


def test_the_answers_of_a_batch_are_bound_one_by_one():
    ledger = tc.Ledger.memory()
    visits = tc.protect(
        tc.tables.example_visits(),
        name="visits",
        unit="patient_id",
        budget=tc.Budget(epsilon=2),
        ledger=ledger,
    )
    asks = {"n": visits.agg(n=tc.count()), "long": visits.where("age > 60").agg(n=tc.count())}
    batch = tc.batch(**asks).plan(epsilon=1).release()
    for release in (batch, batch[0], batch["long"]):
        assert release.matches(ledger)
        assert matches(json.loads(json.dumps(release.to_json())), ledger)


def test_datasets_that_answer_together_each_bind_the_sum():
    books = [tc.Ledger.memory(), tc.Ledger.memory()]
    both = [
        tc.protect(
            tc.tables.example_visits(), name=n, unit="patient_id", budget=tc.Budget(epsilon=2), ledger=b
        )
        for n, b in zip(("north", "south"), books, strict=True)
    ]
    release = tc.consortium(both, disjoint=True).agg(n=tc.count()).plan(epsilon=1).release()
    document = json.loads(json.dumps(release.to_json()))
    assert matches_all(document, books)
    assert not matches_all(edited(document, ("content", "columns", "n", "value", 0), other), books)
    alone = {**document, "certificate": document["certificate"]["members"][0]}
    assert not matches(alone, books[0])  # one of two charges did not pay for the sum


def matches_all(document, books):
    try:
        return Release.from_json(document).matches(*books)
    except TacitError:
        return False


def test_each_instalment_is_bound():
    ledger = tc.Ledger.memory()
    days = event_stream([["ana"], ["bo", "cy"]], unit="person", budget=tc.Budget(epsilon=2), ledger=ledger)
    run = days.daily().plan(epsilon=1).run()
    first, second = run.next(), run.next()
    for release in (first, second, run[1]):
        assert release.matches(ledger)
    document = json.loads(json.dumps(second.to_json()))
    assert matches(document, ledger)
    assert not matches({**document, "certificate": first.to_json()["certificate"]}, ledger)
    part = ("certificate", "ledger", "instalment")
    assert not matches(edited(document, part, lambda _: 1), ledger)


def test_a_release_of_yesterday_opens_and_says_that_it_is_not_bound(asked, plan, saved):
    """A certificate without digests: it says what was charged, and nothing of the values."""
    ledger, _ = asked
    early = without(without(saved["certificate"], "values"), "binds")
    release = Release.from_json({**saved, "certificate": early})
    assert release.values_bound is None
    assert UNBOUND in release.problems(ledger)
    assert str(release) == str(plan.stored())


def test_what_cannot_be_shown_cannot_be_read(saved):
    """Without digests, as in files of older versions, an edited document is refused or can be shown."""
    early = {**saved, "certificate": without(without(saved["certificate"], "values"), "binds")}
    read = 0
    for path in leaves(saved["content"], ("content",)):
        for change in (
            other,
            lambda _: 10**400,
            lambda _: "\ud800",
            lambda _: None,
            lambda _: 1e308,
            lambda _: [1],
        ):
            try:
                release = Release.from_json(edited(early, path, change))
            except TacitError as refusal:
                assert refusal.code == "bad-release"
                continue
            read += 1
            assert isinstance(str(release), str)
            assert release._repr_html_()
            assert release.to_csv().encode()
    assert read > 20
