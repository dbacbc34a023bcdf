"""Broken twins of a field: what fails after the charge stays charged, and what was drawn is never lost."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from support.asking import ledger_of
from tacit import TacitError
from tacit.core import AnswerTable, Cells, Dataset, Plan, Step, Task, open_account, read_identity
from tacit.mechanisms import DiscreteLaplace


@dataclass
class TwoCounts:
    """A sound task: the second count depends on the first noisy one, as it may."""

    rows: int = 1000
    seen: list[int] = field(default_factory=list)

    @property
    def task(self):
        noise = DiscreteLaplace(epsilon=Fraction(1, 2), sensitivity=1)
        return Task(
            document="two counts", open=self.open, reading=self.read,
            steps=(Step(noise, self.first), Step(noise, self.second)),
        )  # fmt: skip

    def open(self, _readings):
        return self.rows

    def first(self, rows, _noisy):
        return rows

    def second(self, rows, noisy):
        self.seen.append(noisy[0])
        return rows if noisy[0] > 500 else 0

    def read(self, noisy, confidence):
        cells = {name: Cells((value,), (None,), (None,)) for name, value in zip("ab", noisy, strict=True)}
        return AnswerTable({}, cells, float(confidence))


class SecretError(Exception):
    """What a failing engine might say about the data."""


class FailsAtOnce(TwoCounts):
    """The data cannot be read."""

    def open(self, _readings):
        raise SecretError("row 7 is ann")


class FailsAfterTheFirstAnswer(TwoCounts):
    """The data is gone once the first noisy integers are back; they are not released either."""

    def second(self, rows, noisy):
        super().second(rows, noisy)
        raise SecretError("row 7 is ann")


class GivesText(TwoCounts):
    """What is no integer never becomes an answer."""

    def first(self, _rows, _noisy):
        return "row 7 is ann"


class GivesNothing(TwoCounts):
    """The second mechanism gets nothing."""

    def second(self, _rows, _noisy):
        return None


class CannotBeRead(TwoCounts):
    """A bug in what follows the draw; it touches no data."""

    def read(self, noisy, confidence):
        raise ZeroDivisionError("a bug in the field's own code")


BROKEN = [FailsAtOnce, FailsAfterTheFirstAnswer, GivesText, GivesNothing]


def dataset(ledger=None):
    ledger = tc.Ledger.memory() if ledger is None else ledger
    identity = read_identity(name="counts", unit="pid")
    open_account(identity, tc.Budget(epsilon=3), ledger)
    return Dataset(identity, ledger)


def plan_of(data, task, **options):
    return Plan.of(data, task.task, promised={"epsilon": Fraction(1)}, **options)


def spent(data):
    return float(ledger_of(data).account("counts").spent.epsilon)


def numbers(release):
    return [release["a"].value[0], release["b"].value[0]]


def test_later_integers_may_depend_on_earlier_noisy_ones():
    data, task = dataset(), TwoCounts()
    release = plan_of(data, task).release()
    assert task.seen == numbers(release)[:1]
    assert all(abs(value - 1000) < 200 for value in numbers(release))
    assert numbers(plan_of(data, task).release()) == numbers(release)
    assert len(task.seen) == 1  # the stored answer does not touch the data
    assert spent(data) == 1


class Overflows(TwoCounts):
    """A value of the data makes NumPy warn, or fail if the user asked for that."""

    def first(self, rows, _noisy):
        return rows if np.float64(rows) / 0 > 1 else 0


@pytest.mark.parametrize("setting", ["raise", "warn"])
def test_no_setting_of_numpy_makes_a_release_fail_or_warn_for_a_value_of_the_data(setting):
    with np.errstate(divide=setting), warnings.catch_warnings(record=True) as shown:
        assert abs(numbers(plan_of(dataset(), Overflows()).release())[0] - 1000) < 200
    assert not shown


@pytest.mark.parametrize("broken", BROKEN)
def test_a_task_that_fails_after_the_charge_says_nothing_and_stays_charged(broken):
    data, task = dataset(), broken()
    with pytest.raises(TacitError) as failed:
        plan_of(data, task).release(who="ana")
    assert failed.value.code == "release-failed"
    assert "row 7" not in "".join(traceback.format_exception(failed.value))
    assert not any(str(value) in str(failed.value) for value in task.seen)
    assert spent(data) == 1
    assert ledger_of(data).verify().ok


@pytest.mark.parametrize("broken", BROKEN)
def test_a_failed_draw_stores_nothing_and_the_next_one_is_charged(broken):
    data = dataset()
    with pytest.raises(TacitError):
        plan_of(data, broken()).release()
    release = plan_of(data, TwoCounts()).release()
    assert spent(data) == 2
    assert release.certificate.matches(ledger_of(data))
    assert numbers(plan_of(data, broken()).release()) == numbers(release)  # now there is a stored answer
    assert spent(data) == 2


@pytest.mark.parametrize("broken", BROKEN)
def test_failing_again_and_again_ends_with_the_budget(broken):
    data = dataset()
    codes = []
    for _ in range(4):
        with pytest.raises(TacitError) as failed:
            plan_of(data, broken()).release()
        codes.append(failed.value.code)
    assert codes == ["release-failed"] * 3 + ["budget-exceeded"]
    assert spent(data) == 3


def fails_to_show(release):
    raise ZeroDivisionError("a bug in the field's own code")


@pytest.mark.parametrize(
    ("task", "options"),
    [(CannotBeRead, {}), (TwoCounts, {"present": fails_to_show})],
    ids=["read", "present"],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_a_bug_after_the_draw_does_not_lose_what_was_paid_for(tmp_path, task, options, reopened):
    """The noisy integers are stored before anything is read off them: once the bug is fixed they are free."""
    path = tmp_path / "counts.ledger"
    data, drawn = dataset(tc.Ledger.open(path)), task()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            plan_of(data, drawn, **options).release()
    assert spent(data) == 1
    assert len(drawn.seen) == 1  # one draw, however often it was asked for
    if reopened:
        ledger_of(data).close()
        data = dataset(tc.Ledger.open(path))
    fixed = TwoCounts()
    release = plan_of(data, fixed).release()
    assert numbers(release)[0] == drawn.seen[0]
    assert fixed.seen == []
    assert spent(data) == 1
    assert release.certificate.matches(ledger_of(data))
    ledger_of(data).close()


def test_one_member_that_fails_leaves_the_others_paid_and_stored():
    ledgers = [tc.Ledger.memory(), tc.Ledger.memory()]
    one, two = (dataset(ledger) for ledger in ledgers)
    with pytest.raises(TacitError) as failed:
        Plan.together([plan_of(one, TwoCounts()), plan_of(two, FailsAtOnce())], disjoint=True).release()
    assert failed.value.code == "release-failed"
    assert (spent(one), spent(two)) == (1, 1)
    both = Plan.together([plan_of(one, TwoCounts()), plan_of(two, TwoCounts())], disjoint=True)
    both.release()
    assert (spent(one), spent(two)) == (1, 2)
