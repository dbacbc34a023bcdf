"""Runs through the public way: plan, charge once, draw instalments, go on after a restart."""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from toy_fields.model import LinearModel, examples
from toy_fields.stream import DayCount, event_stream
from toy_fields.survey import survey

import tacit as tc
from support.asking import ledger_of, task_of
from tacit import TacitError
from tacit.core import (
    Content,
    Dataset,
    DrawnBefore,
    Plan,
    RunTask,
    Step,
    Task,
    open_account,
    read_identity,
)
from tacit.core._plan_run import run_cost
from tacit.core._run import _joined, _parts
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

PEOPLE = [[f"p{i}" for i in range(day % 50)] for day in range(365)]


def stream(days=PEOPLE, unit="person", budget=None, **facts):
    return event_stream(days, unit=unit, budget=budget or tc.Budget(epsilon=1), **facts)


def refused(code):
    return pytest.raises(TacitError, match=f"code: {code}")


def spent(data):
    return ledger_of(data).account(data.identity.name).spent.epsilon


# a year


def test_a_year_of_days_is_charged_once():
    data = stream(budget=tc.Budget(epsilon=10**6))
    plan = data.daily().plan(epsilon=365 * 50)
    assert plan.instalments == 365
    assert plan.cost.epsilon(delta=0) == 365 * 50
    assert "365 instalments, charged once" in repr(plan)
    run = plan.run(who="ana", purpose="a year")
    assert run.remaining == 365
    total = 0
    for day in range(1, 366):
        release = run.next()
        total += release.value
        assert isinstance(release.content, DayCount)
        assert (release.day, release.total) == (day, total)
        assert abs(release.value - (day - 1) % 50) <= 3
    assert run.remaining == 0
    assert spent(data) == 365 * 50
    with refused("run-finished"):
        run.next()
    assert [release.day for release in run] == list(range(1, 366))
    assert ledger_of(data).verify().ok


def test_a_year_of_visits_costs_what_one_day_costs():
    data = stream(unit=tc.Unit.row())
    run = data.daily().plan(epsilon=1).run()
    for _ in range(5):
        run.next()
    assert spent(data) == 1
    assert run[5].certificate.matches(ledger_of(data))
    assert run[5].certificate.fields["mechanisms"][0]["instalments"] == [1, 365]


def test_days_are_not_disjoint_where_a_unit_may_move_between_them():
    data = stream(unit=tc.Unit.row(), adjacency="replace")
    with pytest.raises(TacitError, match="replace"):
        data.daily().plan(epsilon=1).run()
    assert spent(data) == 0


def test_a_run_goes_on_after_a_restart(tmp_path):
    path = tmp_path / "a.ledger"
    with tc.Ledger.open(path) as ledger:
        run = stream(ledger=ledger).daily().plan(epsilon=1).run()
        first = [run.next() for _ in range(3)]
    with tc.Ledger.open(path) as ledger:
        data = stream(ledger=ledger)
        run = data.daily().plan(epsilon=1).run()
        assert run.remaining == 362
        assert list(run) == first
        assert run[2] == first[1]
        fourth = run.next()
        assert fourth.day == 4
        assert fourth.total == sum(one.value for one in first) + fourth.value
        assert spent(data) == 1
        assert repr(run) == "Run of events: 365 instalments, 361 to be drawn"


def test_days_that_come_in_later_can_be_drawn_later():
    days = [["p1"]]
    data = stream(days, budget=tc.Budget(epsilon=10**6))
    run = data.daily().plan(epsilon=10**5).run()
    assert run.next().value == 1
    days.append(["p1", "p2"])
    assert run.next().value == 2
    with refused("release-failed"):
        run.next()
    days += [[], ["p1", "p2", "p3"]]
    assert run.next().day == 4
    with refused("instalment-lost"):
        run[3]
    with refused("instalment-not-drawn"):
        run[5]
    for wrong in (0, -1, 366, "1"):
        with refused("bad-parameter"):
            run[wrong]
    assert run[4].total == 1 + 2 + 3


