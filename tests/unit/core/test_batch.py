"""Batches: several questions as one plan, one charge, one certificate, one stored release."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from toy_fields.stream import event_stream
from toy_fields.survey import survey
from toy_fields.triangles import CountWithInterval, graph

import tacit as tc
from support.asking import HUGE, ledger_of, task_of, visits
from support.exact_integers import exact_of
from tacit import TacitError
from tacit.core import AnswerBatch, Plan, Release, Step, Task
from tacit.core._batch import batch_task
from tacit.mechanisms import DiscreteLaplace


def three(data):
    return {
        "all": data.agg(n=tc.count()),
        "places": data.group_by("hospital").agg(m=tc.mean("length_of_stay"), n=tc.count()),
        "old": data.sql("SELECT COUNT(*) * 2 AS twice FROM visits WHERE age > 65"),
    }


def test_a_batch_is_one_charge_and_one_entry_with_one_certificate():
    data = visits(budget=tc.Budget(epsilon=1))
    before = ledger_of(data).head.count
    release = tc.batch(**three(data)).plan(epsilon=Fraction(3, 4)).release(who="ana")
    assert [entry.kind for entry in ledger_of(data).history()][before:] == ["draw", "release"]
    assert str(data.remaining) == "epsilon 0.25 of 1"
    assert release.certificate.problems(ledger_of(data)) == []
    assert release.certificate.fields["promised"] == {"epsilon": "3/4"}
    assert len(release) == 3
    assert release.names == ("all", "places", "old")
    assert [type(one) for one in release] == [Release] * 3
    assert release[0].value == release["all"].value == release[-3].value
    assert list(release["old"].columns) == ["twice"]
    assert "the certificate states what they cost together" in " ".join(repr(release[1]).split())


def test_the_same_batch_again_is_free_in_any_order_and_under_other_names():
    data = visits()
    asked = three(data)
    plan = tc.batch(**asked).plan(epsilon=1)
    release, head = plan.release(), ledger_of(data).head
    again = tc.batch(asked["old"], b=asked["places"], c=asked["all"]).plan(epsilon=1)
    assert again.hash == plan.hash
    other = again.release()
    assert ledger_of(data).head == head
    assert other["c"].value == release["all"].value
    assert other[0].to_json()["content"] == release["old"].to_json()["content"]
    assert plan.stored().to_json() == release.to_json()


@pytest.mark.parametrize(
    "total",
    [
        {"epsilon": 1},
        {"epsilon": 1, "delta": 1e-6},
        {"rho": 0.1},
        {"epsilon": Fraction(1, 3), "confidence": 0.9},
    ],
)
def test_a_batch_is_rebuilt_from_its_document_with_the_same_hash(total):
    data = visits()
    plan = tc.batch(**three(data), weights={"all": 3}).plan(**total)
    document = json.loads(json.dumps(plan.to_json()))
    again = data.plan_from(document)
    assert again.hash == plan.hash
    assert again.to_json() == plan.to_json()
    assert repr(again) == repr(plan)
    assert again.release().to_json() == plan.release().to_json()


def test_a_document_that_promises_less_than_it_costs_is_refused():
    data = visits()
    document = tc.batch(**three(data)).plan(epsilon=1).to_json()
    document["request"]["promised"] = {"epsilon": "1/2"}
    with pytest.raises(TacitError) as caught:
        data.plan_from(document)
    assert caught.value.code == "plan-differs"


@pytest.mark.parametrize(
    "forged",
    [
        {"batch": 3, "promised": {"epsilon": "1"}},
        {"batch": [], "promised": {"epsilon": "1"}},
        {"batch": [["a"]], "promised": {"epsilon": "1"}},
        {"batch": [["a", {}]] * 2000, "promised": {"epsilon": "1"}},
        {"promised": {"epsilon": "1e999999999"}},
        {"promised": {"epsilon": "1/0"}},
        {"promised": {"epsilon": "1", "note": "1"}},
        {"promised": {}},
        {"promised": 3},
        {"promised": None},
    ],
)
def test_a_forged_request_is_refused_in_words(forged):
    data = visits()
    document = json.loads(json.dumps(tc.batch(**three(data)).plan(epsilon=1).to_json()))
    document["request"] |= forged
    with pytest.raises(TacitError) as caught:
        data.plan_from(document)
    assert caught.value.code == "plan-differs"
    document["request"] = {"batch": [["a", document["request"]]], "promised": {"epsilon": "1"}}
    with pytest.raises(TacitError) as caught:
        data.plan_from(document)
    assert caught.value.code == "plan-differs"


def test_a_release_of_a_batch_is_saved_and_read_back(tmp_path):
    data = visits()
    release = tc.batch(**three(data)).plan(epsilon=1).release()
    release.save(tmp_path / "batch.json")
    again = Release.load(tmp_path / "batch.json")
    assert isinstance(again.content, AnswerBatch)
    assert again.to_json() == release.to_json()
    assert repr(again["places"]) == repr(release["places"])
    assert "<h4>places</h4>" in again._repr_html_()
    assert set(release.to_pandas()) == {"all", "places", "old"}
    assert len(release.plot().axes) == 3
    release["places"].save(tmp_path / "one.json")
    assert Release.load(tmp_path / "one.json").certificate.plan == release.certificate.plan
    document = release.to_json()
    document["content"][0]["kind"] = "batch"
    with pytest.raises(TacitError, match="can read"):
        Release.from_json(document)


def test_the_same_question_twice_is_measured_once_and_read_in_its_own_words():
    data = visits()
    plan = tc.batch(
        a=data.agg(n=tc.count()), b=data.agg(k=tc.count()), c=data.agg(s=tc.sum("length_of_stay"))
    ).plan(epsilon=1)
    assert len(plan.mechanisms) == 2
    assert task_of(plan).mechanisms[0].epsilon == Fraction(1, 2)
    release = plan.release()
    assert (list(release["a"].columns), list(release["b"].columns)) == (["n"], ["k"])
    assert release["a"].value == release["b"].value
    one = tc.batch(data.agg(n=tc.count()), data.agg(n=tc.count())).plan(epsilon=1)
    assert one.cost == data.agg(n=tc.count()).plan(epsilon=1).cost


def test_random_weights_never_cost_more_than_the_total_and_leave_little_over():
    """The split is checked forward: pure, with delta, and in rho."""
    data, chance = visits(), np.random.default_rng(7)
    questions = [data.where(f"age > {10 * i}").agg(n=tc.count()) for i in range(4)]
    for total in ({"epsilon": 1}, {"epsilon": Fraction(2, 3), "delta": 1e-7}, {"rho": Fraction(1, 7)}):
        whole = tc.Budget(**total)
        for _ in range(3):
            weights = [Fraction(int(w), 100) for w in chance.integers(5, 400, size=4)]
            cost = tc.batch(*questions, weights=weights).plan(**total).cost
            assert cost.fits(whole)
            if "rho" in total:
                assert cost.rho > 0.998 * float(whole.rho)
            else:
                assert cost.epsilon(delta=whole.delta) > 0.99 * float(whole.epsilon)


def test_weights_share_epsilon_in_proportion_and_rho_by_squares():
    data = visits()
    asked = [data.agg(n=tc.count()), data.agg(s=tc.sum("length_of_stay"))]
    pure = tc.batch(*asked, weights=[1, 3]).plan(epsilon=1)
    assert sorted(one.epsilon for one in task_of(pure).mechanisms) == [Fraction(1, 4), Fraction(3, 4)]
    rho = tc.batch(*asked, weights=[1, 3]).plan(rho=1)
    shares = sorted(one.cost.rho for one in task_of(rho).mechanisms)
    assert shares[1] / shares[0] == pytest.approx(9, rel=1e-6)


def test_many_questions_with_a_delta_use_tight_composition():
    data = visits()
    questions = [data.where(f"age > {i}").agg(n=tc.count()) for i in range(40)]
    together = tc.batch(*questions).plan(epsilon=1, delta=1e-6)
    alone = questions[0].plan(epsilon=Fraction(1, 40), delta=Fraction(1, 40 * 10**6))
    assert together.forecast[0].error < alone.forecast[0].error / 2
    assert together.cost.fits(tc.Budget(epsilon=1, delta=1e-6))


def test_private_groups_and_samples_are_parts_of_a_batch():
    data = visits()
    release = (
        tc.batch(
            groups=data.group_by("icd").agg(n=tc.count()),
            half=data.sample(0.5).agg(n=tc.count()),
            tenth=data.sample(0.1).agg(n=tc.count()),
            all=data.agg(n=tc.count()),
        )
        .plan(epsilon=2, delta=1e-5)
        .release()
    )
    assert release.certificate.problems(ledger_of(data)) == []
    assert len(release["groups"]) > 1
    assert release["tenth"].value < release["half"].value < release["all"].value


def test_a_delta_beside_rho_pays_for_private_groups_alone():
    data = visits()
    asked = {"groups": data.group_by("icd").agg(n=tc.count()), "book": data.crosstabs(["hospital"], 1)}
    plan = tc.batch(**asked).plan(rho=0.5, delta=1e-6)
    assert plan.cost.fits(tc.Budget(rho=0.5, delta=1e-6))
    assert data.plan_from(plan.to_json()) == plan
    with pytest.raises(TacitError, match="no delta"):
        tc.batch(**asked).plan(rho=0.5)
    with pytest.raises(TacitError) as caught:  # the first refusal, not the one without a delta
        tc.batch(asked["groups"], data.sample(0.5).agg(n=tc.count())).plan(rho=0.5, delta=1e-6)
    assert "sample" in caught.value.what


def test_ready_plans_are_joined_at_the_cost_of_all():
    data = visits()
    plans = [
        data.agg(n=tc.count()).plan(epsilon=0.25),
        data.agg(m=tc.sum("length_of_stay")).plan(epsilon=0.5),
    ]
    joined = tc.batch(*plans)
    assert isinstance(joined, Plan)
    assert joined.promised == {"epsilon": Fraction(3, 4)}
    assert joined.cost == plans[0].cost + plans[1].cost
    assert data.plan_from(joined.to_json()) == joined
    gaussian = [data.where(f"age > {i}").agg(n=tc.count()).plan(rho=0.01) for i in range(3)]
    assert tc.batch(*gaussian).promised == {"rho": Fraction(3, 100)}
    mixed = tc.batch(plans[0], gaussian[0])
    assert mixed.cost.fits(tc.Budget(rho=mixed.promised["rho"]))
    small = [data.where(f"age > {i}").agg(n=tc.count()).plan(epsilon=1, delta=1e-6) for i in range(9)]
    both = tc.batch(*small)
    assert both.promised["epsilon"] < 9
    assert both.cost.fits(tc.Budget(both.promised["epsilon"], both.promised["delta"]))


def test_any_field_can_be_in_a_batch():
    friends = graph([(0, 1), (1, 2), (0, 2)], nodes=4, budget=tc.Budget(epsilon=1))
    one = tc.batch(few=friends.triangles()).plan(epsilon=1)
    assert isinstance(one.release()["few"].content, CountWithInterval)
    assert friends.plan_from(one.to_json()) == one


def test_a_batch_of_a_service_is_answered_there():
    data = visits()

    class Far:
        def answer(self, plan, *, stored=False, **_):
            rebuilt = data.plan_from(json.loads(json.dumps(plan)))
            found = rebuilt.stored() if stored else rebuilt.release()
            return None if found is None else json.loads(json.dumps(found.to_json()))

    plan = tc.batch(**three(replace(data, _ledger=Far()))).plan(rho=0.1)
    assert plan.stored() is None
    release = plan.release()
    assert plan.stored().to_json() == release.to_json()
    assert release["all"].low <= release["all"].value <= release["all"].high


def test_blocks_are_united_and_a_part_without_blocks_reads_everything():
    def named(*blocks):
        return replace(counted(1), blocks=blocks)

    assert batch_task((named("b", "a"), named("c")), ()).blocks == ("a", "b", "c")
    assert batch_task((named("b"), named()), ()).blocks == ()


def refusals():
    data, other = visits(), visits(name="others")
    count = data.agg(n=tc.count())
    plan = count.plan(epsilon=1)
    return {
        "nothing": (tc.batch, "bad-parameter", "1 to 1,000 questions"),
        "no question": (lambda: tc.batch(count, 3), "bad-parameter", "no method plan"),
        "a plan among questions": (lambda: tc.batch(count, plan), "bad-parameter", "q2 is a plan"),
        "rows": (lambda: tc.batch(data.where("age > 3")), "bad-parameter", ""),
        "other data": (
            lambda: tc.batch(count, other.agg(n=tc.count())).plan(epsilon=1), "not-allowed", "one dataset",
        ),
        "another ledger": (
            lambda: tc.batch(plan, visits().agg(n=tc.sum("length_of_stay")).plan(epsilon=1)),
            "not-allowed", "ledger",
        ),
        "a batch": (lambda: tc.batch(plan, tc.batch(plan)), "not-allowed", "batch already"),
        "several datasets": (
            lambda: tc.batch(tc.consortium([data, other]).agg(n=tc.count()).plan(epsilon=1)),
            "not-allowed", "several datasets",
        ),
        "local": (
            lambda: tc.batch(survey("?", ["a", "b"], epsilon=1).answer("a")), "not-allowed", "device",
        ),
        "weights of plans": (lambda: tc.batch(plan, weights=[1]), "bad-parameter", "weights"),
        "too few weights": (lambda: tc.batch(count, count, weights=[1]), "bad-parameter", "2 numbers"),
        "unknown weight": (lambda: tc.batch(a=count, weights={"b": 1}), "bad-parameter", "for a only"),
        "no weight": (lambda: tc.batch(count, weights=[0]), "bad-parameter", "weight of q1"),
        "a name twice": (lambda: tc.batch(count, q1=count), "bad-parameter", "names"),
        "no total": (lambda: tc.batch(count).plan(), "bad-parameter", "one of epsilon and rho"),
        "two totals": (lambda: tc.batch(count).plan(epsilon=1, rho=1), "bad-parameter", "contradict"),
        "delta of 1": (lambda: tc.batch(count).plan(epsilon=1, delta=1), "bad-parameter", "below 1"),
        "two confidences": (
            lambda: tc.batch(plan, data.agg(k=tc.sum("length_of_stay")).plan(epsilon=1, confidence=0.9)),
            "bad-parameter", "confidences",
        ),
        "no plan": (lambda: tc.batch(lambda **_: 3).plan(epsilon=1), "bad-parameter", "makes a plan"),
    }  # fmt: skip


@pytest.mark.parametrize("name", refusals())
def test_what_cannot_be_in_a_batch_is_refused_with_a_way_out(name):
    call, code, words = refusals()[name]
    with pytest.raises(TacitError) as caught:
        call()
    assert caught.value.code == code
    assert words in f"{caught.value.what} {caught.value.why}"
    assert str(caught.value.fix)


def test_a_run_is_refused():
    days = event_stream([[1], [2, 3]], unit=tc.Unit.row(), budget=HUGE)
    run = days.daily(days=2).plan(epsilon=1)
    with pytest.raises(TacitError, match="cannot be part of a batch") as caught:
        tc.batch(run)
    assert "instalments" in caught.value.why


def test_an_answer_that_is_not_there_is_named():
    release = tc.batch(**three(visits())).plan(epsilon=1).release()
    with pytest.raises(TacitError, match="no answer 'al'") as caught:
        release["al"]
    assert "all" in str(caught.value.fix)
    with pytest.raises(IndexError):
        release[3]


# -- neighbours: every mechanism gets integers of its own sensitivity


def moved(tables, make):
    """Return by how much one unit moves the integers of each mechanism, relative to its sensitivity."""
    plans = [make(tc.protect(t, name="d", unit="u", bounds={"x": (0, 9)}, limits={"rows": 3}, budget=HUGE))
             for t in tables]  # fmt: skip
    assert plans[0].hash == plans[1].hash
    first, second = (exact_of(task_of(plan)) for plan in plans)
    return [
        float(np.abs(np.asarray(a) - np.asarray(b)).sum() / one.sensitivity)
        for a, b, one in zip(first, second, task_of(plans[0]).mechanisms, strict=True)
    ]


def neighbours(chance):
    table = pd.DataFrame({"u": chance.integers(0, 20, 40), "g": chance.choice(list("ab"), 40),
                          "x": chance.integers(-5, 20, 40)}).groupby("u").head(3)  # fmt: skip
    return table, table[table.u != chance.integers(0, 20)]


def asked_of(data):
    by = data.group_by("g", keys={"g": ["a", "b"]})
    return tc.batch(
        data.agg(n=tc.count()), by.agg(s=tc.sum("x")), data.where("x > 3").agg(u=tc.count_units())
    )


def test_one_unit_moves_no_mechanism_of_a_batch_by_more_than_its_sensitivity():
    chance, largest = np.random.default_rng(11), 0.0
    for _ in range(10):
        ratios = moved(neighbours(chance), lambda data: asked_of(data).plan(epsilon=1))
        assert len(ratios) == 3
        assert max(ratios) <= 1
        largest = max(largest, *ratios)
    assert largest > 0.5  # the search looks at units that matter


def counted(rows):
    """Return a task with one step, whose noise is for one row of each unit."""
    noise = DiscreteLaplace(epsilon=1, sensitivity=1)
    return Task(
        document="counted", open=lambda _: rows, steps=(Step(noise, lambda rows, _: rows),),
        reading=lambda noisy, _: CountWithInterval(noisy[0], noisy[0], noisy[0]),
    )  # fmt: skip


def swapped(task):
    """A broken twin: it hands the integers of each part to the noise of the other."""
    one, two = task.parts
    [first], [second] = one.steps, two.steps
    crossed = (
        replace(one, steps=(replace(first, mechanism=second.mechanism),)),
        replace(two, steps=(replace(second, mechanism=first.mechanism),)),
    )
    return replace(task, parts=crossed)


def test_a_part_of_a_batch_never_meets_the_noise_of_another_and_the_attack_catches_a_twin_that_lets_it():
    wide = DiscreteLaplace(epsilon=1, sensitivity=1000)

    def both(extra):
        """A unit with 1,000 rows moves the second part, whose noise is for so many."""
        heavy = counted(7 + 1000 * extra)
        [step] = heavy.steps
        return batch_task((counted(5), replace(heavy, steps=(replace(step, mechanism=wide),))), ())

    def attacked(make):
        """Attack all noisy integers together; a false alarm has a probability of at most 1e-9."""

        def draw(extra, size):
            task = make(extra)
            pairs = zip(task.mechanisms, exact_of(task), strict=True)
            noisy = [mechanism.release_many(np.array([exact]), size) for mechanism, exact in pairs]
            return np.column_stack([np.asarray(one, dtype=float).reshape(size) for one in noisy])

        cost = tc.accounting.Cost.pure(2)
        return tc.audit.audit(draw, 0, 1, samples=20_000, claimed=cost).holds

    assert attacked(both)
    assert not attacked(lambda extra: swapped(both(extra)))
