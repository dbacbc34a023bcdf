"""Late reports: days close after a public lag, later rows are refused or go to a stream of their own."""

import pytest

import tacit as tc
from tacit.core import members_of
from tacit.errors import TacitError
from tacit.streams import ReportBook, open_stream


def made(place, name="flu", days=4, **more):
    return tc.stream(
        place / name, name=name, level="event", start="2026-01-01", days=days, budget=tc.Budget(epsilon=1),
        ledger=place / "ledger", **more,
    )  # fmt: skip


def rows(n):
    return [{"age": 40}] * n


def counts(stream, days):
    subject = members_of(stream.daily(n=tc.count()).plan(epsilon=1))[0].task.subject
    return [subject._integers(day)[0][0][0] for day in days]


def day(n):
    return f"2026-01-{n:02}"


def test_rows_wait_until_their_day_closes_also_in_a_new_process(tmp_path):
    made(tmp_path)
    reports = [{1: 3}, {1: 2, 2: 4}, {1: 1, 2: 1, 3: 5}, {4: 1}, {3: 2}, {4: 7}]
    closed = []
    for number, report in enumerate(reports, 1):
        flu = open_stream(tmp_path / "flu")
        book = ReportBook(flu, lag=2)
        closed += book.report(day(number), {day(event): rows(n) for event, n in report.items()})
        if number < 6:
            flu._ledger.close()
    assert closed == [day(n) for n in (1, 2, 3, 4)]
    assert counts(flu, (1, 2, 3, 4)) == [6, 5, 7, 8]


def test_a_row_after_closing_is_refused_and_nothing_is_stored(tmp_path):
    flu = made(tmp_path)
    book = ReportBook(flu, lag=0)
    book.report(day(1), {day(1): rows(2)})
    for given, code in (
        ({day(1): rows(1)}, "day-closed"),
        ({day(3): rows(1)}, "bad-parameter"),
        ({"2025-12-31": rows(1)}, "day-outside"),
    ):
        with pytest.raises(TacitError) as refused:
            book.report(day(2), {day(2): rows(5), **given})
        assert refused.value.code == code
    assert flu.status().appended == (day(1),)
    book.report(day(2), {day(2): rows(1)})
    assert counts(flu, (1, 2)) == [2, 1]


def test_late_rows_go_to_the_declared_stream_on_the_day_of_their_report(tmp_path):
    flu, late = made(tmp_path), made(tmp_path, "late")
    book = ReportBook(flu, lag=0, late=late)
    book.report(day(1), {day(1): rows(2)})
    book.report(day(2), {day(1): rows(3), day(2): rows(1)})
    assert counts(flu, (1, 2)) == [2, 1]
    assert counts(late, (1, 2)) == [0, 3]


def test_reports_come_once_and_in_order_and_the_lag_stays(tmp_path):
    flu = made(tmp_path)
    book = ReportBook(flu, lag=1)
    book.report(day(1), {})
    for number, code in ((1, "day-twice"), (3, "day-missing")):
        with pytest.raises(TacitError) as refused:
            book.report(day(number), {})
        assert refused.value.code == code
    with pytest.raises(TacitError) as refused:
        ReportBook(flu, lag=2)
    assert refused.value.code == "stream-differs"


def test_a_report_that_was_interrupted_can_be_given_again(tmp_path, monkeypatch):
    flu = made(tmp_path)
    book = ReportBook(flu, lag=0)
    monkeypatch.setattr(type(flu), "_append_day", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        book.report(day(1), {day(1): rows(2)})
    monkeypatch.undo()
    assert book.report(day(1), {day(1): rows(2)}) == (day(1),)
    assert counts(flu, (1,)) == [2]


def test_rows_with_other_columns_are_refused_before_anything_is_stored(tmp_path):
    flu = made(tmp_path)
    book = ReportBook(flu, lag=1)
    book.report(day(1), {day(1): rows(2)})
    book.report(day(2), {})
    with pytest.raises(TacitError) as refused:
        book.report(day(3), {day(2): rows(2), day(3): [{"weight": 3}]})
    assert refused.value.code == "rows-differ"
    book.report(day(3), {day(2): rows(1), day(3): rows(1)})
    assert counts(flu, (1, 2)) == [2, 1]


def test_rows_that_the_book_holds_are_not_lost_to_an_append(tmp_path):
    flu = made(tmp_path)
    flu.append(day(1), rows(1))
    book = ReportBook(flu, lag=1)
    book.report(day(1), {})
    book.report(day(2), {day(2): rows(5)})
    for other in (flu, open_stream(tmp_path / "flu", ledger=flu._ledger)):
        with pytest.raises(TacitError) as refused:
            other.append(day(2), rows(1))
        assert refused.value.code == "bad-parameter"
    with pytest.raises(TacitError) as refused:
        book.report(day(3), {day(1): rows(1)})
    assert refused.value.code == "day-closed"
    with pytest.raises(TacitError) as refused:  # the day came in before there was a book
        ReportBook(flu, lag=1).report(day(3), {day(3): rows(1), day(1): rows(2)})
    assert refused.value.code == "day-closed"
    assert book.report(day(3), {day(2): rows(2)}) == (day(2),)
    assert counts(flu, (1, 2)) == [1, 7]
