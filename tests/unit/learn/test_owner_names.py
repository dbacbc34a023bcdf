"""The name of an owner depends on its cell alone, not on the type that other owners give to the column."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from tacit.learn import _examples
from tacit.learn._cells import cell_name
from tacit.learn._examples import unit_names, unit_rows
from tacit.learn.estimators._prepaid import unit_folds
from tacit.ledger import Ledger

COLUMNS = {
    "moments": pd.date_range("1950-01-01 08:30:00.25", periods=20).repeat(3),
    "moments with a zone": pd.date_range("1950-01-01", periods=20, tz="Europe/Berlin").repeat(3),
    "spans": pd.to_timedelta(np.arange(20), unit="h").repeat(3),
    "short floats": pd.Index(np.arange(20, dtype=np.float32) / 10).repeat(3),
    "truth values": pd.Index([True, False]).repeat(3),
}
STRANGERS = [
    "unknown",
    pd.Timestamp("2020-01-01", tz="UTC"),
    date(1900, 1, 1),
    pd.Timestamp("1900-01-01 00:00:00.000000001"),
    pd.Timedelta(1, "ns"),
    pd.NaT,
    None,
    1e300,
]


@pytest.fixture
def kept(monkeypatch):
    """Return for each column what is kept of it, and what its units and folds are, by a fixed secret."""
    monkeypatch.setattr(_examples, "ranking_secret", lambda: 5)
    ledger = Ledger.memory()

    def read(owners):
        owners = np.asarray(owners)
        rows = unit_rows(len(owners), owners, 1)
        named = dict(zip(unit_names([], owners, rows), rows[:, 0].tolist(), strict=True))
        return named, unit_folds(ledger, 5, np.zeros((len(owners), 1)), None, owners).tolist()

    return read


@pytest.mark.parametrize("stranger", STRANGERS, ids=repr)
@pytest.mark.parametrize("kind", COLUMNS)
def test_no_owner_changes_what_is_kept_of_others(kept, kind, stranger):
    own = pd.Series(COLUMNS[kind])
    named, folds = kept(own)
    everybody, all_folds = kept(pd.concat([own, pd.Series([stranger])], ignore_index=True))
    assert len(named) == own.nunique()
    assert {name: everybody.get(name) for name in named} == named
    assert all_folds[:-1] == folds
    listed, listed_folds = kept(pd.Series([*own, stranger]))
    assert {name: listed.get(name) for name in named} == named
    assert listed_folds[:-1] == folds


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_a_moment_and_a_span_have_one_name_in_every_unit(unit):
    moment, span = np.datetime64("2020-01-01", unit), np.timedelta64(2, "D").astype(f"timedelta64[{unit}]")
    zone = timezone(timedelta(hours=1))
    same = [date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), pd.Timestamp(moment)]
    same += [datetime(2020, 1, 1, 1, tzinfo=zone), pd.Timestamp("2020-01-01 01:00", tz=zone)]
    assert {cell_name(one) for one in [moment, *same]} == {b"2020-01-01 00:00:00"}
    assert len({cell_name(one) for one in [span, timedelta(days=2), pd.Timedelta(span)]}) == 1


def test_extreme_moments_and_spans_have_names_of_their_own():
    first = [
        datetime(1, 1, 1),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31),
    ]
    last = [timedelta.max, timedelta.min, np.timedelta64(1, "Y"), np.timedelta64(1, "M"), np.timedelta64(1)]
    assert len({cell_name(one) for one in [*first, *last, np.datetime64("NaT", "ns")]}) == 9
    assert cell_name(np.datetime64("NaT", "ns")) == cell_name(pd.NaT) == cell_name(np.timedelta64("NaT", "s"))
