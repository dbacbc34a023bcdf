"""A sample of the units: Poisson, secret, by unit, at the amplified cost."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from tacit.algebra._statistics import RowCounts
from tacit.tables.planning._exact_integers import exact_integers
from tacit.tables.planning._steps import Ask, amplified_ask, inner_ask, read_sample, share_of_sample

N = 4000


def protected(**more) -> tc.Dataset:
    rng = np.random.default_rng(0)
    pid = np.arange(N).repeat(2)
    data = pa.table({"pid": pid, "g": rng.choice(["a", "b"], 2 * N), "x": rng.uniform(0, 10, 2 * N)})
    given = {"unit": "pid", "limits": {"rows": 2}, "budget": tc.Budget(epsilon=100, delta=0.01), **more}
    return tc.protect(data, name="d", bounds={"x": (0, 10)}, ledger=tc.Ledger.memory(), **given)


SQL = "SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS u, SUM(x) AS s FROM d TABLESAMPLE 5 PERCENT"


def exact(plan):
    task = plan._members[0].task.subject
    found = exact_integers(task.engine, task.asked, task.statistics)
    return {type(statistic).__name__: lines[()][0] for statistic, lines in found.items()}


def test_the_cost_is_that_of_the_mechanisms_sampled():
    plan = protected().sql(SQL).plan(epsilon=0.5)
    share = Fraction(round(0.05 * 2**32), 2**32)
    inner = sum(
        (m.cost for m in plan._members[0].task.mechanisms[1:]), plan._members[0].task.mechanisms[0].cost
    )
    assert plan.cost == inner.sampled(share)
    assert plan.cost.epsilon(delta=0) <= 0.5
    assert inner.epsilon(delta=0) == pytest.approx(math.log1p(math.expm1(0.5) / 0.05), rel=1e-6)
    assert str(share) in str(plan)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, 5])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.99])
def test_what_the_sample_may_cost_and_what_it_costs_are_inverse(epsilon, share):
    ask = Ask(Fraction(epsilon), Fraction(1, 10**6))
    inner = inner_ask(ask, read_sample(share))
    again = amplified_ask(inner, read_sample(share))
    assert again.epsilon <= ask.epsilon <= again.epsilon * (1 + Fraction(1, 10**9))
    assert again.delta == ask.delta


def test_units_are_drawn_whole_and_for_all_numbers_together():
    plan = protected().sql(SQL).plan(epsilon=0.5)
    for _ in range(3):
        drawn = exact(plan)
        assert drawn["RowCounts"] == 2 * drawn["UnitCounts"]  # each unit has two rows


def test_samples_are_poisson_and_fresh():
    plan = protected().sql("SELECT COUNT(DISTINCT pid) AS u FROM d TABLESAMPLE 5 PERCENT").plan(epsilon=0.5)
    counts = [exact(plan)["UnitCounts"] for _ in range(120)]
    mean, sd = N * 0.05, math.sqrt(N * 0.05 * 0.95)
    assert abs(np.mean(counts) - mean) < 6 * sd / math.sqrt(len(counts))
    assert 0.6 < np.std(counts) / sd < 1.45  # P < 1e-10 beyond either end
    assert len(set(counts)) > 10


def test_the_same_plan_is_free_and_gives_the_stored_answer():
    data = protected()
    first = data.sql(SQL).plan(epsilon=0.5).release()
    left = data.remaining
    again = data.sample(0.05).agg(n=tc.count(), u=tc.count_units(), s=tc.sum("x")).plan(epsilon=0.5).release()
    assert again.content.to_dict() == first.content.to_dict()
    assert data.remaining == left
    assert "sample of 5 %" in str(first)
    assert abs(first.content.to_dict()["u"][0] - N * 0.05) < 200  # not scaled up


def test_certificates_state_the_sample_and_verify():
    data = protected()
    plan = data.sql(SQL).plan(epsilon=0.5)
    release = plan.release()
    assert release.certificate.problems(data._ledger) == []
    assert all(law["sampled"] == str(share_of_sample(read_sample(0.05))) for law in plan.mechanisms)
    assert data.plan_from(json.loads(json.dumps(plan.to_json()))).hash == plan.hash
    assert plan.hash != data.sql(SQL.replace(" TABLESAMPLE 5 PERCENT", "")).plan(epsilon=0.5).hash


def test_a_unit_changes_nothing_if_it_is_not_drawn_and_at_most_its_rows_if_it_is(monkeypatch):
    """With the secret held, neighbours differ by the sensitivity of the mechanisms, or not at all."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parent))
    import neighbours as nb

    from tacit.tables.planning import _exact_integers

    drawn = []
    for secret in range(14):
        monkeypatch.setattr(_exact_integers, "drawn_sample", lambda secret=secret: ((f"{secret:064x}",),))
        lines = [(i, "A", float(i), 1, None) for i in range(5)]
        small = nb._tables(lines, [])
        large = nb._tables([*lines, *[(77, "B", 30.0, 2, None)] * 3], [])
        left, right = nb.engine(small), nb.engine(large)
        data = nb.dataset(large, {"rows": 2})
        asked = data["visits"].sample(0.5).group_by("h").agg(n=tc.count(), s=tc.sum("x"), m=tc.median("x"))
        assert nb.check(asked.question, left, right) == 3
        emitted = (RowCounts(),)
        changed = [nb.exact_integers(one, asked.question, emitted)[RowCounts()] for one in (left, right)]
        drawn.append(changed[0] != changed[1])
        left.close()
        right.close()
    assert 1 < sum(drawn) < 13


