"""Alarms of streams: false alarms as computed, the price, answers across processes, refusals."""

import numpy as np
import pytest

import tacit as tc
from tacit.core import Release, members_of
from tacit.errors import TacitError
from tacit.streams import AlarmDays, open_stream


def event_stream(days=365, **more):
    return tc.stream(
        None, name="flu", level="event", start="2026-01-01", days=days,
        budget=tc.Budget(epsilon=5, delta=1e-5), **more,
    )  # fmt: skip


def person_stream(source=None, days=365, rows=1, most_days=20, ledger=None):
    return tc.stream(
        source, name="flu", unit="patient", level="person", most_days=most_days, start="2026-01-01",
        days=days, limits={"rows": rows}, budget=tc.Budget(epsilon=3), ledger=ledger,
    )  # fmt: skip


@pytest.mark.parametrize(("rate", "gap"), [(0.05, 9), (0.01, 11)])
def test_the_gap_on_noisy_days_is_that_of_the_reference(rate, gap):
    flu = event_stream()
    flu.begin(flu.daily(cases=tc.count(), focus="day").plan(epsilon=1))
    alarm = flu.alarm(baseline=40, false_alarm=rate)
    assert alarm.gap == gap
    assert alarm.rate <= rate


@pytest.mark.parametrize(("days", "gap"), [(1, 11), (2, 21), (3, 30), (4, 40)])
def test_at_person_level_noisy_days_need_a_gap_that_grows_with_the_days_of_a_person(days, gap):
    flu = person_stream(most_days=days)
    flu.begin(flu.daily(cases=tc.count(), focus="day").plan(epsilon=1))
    assert flu.alarm(baseline=40, false_alarm=0.01).gap == gap
    plan = flu.silent_alarm(baseline=40, false_alarm=0.01).plan(epsilon=1)
    assert dict(plan.facts)["alarm"].startswith("at 23 above")  # for every number of days


def test_groups_and_windows_raise_the_gap():
    flu = event_stream(keys={"region": ["a", "b", "c"]})
    one = flu.daily(cases=tc.count(), focus="day").plan(epsilon=1)
    more = flu.daily(cases=tc.count(), focus="day", by="region").plan(epsilon=1)
    for plan in (one, more):
        flu.begin(plan)
    assert flu.alarm(baseline=40, plan=more).gap > flu.alarm(baseline=40, plan=one).gap
    assert flu.alarm(baseline=40, window="week", plan=one).gap > flu.alarm(baseline=40, plan=one).gap
    by_group = flu.alarm(baseline={"a": 1, "b": 2, "c": 3}, plan=more)
    assert by_group.baseline == (1, 2, 3)


def rings_on_zeros(noise, alarm, days, runs):
    """Return how often an alarm with baseline 0 rings on days without anybody, on simulated rows."""
    rows = noise.release_many([0] * days, runs)
    found = np.zeros(runs, dtype=bool)
    for day in range(1, days + 1):
        weights = noise.weights(7 if alarm.window == "week" else 1, day, day)
        found |= rows[:, : len(weights)] @ weights >= alarm.gap
    return found.mean()


@pytest.mark.parametrize("more", [{"focus": "day"}, {"focus": "total"}, {"delta": 1e-6, "focus": "week"}])
@pytest.mark.parametrize("window", ["day", "week"])
def test_false_alarms_are_no_more_frequent_than_stated(more, window):
    flu = event_stream(days=30)
    plan = flu.daily(cases=tc.count(), focus=more["focus"]).plan(epsilon=1, delta=more.get("delta", 0))
    flu.begin(plan)
    alarm = flu.alarm(baseline=0, false_alarm=0.2, window=window)
    noise = members_of(plan)[0].task.subject.noises[0]
    often = rings_on_zeros(noise, alarm, 30, 4000)
    assert often <= alarm.rate + 6 * (0.2 * 0.8 / 4000) ** 0.5
    if more == {"focus": "day"} and window == "day":  # independent days: the rate is exact
        assert often >= alarm.rate - 6 * (0.2 * 0.8 / 4000) ** 0.5


def test_an_alarm_rings_on_the_day_and_in_the_group_of_the_outbreak():
    flu = event_stream(days=30, keys={"region": ["a", "b"]})
    flu.begin(flu.daily(cases=tc.count(), by="region").plan(epsilon=5))
    for day in range(1, 8):
        rows = [{"region": "a"}] * 20 + [{"region": "b"}] * (20 if day != 6 else 90)
        flu.append(f"2026-01-{day:02}", rows)
    flu.release("2026-01-07")
    rang = flu.alarm(baseline=20, false_alarm=1e-6).check().rang
    assert [(line.day, line.group) for line in rang] == [("2026-01-06", ("b",))]
    since = flu.alarm(days_before=4, false_alarm=1e-6).check()
    assert [(line.day, line.group) for line in since.rang] == [("2026-01-06", ("b",))]
    assert [line.alarm for line in since.lines[:8]] == [None] * 8
    [first], [second] = (
        flu.alarm(**given, false_alarm=1e-6).check().rang for given in ({"baseline": 20}, {"days_before": 4})
    )
    assert first.value == second.value  # the noisy number of the day, whatever it is compared with
    assert first.excess == first.value - 20
    assert 60 < second.excess < 80
    assert "above the baseline" in repr(since)
    back = AlarmDays.from_json(since.to_json())
    assert back.lines == since.lines
    older = {"rate": 0.1, "threshold": "", "lines": [["2026-01-01", [], True, 4.0]]}
    assert AlarmDays.from_json(older).lines[0].excess is None
    assert float(flu.remaining.epsilon) == 0  # nothing more was charged, and nothing more could be


