"""Streams from declaration to release: counts, means and histograms, levels, charges, refusals."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import TacitError
from tacit.core._plan_run import cost_of_laws
from tacit.streams import Series, StreamSubject, open_stream

START = date(2026, 1, 1)
DAYS = [(START + timedelta(days=n)).isoformat() for n in range(40)]


def declared(source=None, *, ledger=None, **changed):
    facts = {
        "name": "flu",
        "level": "event",
        "start": START,
        "days": 20,
        "budget": tc.Budget(epsilon=1000, delta=1e-6),
    }
    return tc.stream(source, ledger=ledger, **{**facts, **changed})


def persons(**changed):
    facts = {"level": "person", "unit": "pid", "most_days": 2, "limits": {"rows": 1}}
    return declared(**{**facts, **changed})


def rows(day, n, region="ab"):
    return pd.DataFrame({
        "pid": np.arange(n) + 100 * day,
        "region": [region[i % len(region)] for i in range(n)],
        "temp": [36.0 + i % 4 for i in range(n)],
    })  # fmt: skip


@pytest.fixture
def flu():
    return declared(keys={"region": ["a", "b"]}, bounds={"temp": (30, 45)})


def planned(flu, goal, **asked):
    """Plan figures of every day; focus and charge are part of the question."""
    own = {name: value for name, value in goal.items() if name in {"focus", "charge"}}
    return flu.daily(**asked, **own).plan(**{name: goal[name] for name in goal if name not in own})


def values(cells):
    return [round(value) for value in cells.value]


def test_days_weeks_and_totals_of_counts_sums_means_and_histograms():
    """With so large an epsilon, noise is negligible: the sums are right to 0.001."""
    flu = declared(keys={"region": ["a", "b"]}, bounds={"temp": (30, 45)}, budget=tc.Budget(epsilon=10**6))
    plan = flu.daily(
        cases=tc.count(),
        heat=tc.sum("temp"),
        temp=tc.mean("temp"),
        fever=tc.histogram("temp", [30, 38, 45]),
        by="region",
    ).plan(epsilon=800_000)
    flu.begin(plan)
    sizes = [10, 20, 0, 30, 10, 10, 10, 10, 10, 50]
    for number, size in enumerate(sizes):
        flu.append(DAYS[number], rows(number, size))
        release = flu.release(DAYS[number])
    for end, whole in (("", 50), ("_7_days", 130), ("_so_far", 160)):
        assert values(release[f"cases{end}"]) == [whole // 2, whole // 2]
        parts = [release[f"fever{cell}{end}"] for cell in ("[30, 38)", "[38, 45]")]
        together = [sum(pair) for pair in zip(*map(values, parts), strict=True)]
        assert together == [whole // 2, whole // 2]
    truth = [temp for size in sizes for i, temp in enumerate(rows(0, size)["temp"]) if i % 2 == 0]
    assert release["temp_so_far"].value[0] == pytest.approx(np.mean(truth), abs=0.02)
    assert release["heat_so_far"].value[0] == pytest.approx(np.sum(truth), abs=1)
    frame = release.to_pandas()
    assert len(frame) == 20
    assert frame["cases"].round().tolist()[:6] == [5, 5, 10, 10, 0, 0]
    assert (frame["cases_low"] <= frame["cases_high"]).all()


@pytest.mark.parametrize(
    "goal",
    [
        {"epsilon": 3},
        {"epsilon": 3, "focus": "total"},
        {"epsilon": 1, "delta": 1e-6, "focus": "total"},
        {"rho": 0.1},
        {"rho": 0.1, "focus": "week"},
        {"rho": 0.1, "focus": "day"},
    ],
    ids=str,
)
def test_what_is_released_agrees_with_itself(goal):
    flu = declared(days=40, keys={"region": ["a", "b"]})
    flu.begin(planned(flu, goal, cases=tc.count(), by="region"))
    for number in range(9):
        flu.append(DAYS[number], rows(number, 30))
    series = flu.release(DAYS[8]).content
    days = np.array(series.daily["cases"].value).reshape(9, 2)
    totals = np.array(series.totals["cases"].value).reshape(9, 2)
    weeks = np.array(series.weekly["cases"].value).reshape(9, 2)
    assert totals == pytest.approx(np.cumsum(days, axis=0), abs=1e-6)
    assert weeks[8] == pytest.approx(totals[8] - totals[1], abs=1e-6)
    assert weeks[3] == pytest.approx(totals[3], abs=1e-6)


def test_a_release_is_stored_and_free(flu):
    flu.begin(flu.daily(cases=tc.count(), by="region").plan(epsilon=1))
    left = flu.remaining.epsilon
    for number in range(4):
        flu.append(DAYS[number], rows(number, 10))
    third = flu.release(DAYS[2])
    fourth = flu.release(DAYS[3])
    assert flu.release(DAYS[2]).daily.columns == third.daily.columns
    first = flu.release(DAYS[0])  # the days were released together
    assert (first.day, first.days) == (DAYS[0], 1)
    assert first.daily["cases"].value == third.daily["cases"].value[:2]
    assert flu.release(DAYS[0]).to_dict() == first.to_dict()
    assert fourth.daily["cases"].value[:6] == third.daily["cases"].value
    assert flu.remaining.epsilon == left


@pytest.mark.parametrize("goal", [{"epsilon": 1, "focus": "total"}, {"rho": 1, "focus": "total"}], ids=str)
def test_a_release_of_an_earlier_day_ends_with_it(goal):
    flu = declared()
    flu.begin(planned(flu, goal, cases=tc.count()))
    for number in range(9):
        flu.append(DAYS[number], rows(number, 10))
    whole = flu.release(DAYS[8])
    for number in range(9):
        part = flu.release(DAYS[number])
        assert part.day == DAYS[number]
        assert part.to_dict()["day"] == DAYS[: number + 1]
        assert part.certificate.matches(flu._ledger)
    assert part.to_dict() == whole.to_dict()


def test_a_release_can_be_saved_read_shown_and_drawn(flu, tmp_path):
    flu.begin(flu.daily(cases=tc.count(), by="region").plan(epsilon=1))
    for number in range(9):
        flu.append(DAYS[number], rows(number, 10))
    release = flu.release(DAYS[8])
    release.save(tmp_path / "flu.json")
    again = tc.Release.load(tmp_path / "flu.json")
    assert isinstance(again.content, Series)
    assert again.to_dict() == release.to_dict()
    assert again.days == 9
    assert "2026-01-09, day 9 of the stream" in repr(release)
    assert "cases_7_days" in release._repr_html_()
    axes = release.plot("cases_7_days").axes[0]
    assert len(axes.lines) == len(axes.collections) == 2
    assert len(axes.lines[0].get_xdata()) == 9
    with pytest.raises(TacitError) as refusal:
        release.plot("deaths")
    assert refusal.value.code == "unknown-column"
    with pytest.raises(TacitError):
        tc.Release.from_json({**release.to_json(), "content": {"days": 2, "tables": {}}})


def test_a_plan_states_what_it_will_cost_and_what_it_was_compared_with(flu):
    plan = flu.daily(cases=tc.count()).plan(epsilon=1, delta=1e-6)
    facts = dict(plan.facts)
    assert "all days are charged at once" in repr(plan)
    assert "instalments" not in repr(plan)
    assert facts["days"] == "20, from 2026-01-01 to 2026-01-20"
    assert "noise on each day, Laplace noise: 1.36 / " in facts["noise"]
    assert "Gaussian noise" in facts["compared with"]
    assert [line.column for line in plan.forecast] == ["cases", "cases_7_days", "cases_so_far"]
    assert plan.cost.epsilon(delta=1e-6) <= 1
    assert flu.plan_from(plan.to_json()) == plan


@pytest.mark.parametrize(
    "goal", [{"epsilon": 2, "focus": "total"}, {"rho": 0.2}, {"epsilon": 1, "charge": "day"}]
)
def test_a_plan_can_travel(flu, goal):
    plan = planned(flu, goal, cases=tc.count(), temp=tc.mean("temp"), where="temp > 31", by="region")
    assert flu.plan_from(plan.to_json()).hash == plan.hash


def test_the_plan_does_not_depend_on_whether_rows_came_in(flu):
    before = flu.daily(temp=tc.mean("temp"), by="region").plan(epsilon=1)
    flu.append(DAYS[0], rows(0, 10))
    assert flu.daily(temp=tc.mean("temp"), by="region").plan(epsilon=1).hash == before.hash


def test_every_day_is_charged_once_and_to_its_own_block():
    flu = declared(budget=tc.Budget(epsilon=0.8))
    flu.begin(flu.daily(cases=tc.count(), charge="day").plan(epsilon=0.8))
    flu.append(DAYS[0], rows(0, 10))
    flu.append(DAYS[1], rows(1, 10))
    left = {day: float(flu._ledger.remaining("flu", block=day).epsilon) for day in DAYS[:3]}
    assert list(left.values()) == [0, 0.8, 0.8]
    flu.release(DAYS[0])
    assert flu._ledger.remaining("flu", block=DAYS[1]).epsilon == tc.Budget(epsilon=0.8).epsilon
    flu.release(DAYS[1])
    flu.release(DAYS[1])
    left = {day: float(flu._ledger.remaining("flu", block=day).epsilon) for day in DAYS[:3]}
    assert list(left.values()) == [0, 0, 0.8]


def test_a_day_whose_budget_is_spent_is_refused_and_loses_nothing():
    flu = declared(budget=tc.Budget(epsilon=1))
    flu.begin(flu.daily(cases=tc.count(), charge="day").plan(epsilon=0.8))
    for number in range(3):
        flu.append(DAYS[number], rows(number, 10))
    flu._ledger.charge("flu", tc.Cost.pure(0.5), blocks=(DAYS[1],))
    flu.release(DAYS[0])
    with pytest.raises(TacitError) as refusal:
        flu.release(DAYS[2])
    assert refusal.value.code == "budget-exceeded"
    assert "released up to 2026-01-01" in repr(flu.status())


def test_the_task_refuses_a_day_that_was_not_paid_for():
    flu = declared()
    plan = flu.daily(cases=tc.count(), charge="day").plan(epsilon=0.8)
    flu.append(DAYS[0], rows(0, 10))
    flu.append(DAYS[1], rows(1, 10))
    run = plan.run()
    run._member.task.subject.wanted.through = 2
    with pytest.raises(TacitError) as refusal:
        run.next()
    assert refusal.value.code == "release-failed"


def test_a_run_of_a_year_at_the_price_of_a_day_leaves_other_days_alone():
    flu = declared(days=365, budget=tc.Budget(epsilon=0.8))
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=0.8))
    assert flu.remaining.epsilon == 0
    assert flu._ledger.remaining("flu", block="2026-12-31").epsilon == 0
    assert flu._ledger.remaining("flu", block="2027-01-01").epsilon == tc.Budget(epsilon=0.8).epsilon


def test_people_count_in_their_first_days_only():
    flu = persons()
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
    for number in range(5):  # one who comes every day, and another person each day
        flu.append(DAYS[number], [{"pid": 1}, {"pid": 100 + number}])
    series = flu.release(DAYS[4]).content
    assert values(series.daily["cases"]) == [2, 2, 1, 1, 1]


def test_people_who_come_back_too_soon_do_not_count():
    flu = persons(most_days=3, apart=2)
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
    for number in range(7):
        flu.append(DAYS[number], [{"pid": 1}])
    assert values(flu.release(DAYS[6]).daily["cases"]) == [1, 0, 1, 0, 1, 0, 0]


def test_a_person_written_as_a_float_on_one_day_is_the_same_person():
    for n, other in enumerate((1.0, "1", np.float32(1), Decimal("1.0"), np.int8(1))):
        flu = persons(name=f"flu{n}", most_days=1)
        flu.begin(flu.daily(n=tc.count()).plan(epsilon=800))
        flu.append(DAYS[0], [{"pid": 1}])
        flu.append(DAYS[1], [{"pid": other}])
        flu.append(DAYS[2], pd.DataFrame({"pid": [1.0]}))
        assert values(flu.release(DAYS[2]).content.daily["n"]) == [1, 0, 0]


def test_one_person_is_one_person_however_the_number_is_written():
    flu = persons(most_days=1)
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
    flu.append(DAYS[0], pd.DataFrame({"pid": [1, 2]}))
    flu.append(DAYS[1], pd.DataFrame({"pid": [1.0, None]}))
    flu.append(DAYS[2], pd.DataFrame({"pid": ["1", "x"]}))
    assert values(flu.release(DAYS[2]).daily["cases"]) == [2, 0, 1]


def test_a_new_process_knows_who_has_counted(tmp_path):
    ledger = tc.Ledger.memory()
    for number in range(3):
        flu = persons(source=tmp_path / "flu", ledger=ledger, most_days=2)
        flu.append(DAYS[number], [{"pid": 1}])
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
    assert values(flu.release(DAYS[2]).daily["cases"]) == [1, 1, 0]


@pytest.mark.parametrize("trials", [1, pytest.param(8, marks=pytest.mark.long)])
def test_one_person_changes_no_more_than_the_mechanism_covers(monkeypatch, trials):
    """Random neighbours: all days of one person are removed, and the exact rows are compared."""
    monkeypatch.setattr("tacit.tables._protect.ranking_secret", lambda: 7)  # which rows count, for both
    rng = np.random.default_rng(11)
    for trial in range(trials):
        most, apart = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        frames = [
            pd.DataFrame({"pid": rng.integers(0, 6, 12), "region": rng.choice(["a", "b"], 12)})
            for _ in range(6)
        ]
        exact = []
        for without in (None, 3):
            flu = persons(
                name=f"flu{trial}", most_days=most, apart=apart, days=6, limits={"rows": 2},
                keys={"region": ["a", "b"]},
            )  # fmt: skip
            plan = flu.daily(cases=tc.count(), by="region").plan(rho=1)
            for number, frame in enumerate(frames):
                flu.append(DAYS[number], frame if without is None else frame[frame["pid"] != without])
            subject = plan._members[0].task.subject
            [noise] = subject.noises
            days = [subject._integers(day)[0] for day in range(1, 7)]
            exact.append(np.array(noise.sums(days, None)[0], dtype=float))
        moved = ((exact[0] - exact[1]) ** 2).sum()
        assert 0 < moved <= noise.noise.sensitivity_squared


def test_rows_come_as_frames_files_and_dictionaries(flu, tmp_path):
    import polars as pl
    import pyarrow as pa

    flu.begin(flu.daily(cases=tc.count(), temp=tc.mean("temp"), by="region").plan(epsilon=900))
    frame = rows(0, 8)
    frame.to_csv(tmp_path / "day.csv", index=False)
    frame.to_parquet(tmp_path / "day.parquet")
    forms = [
        frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), tmp_path / "day.csv",
        str(tmp_path / "day.parquet"), frame.to_dict("records"), frame.to_dict("list"), [],
    ]  # fmt: skip
    for number, form in enumerate(forms):
        flu.append(DAYS[number], form)
    series = flu.release(DAYS[len(forms) - 1]).content
    assert values(series.daily["cases"]) == [4, 4] * 7 + [0, 0]
    assert np.array(series.daily["temp"].value[:14]).reshape(7, 2) == pytest.approx(
        np.tile([37.0, 38.0], (7, 1)), abs=0.1
    )


def test_a_stream_goes_on_in_a_new_process(tmp_path):
    place = {"source": tmp_path / "flu", "ledger": str(tmp_path / "flu.ledger")}
    flu = declared(**place)
    flu.begin(flu.daily(cases=tc.count()).plan(rho=500), who="ana", purpose="weekly page")
    flu.append(DAYS[0], rows(0, 10))
    first = flu.release(DAYS[0]).to_dict()
    flu.append(DAYS[1], rows(1, 20))
    flu._ledger.close()
    again = open_stream(tmp_path / "flu")
    assert again.release(DAYS[0]).to_dict() == first
    assert values(again.release(DAYS[1]).daily["cases"]) == [10, 20]
    again._ledger.close()
    flu = declared(**place)
    assert flu.status().plans[0][1] == 2
    assert values(flu.release(DAYS[1]).totals["cases"]) == [10, 30]
    flu._ledger.close()


@pytest.mark.parametrize(
    "changed",
    [{"days": 21}, {"start": "2026-01-02"}, {"keys": {"x": ["a"]}}, {"bounds": {"x": (0, 1)}}],
    ids=str,
)
def test_another_declaration_of_the_same_folder_is_refused(tmp_path, changed):
    ledger = tc.Ledger.memory()
    declared(tmp_path / "flu", ledger=ledger)
    with pytest.raises(TacitError) as refusal:
        declared(tmp_path / "flu", ledger=ledger, **changed)
    assert refusal.value.code == "stream-differs"
    declared(tmp_path / "flu", ledger=ledger)


def test_a_damaged_declaration_is_refused(tmp_path):
    ledger = tc.Ledger.memory()
    declared(tmp_path / "flu", ledger=ledger)
    (tmp_path / "flu" / "stream.json").write_text("{")
    for again in (lambda: declared(tmp_path / "flu", ledger=ledger), lambda: open_stream(tmp_path / "flu")):
        with pytest.raises(TacitError) as refusal:
            again()
        assert refusal.value.code == "stream-differs"


REFUSED = {
    "a day twice": ("day-twice", lambda s: s.append(DAYS[1], rows(1, 3))),
    "a late row": ("day-closed", lambda s: s.append(DAYS[0], rows(0, 3))),
    "before the horizon": ("day-outside", lambda s: s.append("2025-12-31", rows(0, 3))),
    "after the horizon": ("day-outside", lambda s: s.append("2026-01-21", rows(0, 3))),
    "a release before the horizon": ("day-outside", lambda s: s.release("2025-12-31")),
    "not a day": ("bad-parameter", lambda s: s.append("yesterday", rows(0, 3))),
    "a column too few": ("rows-differ", lambda s: s.append(DAYS[2], rows(0, 3)[["pid", "region"]])),
    "a column too many": ("rows-differ", lambda s: s.append(DAYS[2], rows(0, 3).assign(age=3))),
    "columns of another table": ("rows-differ", lambda s: s.append(DAYS[2], [{"x": 1}])),
    "not rows": ("bad-parameter", lambda s: s.append(DAYS[2], [1, 2])),
    "a file that is not there": ("bad-parameter", lambda s: s.append(DAYS[2], "absent.csv")),
    "a day that has not come": ("day-missing", lambda s: s.release(DAYS[3])),
    "a plan that was not begun": (
        "not-begun",
        lambda s: s.release(DAYS[1], s.daily(n=tc.count()).plan(epsilon=9)),
    ),
    "a picked value": ("not-allowed", lambda s: s.daily(m=tc.median("temp")).plan(epsilon=1)),
    "private groups": ("keys-missing", lambda s: s.daily(m=tc.count(), by="pid").plan(epsilon=1)),
    "no cost": ("bad-parameter", lambda s: s.daily(m=tc.count()).plan()),
    "two costs": ("bad-parameter", lambda s: s.daily(m=tc.count()).plan(epsilon=1, rho=1)),
    "another focus": ("bad-parameter", lambda s: s.daily(m=tc.count(), focus="month").plan(epsilon=1)),
    "another charge": ("bad-parameter", lambda s: s.daily(m=tc.count(), charge="month").plan(epsilon=1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_and_changes_nothing(flu, name):
    code, act = REFUSED[name]
    flu.begin(flu.daily(cases=tc.count(), by="region").plan(epsilon=1))
    flu.append(DAYS[0], rows(0, 10))
    flu.append(DAYS[1], rows(1, 10))
    flu.release(DAYS[0])
    before, left = repr(flu.status()), flu.remaining
    with pytest.raises(TacitError) as refusal:
        act(flu)
    assert refusal.value.code == code
    assert refusal.value.fix is not None
    assert repr(flu.status()) == before
    assert flu.remaining == left
    assert flu.release(DAYS[1]).days == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"level": "week"},
        {"level": "event", "unit": "pid"},
        {"level": "person-day"},
        {"level": "person-day", "unit": "pid", "most_days": 4},
        {"level": "person", "unit": "pid"},
        {"level": "person", "unit": "pid", "most_days": 0},
        {"days": 0},
        {"start": "soon"},
    ],
    ids=str,
)
def test_declarations_that_promise_nothing_are_refused(changed):
    with pytest.raises(TacitError) as refusal:
        declared(**changed)
    assert refusal.value.code in {"bad-parameter", "missing-limit"}


def test_days_of_whole_persons_are_not_charged_one_by_one():
    with pytest.raises(TacitError) as refusal:
        persons().daily(n=tc.count(), charge="day").plan(epsilon=1)
    assert refusal.value.code == "not-allowed"


def test_a_release_before_a_plan_is_refused(flu):
    flu.append(DAYS[0], rows(0, 1))
    with pytest.raises(TacitError) as refusal:
        flu.release(DAYS[0])
    assert refusal.value.code == "not-begun"


def test_with_two_plans_one_is_named(flu):
    plans = [flu.daily(cases=tc.count()).plan(epsilon=1), flu.daily(temp=tc.mean("temp")).plan(epsilon=1)]
    for plan in plans:
        flu.begin(plan)
    flu.append(DAYS[0], rows(0, 10))
    with pytest.raises(TacitError) as refusal:
        flu.release(DAYS[0])
    assert refusal.value.code == "not-begun"
    assert "temp" in flu.release(DAYS[0], plans[1]).columns


def test_a_plan_beyond_the_budget_is_not_begun():
    flu = declared(budget=tc.Budget(epsilon=1))
    with pytest.raises(TacitError) as refusal:
        flu.begin(flu.daily(cases=tc.count()).plan(epsilon=2))
    assert refusal.value.code == "budget-exceeded"
    assert flu.status().plans == ()


def test_an_instalment_that_fails_loses_no_day(flu, monkeypatch):
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
    flu.append(DAYS[0], rows(0, 10))
    flu.append(DAYS[1], rows(1, 20))
    flu.release(DAYS[0])
    with monkeypatch.context() as patch:
        patch.setattr(StreamSubject, "_integers", lambda self, day: 1 / 0)
        for _ in range(3):
            with pytest.raises(TacitError) as refusal:
                flu.release(DAYS[1])
            assert refusal.value.code == "release-failed"
    flu.append(DAYS[2], rows(2, 30))
    assert values(flu.release(DAYS[2]).daily["cases"]) == [10, 20, 30]


def test_status_names_the_days_that_are_missing(flu):
    for number in (0, 1, 4):
        flu.append(DAYS[number], rows(number, 2))
    status = flu.status()
    assert status.missing == (DAYS[2], DAYS[3])
    assert "3 of 20 days came in, the last one 2026-01-05" in repr(status)
    assert "no plan was begun" in repr(status)
    assert "stream flu, protects each row" in repr(flu)


def test_rows_that_lack_a_column_of_a_plan_are_refused_before_they_are_stored():
    flu = declared(types={"result": "text"})
    flu.begin(flu.daily(cases=tc.count(), where="result = 'positive'").plan(epsilon=1))
    with pytest.raises(TacitError, match="result") as refusal:
        flu.append(DAYS[0], [{"outcome": "positive"}])
    assert refusal.value.code == "rows-differ"
    assert flu.status().appended == ()
    flu.append(DAYS[0], [{"result": "positive"}])
    assert flu.release(DAYS[0]).days == 1


def test_a_plan_about_columns_that_the_rows_lack_is_refused_before_its_charge():
    flu = declared()
    plan = flu.daily(cases=tc.count(), where="result = 'positive'").plan(epsilon=1)
    flu.append(DAYS[0], [{"outcome": "positive"}])
    with pytest.raises(TacitError) as refusal:
        flu.begin(plan)
    assert refusal.value.code == "unknown-column"
    assert flu.remaining.epsilon == 1000


def test_a_file_with_another_encoding_is_refused(tmp_path, flu):
    (tmp_path / "day.csv").write_text('pid,region,temp\n1,a,"36,5"\n')
    with pytest.raises(TacitError) as refusal:
        flu.append(DAYS[0], tc.tables.csv_file(tmp_path / "day.csv", decimal=","))
    assert refusal.value.code == "bad-parameter"
    (tmp_path / "bad.csv").write_bytes(b"pid,region,temp\n1,\xff\xfe,36\n2,a,37\n")
    try:
        flu.append(DAYS[0], tmp_path / "bad.csv")
    except TacitError as error:
        assert error.code == "bad-parameter"
        assert flu.status().appended == ()


def test_two_processes_that_share_a_folder_lose_nothing_of_each_other(tmp_path):
    ledger = tc.Ledger.memory()
    one, two = (declared(tmp_path / "flu", ledger=ledger) for _ in range(2))
    plans = [one.daily(cases=tc.count()).plan(epsilon=1), two.daily(cases=tc.count()).plan(epsilon=2)]
    one.begin(plans[0])
    two.begin(plans[1])
    one.append(DAYS[0], [{"x": 1}])
    with pytest.raises(TacitError) as refusal:
        two.append(DAYS[1], [{"y": 1}])
    assert refusal.value.code == "rows-differ"
    two.append(DAYS[1], [{"x": 1}])
    assert one.release(DAYS[1], plans[1]).days == 2
    assert two.release(DAYS[1], plans[0]).days == 2
    assert two.release(DAYS[1], plans[1]).to_dict() == one.release(DAYS[1], plans[1]).to_dict()
    assert len(declared(tmp_path / "flu", ledger=ledger).status().plans) == 2


def test_a_released_day_whose_file_was_removed_stays_closed(flu):
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=1))
    flu.append(DAYS[0], rows(0, 10))
    flu.release(DAYS[0])
    flu._folder.path(DAYS[0]).unlink()
    with pytest.raises(TacitError) as refusal:
        flu.append(DAYS[0], rows(0, 20))
    assert refusal.value.code == "day-closed"


def test_a_day_is_closed_also_for_who_looked_while_it_was_drawn(monkeypatch, tmp_path):
    """Otherwise its rows could be replaced, and its persons would count on one day more than was paid for."""
    ledger = tc.Ledger.memory()
    one, two = (persons(source=tmp_path / "flu", ledger=ledger, most_days=1) for _ in range(2))
    one.begin(one.daily(cases=tc.count()).plan(epsilon=900))
    one.append(DAYS[0], [{"pid": 1}])
    integers = StreamSubject._integers
    monkeypatch.setattr(
        StreamSubject,
        "_integers",
        lambda self, day: (one.status(), two.plans, two.status(), integers(self, day))[-1],
    )
    two.append(DAYS[1], [{"pid": 9}])
    one.release(DAYS[0])
    for flu in (one, two):
        assert flu.status().plans[0][1] == 1
        with pytest.raises(TacitError) as refusal:
            flu.append(DAYS[0], [{"pid": 3}], replace=True)
        assert refusal.value.code == "day-closed"


@pytest.mark.parametrize("folder_too", [False, True])
def test_a_stream_of_persons_needs_the_files_of_released_days(tmp_path, folder_too):
    """Who counted on a day is written there; without it, they would count on more days than was paid for."""
    ledger = tc.Ledger.memory()
    flu = persons(source=tmp_path / "flu", ledger=ledger, most_days=1)
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
    flu.append(DAYS[0], [{"pid": 1}])
    flu.release(DAYS[0])
    if folder_too:  # all of it is lost, and declared again
        flu = persons(source=tmp_path / "other", ledger=ledger, most_days=1)
        flu.append(DAYS[1], [{"pid": 1}])
        flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
        with pytest.raises(TacitError, match="file is gone") as refusal:
            flu.release(DAYS[1])
    else:
        flu._folder.path(DAYS[0]).unlink()
        with pytest.raises(TacitError, match="file is gone") as refusal:
            flu.append(DAYS[1], [{"pid": 1}])
    assert refusal.value.code == "day-missing"
    assert values(flu.release(DAYS[0]).daily["cases"]) == [1]  # what is stored stays


def test_of_a_lost_draw_nothing_is_ever_seen(monkeypatch):
    """Rows are drawn again after a loss, so what was drawn before must be in no release and no memory."""
    from tacit.ledger.draws import _runs
    from tacit.mechanisms import ToeplitzNoise

    drawn, next_rows = [], ToeplitzNoise.release_next

    def recorded(self, value, memory):
        found = next_rows(self, value, memory)
        drawn.append((found, memory))
        return found

    def lost(*args, **named):
        raise OSError

    monkeypatch.setattr(ToeplitzNoise, "release_next", recorded)
    flu = declared(budget=tc.Budget(rho=1e-9))  # noise so large that no two draws of a row are equal
    flu.begin(flu.daily(cases=tc.count(), focus="total").plan(rho=1e-9))
    for number in range(3):
        flu.append(DAYS[number], [{"x": 1}] * 5)
        with monkeypatch.context() as failing:
            failing.setattr(_runs, "keep_instalment", lost)
            for _ in range(4):
                with pytest.raises(TacitError) as refusal:
                    flu.release(DAYS[number])
                assert refusal.value.code == "release-failed"
        flu.release(DAYS[number])
    stored = [row for (rows_, _), _ in drawn[4::5] for row in rows_]
    assert [row.tolist() for row in flu.release(DAYS[2]).content.rows[0]] == stored
    memories = [memory for (_, memory), _ in drawn[4::5]]
    assert [before for _, before in drawn] == [b""] * 5 + [memories[0]] * 5 + [memories[1]] * 5


def test_an_instalment_that_is_drawn_beside_the_stream_has_no_days(flu, monkeypatch):
    """Days are drawn under the lock of the folder alone, also after a draw that failed."""
    plan = flu.daily(cases=tc.count()).plan(epsilon=900)
    flu.begin(plan)
    flu.append(DAYS[0], rows(0, 10))
    with monkeypatch.context() as broken:
        broken.setattr(StreamSubject, "_integers", lambda self, day: 1 / 0)
        with pytest.raises(TacitError):
            flu.release(DAYS[0])
    assert flu.plans[0].run().next().content.days == 0
    assert values(flu.release(DAYS[0]).daily["cases"]) == [10]


@pytest.mark.parametrize("charge", ["run", "day"])
def test_certificates_state_what_was_charged_for_each_unit(charge):
    flu = declared(budget=tc.Budget(rho=0.5), types={"x": "number"})
    plan = flu.daily(cases=tc.count(), n=tc.histogram("x", [0, 1, 2]), charge=charge).plan(rho=0.5)
    flu.begin(plan)
    for number in range(3):
        flu.append(DAYS[number], [{"x": 1}] * number)
        release = flu.release(DAYS[number])
    assert release.certificate.matches(flu._ledger)
    assert cost_of_laws(plan.mechanisms) == plan.cost
    assert 0.4999 < plan.cost.rho <= 0.5
    spent = flu._ledger.blocks("flu")
    assert len(spent) == (3 if charge == "day" else 20)


@pytest.mark.parametrize(
    "goal", [{"rho": 0.1}, {"rho": 0.1, "focus": "total"}, {"epsilon": 1, "focus": "total"}]
)
def test_variances_and_correlations_of_a_stream_have_intervals(goal):
    flu = persons(
        level="person-day", most_days=None, days=70, bounds={"t": (30, 45), "u": (0, 1)},
        budget=tc.Budget(epsilon=10) if "epsilon" in goal else tc.Budget(rho=10),
    )  # fmt: skip
    flu.begin(planned(flu, goal, v=tc.variance("t"), c=tc.correlation("t", "u")))
    rng = np.random.default_rng(9)
    for number in range(9):
        u = rng.random(3000)
        frame = pd.DataFrame({"pid": range(3000), "t": 35 + 5 * u + rng.normal(0, 1, 3000), "u": u})
        flu.append(DAYS[number], frame)
    last = flu.release(DAYS[8])
    for name, truth in (("v_so_far", 25 / 12 + 1), ("c_so_far", 0.82)):
        cells = last[name]
        width = cells.high[0] - cells.low[0]
        assert cells.low[0] <= cells.value[0] <= cells.high[0]
        assert abs(cells.value[0] - truth) <= 3 * width  # a 95 % interval is 4 standard deviations wide


def test_threads_that_release_the_same_days_get_the_same_numbers(tmp_path):
    place = {"source": tmp_path / "flu", "ledger": str(tmp_path / "flu.ledger")}
    flu = declared(**place)
    flu.begin(flu.daily(cases=tc.count(), focus="total").plan(rho=1))
    for number in range(6):
        flu.append(DAYS[number], rows(number, 10))
    flu._ledger.close()

    def release_all(_):
        own = declared(**place)
        found = [own.release(day).daily["cases"].value for day in DAYS[:6]]
        own._ledger.close()
        return found

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(release_all, range(3)))
    last = results[0][-1]
    assert len(last) == 6
    for found in results:
        assert all(days == last[: len(days)] for days in found)


def test_a_stream_with_every_public_fact_is_opened_again(tmp_path):
    ledger = tc.Ledger.memory()
    facts = {
        "keys": {"region": ["a", "b"]},
        "bounds": {"temp": (-0.5, 45)},
        "types": {"temp": "number"},
        "never_null": ["temp"],
    }
    flu = declared(tmp_path / "flu", ledger=ledger, **facts)
    flu.begin(flu.daily(temp=tc.sum("temp"), by="region").plan(epsilon=900))
    flu.append(DAYS[0], [{"region": "a", "temp": 99}])
    again = open_stream(tmp_path / "flu", ledger=ledger)
    assert values(again.release(DAYS[0]).daily["temp"]) == [45, 0]
    assert again.declared == flu.declared


def test_the_rows_of_a_day_are_for_their_owner_alone(tmp_path):
    flu = declared(tmp_path / "flu", ledger=tc.Ledger.memory())
    flu.append(DAYS[0], [{"temp": 37}])
    flu.append(DAYS[1], [])
    files = sorted((tmp_path / "flu" / "days").iterdir())
    assert [oct(path.stat().st_mode & 0o777) for path in files] == ["0o600"] * 2


def test_rows_cannot_say_themselves_who_counts():
    for name in ("kept_by_tacit", "KEPT_by_tacit"):
        with pytest.raises(TacitError) as refusal:
            persons().append(DAYS[0], pd.DataFrame({"pid": [1], name: [True]}))
        assert refusal.value.code == "rows-differ"


def test_days_without_their_declaration_are_refused(tmp_path):
    ledger = tc.Ledger.memory()
    flu = persons(source=tmp_path / "flu", ledger=ledger, most_days=2)
    flu.append(DAYS[0], [{"pid": 1}])
    (tmp_path / "flu" / "stream.json").unlink()
    with pytest.raises(TacitError) as refusal:
        persons(source=tmp_path / "flu", ledger=ledger, most_days=1)  # one person was let in twice
    assert refusal.value.code == "stream-differs"


STRANGE = [pd.NA, np.array([1, 2]), "\ud800", "\0", [1], float("inf"), "x\ry", 10**400, 10**5000]
STRANGE += [Decimal("1e999999"), Decimal("sNaN"), Decimal("Infinity")]


@pytest.mark.parametrize("cell", STRANGE, ids=range(len(STRANGE)))
def test_a_strange_cell_keeps_nobody_else_out(cell):
    flu = declared()
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=900))
    flu.append(DAYS[0], [{"temp": 37}, {"temp": cell}, {"temp": 38}])
    assert values(flu.release(DAYS[0]).daily["cases"]) == [3]


@pytest.mark.parametrize("rows", [{"temp": [1, 2], "pid": [1]}, {"temp": 5}])
def test_columns_that_do_not_fit_together_are_refused(rows):
    with pytest.raises(TacitError) as refusal:
        declared().append(DAYS[0], rows)
    assert refusal.value.code == "bad-parameter"


def test_a_day_that_was_not_released_can_be_replaced(flu):
    flu.begin(flu.daily(cases=tc.count(), by="region").plan(epsilon=900))
    flu.append(DAYS[0], rows(0, 10))
    flu.append(DAYS[1], rows(1, 10))
    flu.release(DAYS[0])
    flu.append(DAYS[1], rows(1, 40), replace=True)
    with pytest.raises(TacitError) as refusal:
        flu.append(DAYS[0], rows(0, 40), replace=True)
    assert refusal.value.code == "day-closed"
    assert values(flu.release(DAYS[1]).daily["cases"]) == [5, 5, 20, 20]


def test_after_a_replacement_every_person_still_counts_in_the_declared_days(tmp_path):
    ledger = tc.Ledger.memory()
    one, two = (persons(source=tmp_path / "flu", ledger=ledger, most_days=1) for _ in range(2))
    one.append(DAYS[0], [{"pid": 1}])
    two.append(DAYS[1], [{"pid": 1}, {"pid": 2}])  # 1 has had a day
    one.append(DAYS[0], [{"pid": 3}, {"pid": 2}], replace=True)  # 2 has had a day as well
    two.append(DAYS[2], [{"pid": 3}, {"pid": 1}])
    one.begin(one.daily(cases=tc.count()).plan(epsilon=900))
    assert values(one.release(DAYS[2]).daily["cases"]) == [1, 1, 1]


def test_the_first_day_can_be_replaced_by_rows_with_other_columns(tmp_path):
    ledger = tc.Ledger.memory()
    flu, other = (declared(tmp_path / "flu", ledger=ledger) for _ in range(2))
    flu.append(DAYS[0], [{"age": 1}])
    flu.append(DAYS[0], [{"temp": 1}], replace=True)
    other.append(DAYS[1], [{"temp": 2}])
    with pytest.raises(TacitError) as refusal:
        flu.append(DAYS[1], [{"age": 1}], replace=True)
    assert refusal.value.code == "rows-differ"


@pytest.mark.parametrize("name", ["", " ", "column0", "Unnamed: 0"])
def test_columns_without_a_name_are_refused(flu, name):
    with pytest.raises(TacitError) as refusal:
        flu.append(DAYS[0], rows(0, 3).assign(**{name: 1}))
    assert refusal.value.code == "rows-differ"
    assert flu.status().appended == ()


def test_a_file_comes_in_under_one_day(tmp_path):
    flu = declared()
    (tmp_path / "day.csv").write_text("age\n40\n7\n")
    (tmp_path / "copy.csv").write_text("age\n40\n7\n")
    (tmp_path / "empty.csv").write_text("age\n")
    flu.append(DAYS[0], tmp_path / "day.csv")
    with pytest.raises(TacitError) as refusal:
        flu.append(DAYS[1], tmp_path / "copy.csv")
    assert refusal.value.code == "rows-twice"
    assert flu.status().appended == (DAYS[0],)
    flu.append(DAYS[1], tmp_path / "copy.csv", again=True)
    flu.append(DAYS[2], tmp_path / "empty.csv")
    flu.append(DAYS[3], str(tmp_path / "empty.csv"))
    flu.append(DAYS[0], tmp_path / "day.csv", replace=True, again=True)


@pytest.mark.parametrize("level", ["event", "person"])
def test_a_misspelt_column_is_refused_before_the_charge_also_without_rows(level):
    flu = persons() if level == "person" else declared()
    plan = flu.daily(cases=tc.count(), where="reslt = 'positive' AND agee > 3").plan(epsilon=900)
    assert ("columns not seen yet", "reslt, agee") in plan.facts
    with pytest.raises(TacitError, match="reslt, agee") as refusal:
        flu.begin(plan)
    assert refusal.value.code == "unknown-column"
    assert "kept_by_tacit" not in f"{refusal.value}{plan}"
    assert flu.remaining.epsilon == 1000
    flu.append(DAYS[0], {"pid": [1], "result": ["positive"], "age": [3]})
    with pytest.raises(TacitError) as refusal:
        flu.begin(plan)
    assert "kept_by_tacit" not in str(refusal.value)
    assert flu.remaining.epsilon == 1000
    good = flu.daily(cases=tc.count(), where="result = 'positive'").plan(epsilon=900)
    assert "columns not seen yet" not in dict(good.facts)
    flu.begin(good)


@pytest.mark.parametrize("where", ["ill = 'yes'", "il = 'yes'", "ill > 3"])
@pytest.mark.parametrize("stays", [False, True])
def test_nothing_shows_whether_somebody_came_on_the_first_day(tmp_path, where, stays):
    """An empty list of dictionaries names no columns, so a list of dictionaries makes none known."""

    def shown(name, rows):
        ledger = tc.Ledger.memory()
        flu = declared(tmp_path / name, ledger=ledger)
        flu.append(DAYS[0], rows)
        if stays:  # in a new process
            flu = open_stream(tmp_path / name, ledger=ledger)
        plan = flu.daily(cases=tc.count(), where=where).plan(epsilon=900)
        with pytest.raises(TacitError) as refusal:
            flu.begin(plan)
        return repr(plan), plan.facts, str(refusal.value), flu.remaining

    assert shown("nobody", []) == shown("somebody", [{"ill": "yes"}])


def test_a_stream_that_knew_its_columns_from_dictionaries_before_goes_on(tmp_path):
    """An earlier version did not keep where columns were known from."""
    ledger = tc.Ledger.memory()
    flu = declared(tmp_path / "flu", ledger=ledger)
    flu.append(DAYS[0], [{"ill": "yes"}])
    facts = tmp_path / "flu" / "stream.json"
    found = json.loads(facts.read_text())
    del found["headed"]
    facts.write_text(json.dumps(found))
    again = open_stream(tmp_path / "flu", ledger=ledger)
    again.begin(again.daily(cases=tc.count(), where="ill = 'yes'").plan(epsilon=900))
    assert values(again.release(DAYS[0]).daily["cases"]) == [1]


def test_an_alarm_plan_with_a_misspelt_column_is_refused_before_the_charge():
    flu = persons()
    with pytest.raises(TacitError) as refusal:
        flu.begin(flu.silent_alarm(baseline=5, where="reslt = 'positive'").plan(epsilon=1))
    assert refusal.value.code == "unknown-column"


@pytest.mark.parametrize("fact", ["most_days", "apart"])
def test_marks_that_were_made_by_another_rule_are_refused(tmp_path, fact):
    ledger = tc.Ledger.memory()
    flu = persons(source=tmp_path / "flu", ledger=ledger, most_days=3, apart=2)
    flu.append(DAYS[0], [])
    flu.append(DAYS[1], [{"pid": 1}])
    facts = tmp_path / "flu" / "stream.json"
    found = json.loads(facts.read_text())
    facts.write_text(json.dumps({**found, "declaration": {**found["declaration"], fact: 1}}))
    with pytest.raises(TacitError) as refusal:
        open_stream(tmp_path / "flu", ledger=ledger)
    assert refusal.value.code == "stream-differs"
    facts.write_text(json.dumps(found))
    assert open_stream(tmp_path / "flu", ledger=ledger).declared == flu.declared


def test_a_folder_is_a_folder_and_has_a_ledger(tmp_path):
    (tmp_path / "day.csv").write_text("age\n3\n")
    for act in (lambda: declared(tmp_path / "day.csv"), lambda: open_stream(tmp_path / "day.csv")):
        with pytest.raises(TacitError, match="is a file") as refusal:
            act()
        assert refusal.value.code == "bad-parameter"
    with pytest.raises(TacitError, match="ledger") as refusal:
        declared(tmp_path / "flu")
    assert refusal.value.code == "bad-parameter"
    assert not (tmp_path / "flu").exists()


@pytest.mark.parametrize(
    "act",
    [
        lambda flu: flu.daily(n=tc.mean("age")).plan(epsilon=1),
        lambda flu: flu.daily(n=tc.count(), by="ward").plan(epsilon=1),
        lambda flu: declared(level="person-day"),
        lambda flu: declared(budget=3),
        lambda flu: declared(bounds={"temp": (1, 0)}),
    ],
)
def test_fixes_speak_of_streams(flu, act):
    with pytest.raises(TacitError) as refusal:
        act(flu)
    assert "tc.protect" not in str(refusal.value)


@pytest.mark.parametrize("goal", [{"epsilon": 1, "focus": "day"}, {"rho": 0.5, "focus": "total"}], ids=str)
def test_a_plan_states_the_error_of_the_total_on_the_last_day(goal):
    flu = declared(days=12, budget=tc.Budget(epsilon=1) if "epsilon" in goal else tc.Budget(rho=1))
    plan = planned(flu, goal, cases=tc.count())
    flu.begin(plan)
    for number in range(12):
        flu.append(DAYS[number], [])
    last = flu.release(DAYS[11])["cases_so_far"]
    assert plan.forecast[2].error == pytest.approx((last.high[0] - last.low[0]) / 2, rel=0.02)
    assert "on the last day" in plan.forecast[2].meaning


@pytest.mark.parametrize("level", ["event", "person-day", "person"])
def test_a_plan_says_that_the_budget_is_not_enough_and_which_limit_holds_by_default(level):
    more = {} if level == "event" else {"unit": "pid", "limits": None}
    flu = declared(
        level=level, budget=tc.Budget(epsilon=1), **more, **({"most_days": 2} if level == "person" else {})
    )
    facts = repr(flu.daily(cases=tc.count()).plan(epsilon=2)).replace("\n", " ")
    assert facts.count("left afterwards: not enough for this question") == 1
    assert bool(re.search(r"at most 10 rows of each \w+( and day)? count \(default\)", facts)) == (
        level != "event"
    )
    enough = repr(flu.daily(cases=tc.count()).plan(epsilon=0.5)).replace("\n", " ")
    assert enough.count("left afterwards: one more question of up to epsilon 0.5; or 1 more like") == 1


@pytest.mark.parametrize("goal", [{"epsilon": 0.8}, {"epsilon": 0.8, "focus": "total"}, {"rho": 0.2}])
def test_no_day_of_a_dial_is_less_exact_than_its_plan_says(goal):
    flu = declared(budget=tc.Budget(epsilon=1) if "epsilon" in goal else tc.Budget(rho=1))
    plan = planned(flu, goal, cases=tc.count())
    flu.begin(plan)
    for number in range(20):
        flu.append(DAYS[number], [])
    history = flu.release(DAYS[19]).content.history
    for told in plan.forecast:
        cells = history.columns[told.column]
        widest = max((high - low) / 2 for low, high in zip(cells.low, cells.high, strict=True))
        whole = told.column == "cases"  # the interval of a single day ends at whole numbers
        assert widest <= (np.ceil(told.error) if whole else told.error * (1 + 1e-9))


def test_the_former_call_warns_shows_the_new_line_and_gives_the_same_plan(flu):
    with pytest.warns(DeprecationWarning, match=r"\.daily\(\.\.\.\)\.plan\(rho=0\.5, size=20\)"):
        former = flu.plan(temp=tc.mean("temp"), by="region", focus="week", rho=0.5, size=20)
    plan = flu.daily(temp=tc.mean("temp"), by="region", focus="week").plan(rho=0.5, size=20)
    assert former.to_json() == plan.to_json()
    with pytest.warns(DeprecationWarning, match=r"\.silent_alarm\(\.\.\.\)\.plan\(epsilon=1\)"):
        former = flu.alarm_plan(baseline=5, epsilon=1, where="temp > 38", since=DAYS[2])
    plan = flu.silent_alarm(baseline=5, where="temp > 38", since=DAYS[2]).plan(epsilon=1)
    assert former.to_json() == plan.to_json()


def test_a_question_says_what_is_asked_and_is_not_planned_yet(flu):
    words = repr(flu.daily(cases=tc.count(), by="region", focus="week"))
    assert all(part in words for part in ("cases = count", "region", "focus week", "not planned yet"))


@pytest.mark.parametrize(
    ("measure", "column", "figures"),
    [
        ("count", None, {"count": tc.count()}),
        ("sum", "temp", {"sum": tc.sum("temp")}),
        ("mean", "temp", {"mean": tc.mean("temp")}),
    ],
)
def test_a_series_is_the_question_of_every_day_under_the_name_of_its_measure(flu, measure, column, figures):
    series = flu.series(measure=measure, column=column, by="region", size=20, through=DAYS[1]).plan(rho=0.2)
    plan = flu.daily(**figures, by="region").plan(rho=0.2, size=20)
    assert series.to_json() == plan.to_json()
    assert flu.plan_from(series.to_json()) == plan


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"measure": "count", "column": "temp"}, "bad-parameter"),
        ({"measure": "mean"}, "bad-parameter"),
        ({"measure": "median", "column": "temp"}, "bad-parameter"),
        ({"measure": "count", "where": "tmp > 38"}, "unknown-column"),
        ({"measure": "count", "through": "2027-01-01"}, "day-outside"),
    ],
)
def test_a_series_that_cannot_be_measured_is_refused(flu, asked, code):
    with pytest.raises(TacitError) as refusal:
        flu.series(**asked).plan(epsilon=1)
    assert refusal.value.code == code