@pytest.mark.parametrize("share", ["1e999999999/1", "0.5", "1/0", None, 3, "2/1"])
def test_a_certificate_with_a_forged_share_does_not_verify(share):
    data = protected()
    release = data.sql(SQL).plan(epsilon=0.5).release()
    body = json.loads(release.certificate.to_json())
    for law in body["mechanisms"]:
        law["sampled"] = share
    assert tc.Certificate(body).problems(data._ledger)


def test_private_groups_can_be_sampled():
    plan = (
        protected()
        .sql("SELECT g, COUNT(*) AS n FROM d TABLESAMPLE 20 PERCENT GROUP BY g")
        .plan(epsilon=1, delta=1e-6)
    )
    assert plan.cost.epsilon(delta=1e-6) <= 1
    assert set(plan.release().content.to_dict()["g"]) <= {"a", "b"}


def test_an_error_can_be_asked_of_the_sample():
    plan = protected().sql("SELECT COUNT(*) AS n FROM d TABLESAMPLE 5 PERCENT").plan(within=20)
    whole = protected().sql("SELECT COUNT(*) AS n FROM d").plan(within=20)
    assert plan.cost.epsilon(delta=0) < 0.1 * whole.cost.epsilon(delta=0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT * FROM d TABLESAMPLE 5 PERCENT)",
        "WITH t AS (SELECT * FROM d TABLESAMPLE 5 PERCENT) SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM d JOIN d AS e TABLESAMPLE 5 PERCENT ON d.pid = e.pid",
        "SELECT COUNT(*) FROM d TABLESAMPLE 0 PERCENT",
        "SELECT COUNT(*) FROM d TABLESAMPLE 100 PERCENT",
        "SELECT COUNT(*) FROM d TABLESAMPLE 10 ROWS",
    ],
)
def test_samples_of_parts_of_a_question_are_refused(sql):
    with pytest.raises(tc.TacitError):
        protected().sql(sql).plan(epsilon=1)


def test_replaced_units_rho_and_single_rows_are_refused():
    with pytest.raises(tc.TacitError, match="needs the adjacency add/remove"):
        protected(adjacency="replace").sql(SQL).plan(epsilon=1)
    with pytest.raises(tc.TacitError, match="not in rho"):
        protected().sql(SQL).plan(rho=0.1)
    with pytest.raises(tc.TacitError, match="by the name of the unit"):
        protected(unit=tc.Unit.row(), limits=None).sql(SQL).plan(epsilon=1)


def test_a_document_cannot_claim_a_sample_that_is_not_drawn():
    data = protected()
    written = json.loads(json.dumps(data.sql(SQL).plan(epsilon=0.5).to_json()))
    for forged in (0, -1, 2**32, 0.5, "1", True):
        written["request"]["question"]["sample"] = forged
        with pytest.raises(tc.TacitError):
            data.plan_from(written)