def test_an_account_below_pays_once_for_the_whole_run():
    data = stream()
    ledger = ledger_of(data)
    ledger.create_account("ana", parent="events", budget=tc.Budget(epsilon=1))
    plan = data.daily().plan(epsilon=1)
    plan.run().next()
    for _ in range(2):
        release = plan.run(account="ana", who="ana")[1]
    assert ledger.account("ana").spent.epsilon == 1
    assert spent(data) == 1
    assert release.certificate.matches(ledger)
    ledger.create_account("else", unit="person", budget=tc.Budget(epsilon=1))
    with refused("account-differs"):
        plan.run(account="else")


def test_a_run_is_not_released_at_once_and_one_draw_is_not_run():
    data = stream()
    with pytest.raises(TacitError) as wrong:
        data.daily().plan(epsilon=1).release()
    assert wrong.value.code == "release-or-run"
    assert str(wrong.value.fix) == "plan.run()"
    clients = examples([[1.0]], [1.0], budget=tc.Budget(rho=1))
    with pytest.raises(TacitError) as wrong:
        clients.fit().plan(rho=0.1).run()
    assert str(wrong.value.fix) == "plan.release()"
    with refused("release-or-run"):
        survey("Do you smoke?", ["no", "yes"], epsilon=1).answer("yes").run()
    with refused("release-or-run"):
        Plan.together([data.daily().plan(epsilon=1)] * 2, disjoint=True)
    assert spent(data) == 0
    assert clients.fit().plan(rho=0.1).instalments is None


def test_the_plan_of_a_run_travels():
    data = stream()
    plan = data.daily().plan(epsilon=1)
    assert data.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    assert data.daily(days=364).plan(epsilon=1) != plan
    assert stream(unit=tc.Unit.row()).daily().plan(epsilon=1) != plan


def test_a_release_of_a_run_is_saved_and_read_back(tmp_path):
    release = stream().daily().plan(epsilon=1).run().next()
    release.save(tmp_path / "day.json")
    assert tc.Release.load(tmp_path / "day.json") == release


# certificates


def edits(fields):
    """Yield copies of a certificate, each with one part changed."""
    for name in ("entry", "hash", "instalment", "instalments", "stored"):
        for value in ("7", 7, 0, -3, None, {"entry": 3}, [], {"entry": "x", "hash": 3}):
            if fields["ledger"][name] != value:
                yield {**fields, "ledger": {**fields["ledger"], name: value}}
        yield {**fields, "ledger": {k: v for k, v in fields["ledger"].items() if k != name}}
    for name in ("instalment", "instalments"):  # numbers that are equal and written in another way
        yield {**fields, "ledger": {**fields["ledger"], name: float(fields["ledger"][name])}}
    stored = {**fields["ledger"]["stored"], "more": 1}
    yield {**fields, "ledger": {**fields["ledger"], "stored": stored}}
    [law] = fields["mechanisms"]
    for name, value in (("instalments", [1, 2]), ("composition", "once"), ("composition", "largest")):
        yield {**fields, "mechanisms": [{**law, name: value}]}
    yield {**fields, "mechanisms": [{k: v for k, v in law.items() if k != "instalments"}]}
    yield {**fields, "mechanisms": [law, law]}


def test_each_edit_of_an_instalments_certificate_is_found():
    data = stream()
    run = data.daily().plan(epsilon=1).run()
    for _ in range(3):
        certificate = run.next().certificate
        assert certificate.problems(ledger_of(data)) == []
    fields = json.loads(certificate.to_json())
    assert fields["ledger"]["instalment"] == 3
    assert fields["ledger"]["instalments"] == 365
    assert fields["cost"] == data.daily().plan(epsilon=1).cost.to_json()
    tried = 0
    for edited in edits(fields):
        assert tc.Certificate(edited).problems(ledger_of(data)), edited
        tried += 1
    assert tried > 40
    other = run[1].certificate.fields["ledger"]["stored"]
    swapped = {**fields, "ledger": {**fields["ledger"], "stored": other}}
    assert tc.Certificate(swapped).problems(ledger_of(data)) == [
        "the ledger has not stored this as instalment 3 of the run"
    ]


# costs