def test_a_silent_alarm_answers_in_any_process_and_costs_once(tmp_path):
    flu = person_stream(tmp_path / "flu", ledger=tmp_path / "l")
    plan = flu.silent_alarm(baseline=5, false_alarm=1e-6).plan(epsilon=2)
    flu.begin(plan)
    for day in range(1, 6):
        again = open_stream(tmp_path / "flu")  # as a new process would
        again.append(f"2026-01-0{day}", [{"patient": n} for n in range(5 if day != 3 else 200)])
        answer = again.release(f"2026-01-0{day}")
        again._ledger.close()
    assert isinstance(answer.content, AlarmDays)
    assert [line.alarm for line in answer.content][:3] == [False, False, True]
    assert [line.alarm for line in answer.content][3:] == [None, None]  # it has ended
    assert [line.day for line in answer.rang] == ["2026-01-03"]
    assert all(line.value is None for line in answer.content)
    assert float(open_stream(tmp_path / "flu").remaining.epsilon) == 1
    back = Release.from_json(answer.to_json())
    assert back.content.lines == answer.content.lines


def test_a_further_alarm_watches_from_a_later_day_and_is_charged():
    flu = person_stream(days=10)
    first = flu.silent_alarm(baseline=5, false_alarm=1e-6).plan(epsilon=1)
    later = flu.silent_alarm(baseline=5, false_alarm=1e-6, since="2026-01-03").plan(epsilon=1)
    assert first.hash != later.hash
    flu.begin(later)
    for day in range(1, 4):
        flu.append(f"2026-01-0{day}", [{"patient": n} for n in range(200)])
    said = [line.alarm for line in flu.release("2026-01-03").content]
    assert said == [None, None, True]
    assert [line.alarm for line in flu.release("2026-01-02").content] == [None, None]
    assert float(flu.remaining.epsilon) == 2


@pytest.mark.parametrize(("seed", "trials"), [(5, 1), (6, 1), pytest.param(7, 12, marks=pytest.mark.long)])
def test_one_person_moves_the_watched_counts_one_way_and_within_the_sensitivity(seed, trials):
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        days = [[{"patient": int(p)} for p in rng.integers(0, 4, rng.integers(0, 12))] for _ in range(4)]
        counts = []
        for gone in (None, 0):
            flu = person_stream(days=4, rows=2, most_days=2)
            plan = flu.silent_alarm(baseline=5).plan(epsilon=1)
            for number, rows in enumerate(days, 1):
                kept = [row for row in rows if row["patient"] != gone]
                flu.append(f"2026-01-0{number}", kept)
            subject = members_of(plan)[0].task.subject
            counts.append([subject._integers(day)[0][0][0] for day in range(1, 5)])
        moved = np.array(counts[0]) - np.array(counts[1])
        assert moved.min() >= 0
        assert moved.max() <= int(subject.vector.sensitivity) == 2
        assert np.count_nonzero(moved) <= 2


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"baseline": 40, "days_before": 14},
        {"days_before": 365},
        {"baseline": -1},
        {"baseline": 40, "false_alarm": 1},
        {"baseline": 40, "window": "month"},
        {"baseline": {"nowhere": 4}},
        {"baseline": 40, "column": "deaths"},
    ],
)
def test_an_alarm_that_means_nothing_is_refused(given):
    flu = event_stream()
    flu.begin(flu.daily(cases=tc.count(), focus="day").plan(epsilon=1))
    with pytest.raises(TacitError) as refused:
        flu.alarm(**given)
    assert refused.value.code == "bad-parameter"
    assert float(flu.remaining.epsilon) == 4


def test_a_plan_that_says_yes_or_no_has_no_noisy_days_to_watch():
    flu = person_stream()
    flu.begin(flu.silent_alarm(baseline=5).plan(epsilon=1))
    with pytest.raises(TacitError) as refused:
        flu.alarm(baseline=5)
    assert refused.value.code == "bad-parameter"


def test_refusals_of_an_alarm_say_what_to_write():
    flu = event_stream(keys={"region": ["north", "east"]})
    flu.begin(flu.daily(cases=tc.count(), by="region").plan(epsilon=1))
    with pytest.raises(TacitError, match="7 days") as refused:
        flu.alarm("cases_7_days", baseline=5)
    assert 'window="week"' in str(refused.value)
    with pytest.raises(TacitError, match="east is missing"):
        flu.alarm(baseline={"north": 5})
    with pytest.raises(TacitError, match="west is not a group"):
        flu.alarm(baseline={"north": 5, "east": 5, "west": 5})


def test_the_plan_of_a_silent_alarm_does_not_speak_of_instalments():
    words = repr(person_stream().silent_alarm(baseline=5).plan(epsilon=1))
    assert "instalments" not in words
    assert "kept_by_tacit" not in words
    assert "who counts on at most 20 days" in words.replace("\n", " ")
