"""At person level, a run is bound to the marks of its released days: no other folder counts people again."""

import contextlib
import random
import shutil
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import TacitError
from tacit.streams import draw_days, hosted_stream, open_stream, take_days
from tacit.streams._stream_run import RunState
from twins.streams import forgets_who_counted

DAYS = [f"2026-01-0{number}" for number in range(1, 8)]
ANA, BEN = [{"pid": "ana"}], [{"pid": "ben"}]


def opened(place, ledger, **changed):
    facts = {"level": "person", "unit": "pid", "most_days": 1, "limits": {"rows": 1}, **changed}
    return tc.stream(
        place, name="flu", start="2026-01-01", days=10, budget=tc.Budget(epsilon=1000), ledger=ledger, **facts
    )


def begun(place, ledger, **changed):
    flu = opened(place, ledger, **changed)
    flu.begin(flu.daily(n=tc.count()).plan(epsilon=900))
    return flu


def counted(flu, through):
    """With so large an epsilon, the released numbers are the exact ones."""
    return [round(value) for value in flu.release(DAYS[through]).content.daily["n"].value]


@pytest.fixture
def ledger():
    return tc.Ledger.memory()


@pytest.fixture
def flu(tmp_path, ledger):
    """One day on which ana counts was released, in the folder ``one``."""
    made = begun(tmp_path / "one", ledger)
    made.append(DAYS[0], ANA)
    made.release(DAYS[0])
    return made


def refused(act, code="stream-differs"):
    with pytest.raises(TacitError) as refusal:
        act()
    assert refusal.value.code == code
    return refusal.value


def test_a_new_folder_counts_nobody_again(tmp_path, ledger, flu):
    other = opened(tmp_path / "two", ledger)
    other.append(DAYS[1], ANA)  # the new day first, so that she counts on it
    other.append(DAYS[0], ANA)
    other.begin(other.daily(n=tc.count()).plan(epsilon=900))
    claimed = flu._begun(None)._run.remaining
    refused(lambda: other.release(DAYS[1]))
    refused(lambda: other.append(DAYS[2], ANA))
    assert counted(other, 0) == [1]  # what is stored can be read
    assert flu._begun(None)._run.remaining == claimed  # refused before an instalment is started
    flu.append(DAYS[1], ANA)
    assert counted(flu, 1) == [1, 0]


def test_two_machines_with_copies_of_a_folder_count_nobody_twice(tmp_path, ledger, flu):
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    other = open_stream(tmp_path / "two", ledger=ledger)
    flu.append(DAYS[1], [*ANA, *BEN])
    other.append(DAYS[1], [])
    assert counted(flu, 1) == [1, 1]
    refused(lambda: other.append(DAYS[2], BEN))
    flu.append(DAYS[2], BEN)
    assert counted(flu, 2) == [1, 1, 0]


def test_two_machines_that_draw_at_once_count_nobody_twice(tmp_path, ledger, flu, monkeypatch):
    """The other machine draws between the check and the claim: the draw fails, and the run goes on."""
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    other = open_stream(tmp_path / "two", ledger=ledger)
    flu.append(DAYS[1], BEN)
    other.append(DAYS[1], [])
    other.append(DAYS[2], BEN)
    other.plans  # noqa: B018 - opened before the other machine draws
    flu.release(DAYS[1])
    monkeypatch.setattr("tacit.streams._stream.Stream._refuse_other_marks", lambda *_: None)
    refused(lambda: other.release(DAYS[2]), "release-failed")
    monkeypatch.undo()
    flu.append(DAYS[2], BEN)
    assert counted(flu, 2) == [1, 1, 0]


def test_a_folder_that_lost_the_marks_of_a_released_day_does_not_go_on(tmp_path, ledger, flu):
    other = opened(tmp_path / "two", tc.Ledger.memory())
    other.append(DAYS[0], ANA)
    other.append(DAYS[1], ANA)  # where she does not count
    shutil.copy(other._folder.path(DAYS[1]), flu._folder.path(DAYS[0]))
    again = open_stream(tmp_path / "one", ledger=ledger)
    refused(lambda: again.append(DAYS[1], ANA))
    assert not again._folder.has(DAYS[1])


def test_an_older_copy_of_the_folder_does_not_go_on(tmp_path, ledger, flu):
    flu.append(DAYS[1], [])
    shutil.copytree(tmp_path / "one", tmp_path / "backup")  # before the rows of the day were replaced
    flu.append(DAYS[1], BEN, replace=True)
    flu.release(DAYS[1])
    shutil.rmtree(tmp_path / "one")
    shutil.move(tmp_path / "backup", tmp_path / "one")
    restored = open_stream(tmp_path / "one", ledger=ledger)
    refusal = refused(lambda: restored.append(DAYS[2], BEN))
    assert "each pid counts on at most 1 day" in refusal.why