def test_the_costs_of_instalments_compose_as_the_task_says():
    low, high = tc.Cost.pure(Fraction(1, 4)), tc.Cost.pure(2)
    each = [(10, low), (1, high)]
    assert run_cost(each, "sum").epsilon(delta=0) == 4.5
    assert run_cost(each, "largest").epsilon(delta=0) == 2
    assert run_cost([(10, low)], "once") == low
    for costs, composition in ((each, "once"), (each, "product"), ([(1, low)], "")):
        with refused("bad-parameter"):
            run_cost(costs, composition)
    moved = DiscreteLaplace(epsilon=1, sensitivity=1, adjacency="replace").cost
    with pytest.raises(TacitError):
        run_cost([(2, moved)], "largest")
    assert run_cost([(1, moved)], "largest") == moved


@dataclass(frozen=True)
class Numbers(Content):
    """The noisy integers as they are."""

    kind = "toy-numbers"
    values: tuple

    def to_json(self):
        return list(self.values)

    @classmethod
    def from_json(cls, document):
        return cls(tuple(document))


def fading(instalments=3, steps_of=None):
    """A run whose instalments differ: each has as many mechanisms as its number, of another scale."""

    def as_many(number):
        return (Step(DiscreteLaplace(epsilon=Fraction(1, number), sensitivity=1), lambda *_: 10**6),) * number

    return RunTask(
        document="fading", instalments=instalments, steps_of=steps_of or as_many, open=lambda _: None,
        reading=lambda number, noisy, _: Numbers(tuple(noisy[number])),
    )  # fmt: skip


def plan_of(task, **promised):
    identity = read_identity(name="numbers", unit="pid")
    ledger = tc.Ledger.memory()
    open_account(identity, tc.Budget(epsilon=10), ledger)
    return Plan.of(Dataset(identity, ledger), task, promised=promised or {"epsilon": Fraction(1)}), ledger


def test_instalments_with_different_mechanisms_add_up():
    plan, ledger = plan_of(fading())
    assert plan.cost.epsilon(delta=0) == 3
    run = plan.run()
    assert [len(run.next().values) for _ in range(3)] == [1, 2, 3]
    assert [law["instalments"] for law in plan.mechanisms] == [[1, 1]] + [[2, 2]] * 2 + [[3, 3]] * 3
    assert run[3].certificate.matches(ledger)


def test_an_instalment_is_drawn_by_no_other_mechanisms_than_those_that_were_charged():
    chosen = [Fraction(1)]

    def steps_of(_number):
        return (Step(DiscreteLaplace(epsilon=chosen[0], sensitivity=1), lambda *_: 10**6),)

    plan, _ = plan_of(fading(steps_of=steps_of))
    run = plan.run()
    assert run.next().values
    chosen[0] = Fraction(10**6)
    with pytest.raises(TacitError) as failed:
        run.next()
    assert failed.value.code == "release-failed"
    chosen[0] = Fraction(1)
    assert run.next().values  # the second instalment is lost, the third is not


def test_a_run_without_instalments_is_refused():
    with refused("bad-parameter"):
        plan_of(fading(instalments=0))[0].run()


# secrets


@dataclass(frozen=True)
class Drifting:
    """A twin of correlated noise: what it adds is remembered, and taken away from the next release."""

    scale: int = 1000

    @property
    def cost(self):
        return tc.Cost.pure(1)

    def release(self, value):
        raise AssertionError("a mechanism with a memory is asked for its next release")

    def release_next(self, value, memory):
        before = int.from_bytes(memory, "big")
        fresh = before + self.scale
        return value + fresh - before, fresh.to_bytes(8, "big")

    def to_json(self):
        return {"law": "drifting", "scale": self.scale, "cost": self.cost.to_json()}


class Remembers:
    """Two mechanisms with a memory, and a state of the task's own."""

    def __init__(self, second=Drifting(3)):
        self.states = []
        self.fails = False
        self.earlier = []
        steps = (
            Step(Drifting(1000), lambda before, noisy: before.number),
            Step(second, lambda before, noisy: noisy[0]),
        )
        self.task = RunTask(
            document="remembers", instalments=4, composition="once", steps_of=lambda _: steps,
            open=self.opened, left=self.left, reading=lambda number, noisy, _: Numbers((dict(noisy),)),
        )  # fmt: skip

    def opened(self, before):
        self.states.append(before.state)
        self.earlier.append(dict(before.noisy))
        return before

    def left(self, before):
        if self.fails:
            raise ZeroDivisionError(before.state.decode())
        return before.state + b"SECRET" if before.number < 3 else None


