"""The exam of engines, failures: after the charge, one opaque error that shows nothing of the data."""

from __future__ import annotations

import logging
import traceback
from unittest.mock import patch

import pyarrow as pa
import pytest

import tacit as tc
from support.engine_places import ENGINES

SECRET = "Katharina-8417"
#: A cast that raises on a text that is no number, in every engine; its message quotes the text.
CAST = {
    "duckdb": "CAST({} AS DOUBLE)",
    "postgres": "CAST({} AS double precision)",
    "spark": "CAST({} AS DOUBLE)",
}


@pytest.fixture(params=ENGINES)
def place(request, place_of):
    return place_of(request.param)


def chain(error: BaseException | None) -> str:
    """Return all that an error shows, of itself and of the errors behind it."""
    found = []
    while error is not None:
        found += [repr(error), str(error), *map(str, error.args), str(getattr(error, "__notes__", ""))]
        found += traceback.format_exception(error)
        error = error.__cause__ or error.__context__
    return "\n".join(found)


def test_a_failure_shows_no_value_and_costs_one_charge(place, capfd, caplog):
    """The broken twin of a dialect: one operator that raises on a value, as no operator may."""
    table = pa.table({"u": range(40), "t": [SECRET] * 40, "x": [1.0] * 40})
    source = place.keep({"t": table})["t"]
    budget = tc.Budget(epsilon=3)
    data = tc.protect(source, unit="u", types={"t": "text"}, budget=budget, engine=place.engine)
    plan = data.where("LENGTH(t) > 1").agg(n=tc.count()).plan(epsilon=1)
    dialect = type(data._engine.dialect)
    caplog.set_level(logging.DEBUG)
    capfd.readouterr()
    with (
        patch.object(dialect, "op_length", lambda _, x: CAST[place.name].format(x)),
        pytest.raises(tc.TacitError) as failed,
    ):
        plan.release()
    assert failed.value.code == "release-failed"
    written = capfd.readouterr()
    for where, text in {
        "the error": chain(failed.value),
        "standard output": written.out,
        "standard error": written.err,
        "the log": caplog.text,
    }.items():
        assert SECRET not in text, where
        assert "8417" not in text, where
    assert data.remaining.epsilon == 2  # charged once
    other = data.agg(n=tc.count()).plan(epsilon=1).release()  # the engine still answers
    assert other.value is not None
    assert data.remaining.epsilon == 1


def test_what_cannot_be_read_is_refused_before_the_charge(place):
    with pytest.raises(tc.TacitError) as refused:
        data = tc.protect("no_such_table_8417", unit="u", budget=tc.Budget(epsilon=1), engine=place.engine)
        data.agg(n=tc.count()).plan(epsilon=1).release()
    assert refused.value.code in {"unknown-table", "bad-parameter"}