def test_days_from_several_copies_are_not_drawn(tmp_path, ledger, flu):
    """An older file of a day that was not released yet does not fit to the later days."""
    flu.append(DAYS[1], BEN)
    before = flu._folder.path(DAYS[1]).read_bytes()
    flu.append(DAYS[1], [], replace=True)
    flu.append(DAYS[2], BEN)
    flu._folder.path(DAYS[1]).write_bytes(before)
    again = open_stream(tmp_path / "one", ledger=ledger)
    left = again._begun(None)._run.remaining
    refused(lambda: again.release(DAYS[2]))
    assert again._begun(None)._run.remaining == left


def test_a_moved_folder_and_the_same_rows_again_go_on(tmp_path, ledger, flu):
    shutil.move(tmp_path / "one", tmp_path / "two")
    moved = open_stream(tmp_path / "two", ledger=ledger)
    moved.append(DAYS[1], [*ANA, *BEN])
    assert counted(moved, 1) == [1, 1]
    third = opened(tmp_path / "three", ledger)  # the disk is lost, and the days are appended again
    third.append(DAYS[0], ANA)
    third.append(DAYS[1], [*BEN, *ANA])
    third.begin(third.daily(n=tc.count()).plan(epsilon=900))
    third.append(DAYS[2], [*ANA, *BEN, {"pid": "eva"}])
    assert counted(third, 2) == [1, 1, 1]


def test_a_silent_alarm_is_bound_too(tmp_path, ledger):
    flu = opened(tmp_path / "one", ledger)
    plan = flu.silent_alarm(baseline=100).plan(epsilon=900)
    flu.begin(plan)
    flu.append(DAYS[0], ANA)
    flu.release(DAYS[0])
    other = opened(tmp_path / "two", ledger)
    other.append(DAYS[1], ANA)
    other.append(DAYS[0], ANA)
    other.begin(plan)
    refused(lambda: other.release(DAYS[1]))


def test_a_run_of_an_earlier_version_goes_on_in_its_folder_alone(tmp_path, ledger, monkeypatch):
    """Earlier versions kept the number of released days alone."""
    monkeypatch.setattr(RunState, "write", lambda self: str(self.through).encode())
    flu = begun(tmp_path / "one", ledger)
    flu.append(DAYS[0], ANA)
    flu.release(DAYS[0])
    assert flu._begun(None).state == RunState(1, "")
    monkeypatch.undo()
    other = opened(tmp_path / "two", ledger)
    other.append(DAYS[1], ANA)
    other.append(DAYS[0], ANA)
    other.begin(other.daily(n=tc.count()).plan(epsilon=900))
    refused(lambda: other.release(DAYS[1]))
    refused(lambda: open_stream(tmp_path / "two", ledger=ledger).append(DAYS[2], ANA))
    again = open_stream(tmp_path / "one", ledger=ledger)
    again.append(DAYS[1], [*ANA, *BEN])
    assert counted(again, 1) == [1, 1]
    assert again._begun(None).state.marks  # bound by its next draw
    refused(lambda: other.release(DAYS[2]), "day-missing")


@pytest.mark.parametrize("kept", [str, Path, tc.Ledger.open], ids=["text", "path", "ledger"])
def test_a_temporary_folder_needs_a_temporary_ledger(tmp_path, kept):
    ledger = kept(tmp_path / "flu.ledger")
    assert "folder" in refused(lambda: opened(None, ledger), "bad-parameter").what
    if isinstance(ledger, tc.Ledger):
        assert not ledger.accounts()
        ledger.close()
    else:
        assert not (tmp_path / "flu.ledger").exists()
    with tc.Ledger.open(tmp_path / "flu.ledger") as own:  # a row or a day counts once, whatever the folder
        opened(None, own, level="event", unit=None, most_days=None, limits=None)


def test_temporary_folders_with_one_ledger_in_memory_count_nobody_twice(ledger):
    """Each appends the new day first, and then the old ones."""
    flu = begun(None, ledger)
    flu.append(DAYS[0], ANA)
    assert counted(flu, 0) == [1]
    again = begun(None, ledger)
    refused(lambda: again.append(DAYS[1], ANA), "day-missing")


def hosted(folder, ledger):
    made = hosted_stream(
        folder, name="flu", level="person", unit="pid", most_days=1, limits={"rows": 1}, start="2026-01-01",
        days=10, budget=tc.Budget(epsilon=1000),
    )  # fmt: skip
    from dataclasses import replace

    from tacit.core import open_account

    open_account(made.identity, tc.Budget(epsilon=1000), ledger)
    return replace(made, _ledger=ledger)