def test_a_mechanism_without_a_memory_is_not_charged_once():
    plan, ledger = plan_of(Remembers(tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1)).task)
    with refused("bad-parameter"):
        plan.run()
    assert ledger.account("numbers").spent.epsilon == 0


def test_one_mechanism_may_span_a_run_and_is_charged_once():
    task = Remembers()
    plan, ledger = plan_of(task.task)
    assert plan.cost.epsilon(delta=0) == 2
    run = plan.run()
    assert run.next().values == ({1: [1001, 1004]},)
    task.fails = True
    with pytest.raises(TacitError) as failed:
        run.next()
    assert failed.value.code == "release-failed"
    assert "SECRET" not in "".join(traceback.format_exception(failed.value))
    task.fails = False
    assert run.next().values == ({1: [1001, 1004], 3: [1003, 1006]},)
    assert run.next().values[0][4] == [1004, 1007]
    assert task.states == [b"", b"SECRET", b"SECRET", b"SECRET"]
    assert task.earlier == [{}, {1: [1001, 1004]}, {1: [1001, 1004]}, {1: [1001, 1004], 3: [1003, 1006]}]
    assert run[1].values == ({1: [1001, 1004]},)  # later instalments do not change an earlier release
    assert ledger.account("numbers").spent.epsilon == 2
    assert run[4].certificate.matches(ledger)
    assert "SECRET" not in "\n".join(ledger.export())


def test_the_parts_of_a_secret_come_back():
    for parts in ([], [b""], [b"a", b"", b"\0" * 300], [bytes(range(256))]):
        assert _parts(_joined(parts)) == parts


# a large model


def test_a_model_of_fifty_megabytes_is_stored_once_and_read_back(tmp_path):
    """The noisy integers of 4.2 million weights are an artifact beside the ledger."""
    path = tmp_path / "a.ledger"
    size, weights = 4_200_000, None
    for opened in range(2):
        with tc.Ledger.open(path) as ledger:
            identity = read_identity(name="clients", unit=tc.Unit.client())
            open_account(identity, tc.Budget(rho=1), ledger)
            task = LargeModel(size)
            plan = Plan.of(Dataset(identity, ledger), task.task, promised={"rho": Fraction(1, 2)})
            release = plan.release()
            assert len(release.weights) == size
            assert task.computed == (opened == 0)
            assert weights is None or release.weights == weights
            weights = release.weights
            assert ledger.verify().ok
            assert float(ledger.remaining("clients").rho) == 0.5
    [artifact] = (tmp_path / "a.ledger.artifacts").iterdir()
    assert artifact.stat().st_size > 50 * 10**6
    assert path.stat().st_size < 10**6
    artifact.unlink()
    with tc.Ledger.open(path) as ledger:
        task = LargeModel(size)
        plan = Plan.of(Dataset(identity, ledger), task.task, promised={"rho": Fraction(1, 2)})
        with refused("artifact-lost"):
            plan.release()
        assert not task.computed


@dataclass
class LargeModel:
    """The sum of the clients' clipped vectors on a fine grid, one weight for each entry."""

    size: int
    computed: bool = False

    @property
    def task(self):
        noise = DiscreteGaussian(rho=Fraction(1, 2), sensitivity_squared=10**22)
        return Task(
            document="a large model", open=self.vector, steps=(Step(noise, lambda vector, _: vector),),
            reading=lambda noisy, _: LinearModel(noisy[0]),
        )  # fmt: skip

    def vector(self, _):
        self.computed = True
        return np.arange(self.size, dtype=np.int64)


def test_the_toy_stream_counts_each_person_once_a_day():
    task = task_of(stream([["a", "a", "b"]]).daily().plan(epsilon=1))
    assert task.steps_of(1)[0].exact(task.open(DrawnBefore(1, {}, b"")), []) == 2
