"""Fields of any kind go the one way: triangles, a model with weights, a survey without a ledger."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from toy_fields.model import LinearModel, examples
from toy_fields.survey import survey
from toy_fields.triangles import TRIANGLES, CountWithInterval, graph

import tacit as tc
from support.exact_integers import exact_of_plan
from tacit import TacitError
from tacit.core import Argument, QuestionKind
from tacit.parameters import Choice, Day, Flag, Integer, RealNumber, Text

EDGES = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)]


def test_each_toy_field_stays_small():
    for file in (Path(__file__).parent / "toy_fields").glob("*.py"):
        assert len(file.read_text().splitlines()) <= 60, file.name


def test_a_triangle_count_is_planned_charged_stored_and_shown():
    friends = graph(EDGES, nodes=5, budget=tc.Budget(epsilon=2))
    plan = friends.triangles().plan(epsilon=1)
    assert plan.cost.epsilon(delta=0) == 1
    assert str(plan.unit) == "edge"
    assert "scale 3" in repr(plan)
    assert "one edge is added or removed" in repr(plan)
    release = plan.release(who="ana")
    assert release.low <= release.value <= release.high
    assert repr(release) == f"{release.value} [{release.low}, {release.high}]"
    assert plan.release().content == release.content
    assert float(friends.remaining.epsilon) == 1
    assert isinstance(release.content, CountWithInterval)


def test_the_triangle_count_is_right_where_noise_is_small():
    assert (
        graph(EDGES, nodes=5, budget=tc.Budget(epsilon=10**6)).triangles().plan(epsilon=10**5).release().value
        == 2
    )


def test_one_edge_changes_the_triangles_by_at_most_the_sensitivity():
    full = [(a, b) for a in range(6) for b in range(a)]
    for missing in full:
        counts = [
            exact_of_plan(graph(edges, nodes=6, budget=tc.Budget(epsilon=1)).triangles().plan(epsilon=1))[0]
            for edges in (full, [e for e in full if e != missing])
        ]  # fmt: skip
        assert counts[0] - counts[1] == 4


def test_a_toy_plan_is_rebuilt_from_its_document():
    friends = graph(EDGES, nodes=5, budget=tc.Budget(epsilon=2))
    plan = friends.triangles().plan(epsilon=1)
    assert friends.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    with pytest.raises(TacitError) as refused:
        graph(EDGES, nodes=6, budget=tc.Budget(epsilon=2)).plan_from(plan.to_json())
    assert refused.value.code == "plan-differs"


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(5)
    features = rng.random((4000, 3))
    target = features @ np.array([0.5, 0.2, 0.1])
    clients = examples(features, target, budget=tc.Budget(rho=1))
    return clients.fit().plan(rho=0.5).release()


def test_a_model_is_a_release_with_weights(trained, tmp_path):
    assert np.allclose(trained.weights, [0.5, 0.2, 0.1], atol=0.1)
    assert trained.predict([[1, 1, 1]])[0] == pytest.approx(0.8, abs=0.1)
    assert "LinearModel" in repr(trained)
    assert "LinearModel" in trained._repr_html_()
    trained.save(tmp_path / "model.json")
    loaded = tc.Release.load(tmp_path / "model.json")
    assert isinstance(loaded.content, LinearModel)
    assert loaded == trained


def test_what_a_model_does_not_have_is_refused_in_words(trained):
    for ask in (len, iter, lambda r: r["n"]):
        with pytest.raises(TacitError, match="has no columns"):
            ask(trained)
    with pytest.raises(TacitError, match="no picture"):
        trained.plot()
    with pytest.raises(AttributeError):
        trained.intercept  # noqa: B018


def test_a_model_without_a_wire_form_is_refused_not_rebuilt():
    clients = examples([[1.0]], [1.0], budget=tc.Budget(rho=1))
    with pytest.raises(TacitError) as refused:
        clients.plan_from(clients.fit().plan(rho=0.1).to_json())
    assert refused.value.code == "plan-differs"


def test_a_survey_needs_no_ledger_and_its_certificate_says_so():
    smoking = survey("Do you smoke?", ["no", "yes"], epsilon=1)
    plan = smoking.answer("yes")
    assert plan.is_local
    assert "no ledger is charged" in repr(plan)
    release = plan.release()
    assert release.answer in {"no", "yes"}
    assert release.certificate.is_local
    assert release.certificate.fields["ledger"] is None
    assert "no ledger was charged" in release.certificate.problems(tc.Ledger.memory())[0]


def test_a_survey_estimates_from_randomized_reports():
    smoking = survey("Do you smoke?", ["no", "yes"], epsilon=3)
    answers = ["yes"] * 300 + ["no"] * 700
    estimate = smoking.estimate([smoking.answer(answer).release() for answer in answers])
    assert abs(estimate.value - 0.3) < 0.1
    assert estimate.low < estimate.value < estimate.high


@pytest.mark.parametrize(
    ("accepts", "value"),
    [
        (Integer(1, 9), 3), (RealNumber(), 0.1), (RealNumber(negative=True), -2.5), (Text(), "ana"),
        (Choice(("a", "b")), "b"), (Day(), "2026-01-31"), (Flag(), False), (Integer(), None),
    ],
)  # fmt: skip
def test_every_kind_of_argument_comes_back_from_a_plan_document(accepts, value):
    asked = []

    def draft(graph, goal, given):
        asked.append(given)
        return TRIANGLES.draft(graph, goal)

    kind = QuestionKind(name="asked", words="Ask", draft=draft, arguments=(Argument("given", accepts),))
    friends = graph(EDGES, nodes=5, budget=tc.Budget(epsilon=2))
    plan = kind.ask(friends, given=value).plan(epsilon=1)
    request = json.loads(json.dumps(plan.to_json()["request"]))
    assert kind.rebuilt(friends, request) == plan
    assert asked[0] == asked[1]