def test_a_hosted_stream_takes_its_days_again_and_goes_on(tmp_path, ledger):
    for day, people in zip(DAYS, ("ana\nben", "ana\neva", "ben\nuli"), strict=False):
        (tmp_path / f"{day}.csv").write_text(f"pid\n{people}\n")

    def found(day):
        return tmp_path / f"{day}.csv"

    first = hosted(tmp_path / "one", ledger)
    plan = first.daily(n=tc.count()).plan(epsilon=900)
    taken = take_days(first, DAYS[0], found)
    draw_days(first, plan, DAYS[0])
    again = hosted(tmp_path / "two", ledger)  # the folder was lost
    take_days(again, DAYS[1], found, taken)
    release = draw_days(again, again.daily(n=tc.count()).plan(epsilon=900), DAYS[1])
    assert [round(value) for value in release.content.daily["n"].value] == [2, 1]
    third = hosted(tmp_path / "three", ledger)
    (tmp_path / f"{DAYS[0]}.csv").write_text("pid\nuli\n")
    take_days(third, DAYS[2], found)  # nobody remembers the digests
    refused(lambda: draw_days(third, third.daily(n=tc.count()).plan(epsilon=900), DAYS[2]))


def search(place, seed):
    """Return on how many released days ana counts, who comes on most days.

    Each day, its rows come into the folder as it is, an older copy of it, or a new folder, in random order
    with the days that are missing there. If this folder is refused, the first one goes on.
    """
    chance, ledger = random.Random(seed), tc.Ledger.memory()
    first = begun(place / "0", ledger)
    for number, day in enumerate(DAYS[:5], 1):
        name = place / str(number)
        if chance.random() < 0.5:
            shutil.copytree(first._folder.place, name)
        rows = chance.choice([ANA, ANA, []])
        for folder in chance.sample([place / str(n) for n in range(1, number + 1)], 2 if number > 1 else 1):
            with contextlib.suppress(TacitError):
                flu = opened(folder, ledger)
                missing = [one for one in DAYS[:number] if not flu._folder.has(one)]
                for one in chance.sample(missing, len(missing)):
                    flu.append(one, ANA if one != day else rows)
                flu.begin(flu.daily(n=tc.count()).plan(epsilon=900))
                flu.release(day)
        if not first._folder.has(day):
            with contextlib.suppress(TacitError):
                first.append(day, rows)
                first.release(day)
    days = first.status().plans[0][1]
    return sum(counted(first, days - 1)) if days else 0


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(40), marks=pytest.mark.long)], ids=["3", "40"]
)
def test_no_life_of_folders_counts_a_person_twice(tmp_path, seeds):
    assert max(search(tmp_path / str(seed), seed) for seed in seeds) == 1


def test_the_search_finds_the_broken_copy(tmp_path, monkeypatch):
    """A quarter of the lives find it (3 of the first 12), so 40 miss it with a chance of 0.00001."""
    forgets_who_counted(monkeypatch)
    assert max(search(tmp_path / str(seed), seed) for seed in range(3)) > 1


@pytest.mark.parametrize(
    "person",
    [
        date(1950, 1, 31),
        datetime(1950, 1, 31, 8, 0, 0, 500_000),
        datetime(1950, 1, 31, 8, tzinfo=timezone(timedelta(hours=1))),
        pd.Timestamp("1950-01-31 08:00", tz="Europe/Berlin"),
        np.datetime64("1950-01-31"),
        b"7f3a",
        Decimal("1.50"),
        1e22,
        2**130,
        np.float32(0.1),
        np.bool_(True),
        7,
        7.0,
        "ana",
    ],
    ids=str,
)
@pytest.mark.parametrize("frame_first", [True, False])
def test_a_person_has_one_name_in_frames_and_dictionaries(tmp_path, ledger, person, frame_first):
    cells = np.array([person, None], dtype=object)[:1]
    days = [pd.DataFrame({"pid": pd.Series(cells, dtype=object)}), [{"pid": person}]]
    flu = begun(tmp_path, ledger)
    for at, rows in enumerate(days if frame_first else days[::-1]):
        flu.append(DAYS[at], rows)
    assert counted(flu, 1) == [1, 0]


def test_a_day_in_a_column_of_moments_is_the_day_of_a_dictionary(tmp_path, ledger):
    flu = begun(tmp_path, ledger)
    flu.append(DAYS[0], pd.DataFrame({"pid": pd.to_datetime(["1950-01-31"])}))
    flu.append(DAYS[1], [{"pid": date(1950, 1, 31)}])
    assert counted(flu, 1) == [1, 0]


def test_bytes_that_are_not_text_are_nobody(tmp_path, ledger):
    flu = begun(tmp_path, ledger)
    flu.append(DAYS[0], [{"pid": b"\xff"}, {"pid": "b'\\xff'"}])
    flu.append(DAYS[1], [])
    assert counted(flu, 1) == [1, 0]
