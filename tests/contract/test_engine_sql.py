"""The emitted SQL of each dialect, compared with stored texts: a change of one of them is seen in review.

After a change on purpose, write the texts anew with ``TACIT_UPDATE_SNAPSHOTS=1`` (see CONTRIBUTING) and read
the difference.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tacit as tc
from support.asking import HUGE
from tacit.engines.sql._dialect import Dialect
from tacit.engines.sql._relations import SqlWriter
from tacit.engines.sql._statements import statements
from tacit.tables.planning._pricing import lower

FOLDER = Path(__file__).parent / "snapshots"
#: Every dialect, and where its instance is.
DIALECTS = {
    "duckdb": ("tacit.engines.duckdb._dialect", "DUCKDB"),
    "postgres": ("tacit.engines.postgres._dialect", "POSTGRES"),
    "spark": ("tacit.engines.spark._dialect", "SPARK"),
}
TYPES = {
    "visits": {"u": "whole", "h": "text", "x": "float", "y": "whole", "d": "moment", "ok": "boolean"},
    "people": {"u": "whole", "age": "whole", "w": "text"},
    "codes": {"code": "text", "chapter": "text"},
}
_ARROW = {
    "whole": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "moment": pa.timestamp("us"),
}
EMPTY = {
    name: pa.table({c: pa.array([], _ARROW[kind]) for c, kind in columns.items()})
    for name, columns in TYPES.items()
}


def dataset(**limits: Any) -> tc.Dataset:
    """Declare a dataset without rows: the text is a function of public facts."""
    return tc.protect(
        {"visits": EMPTY["visits"], "people": EMPTY["people"]},
        unit="u",
        name="d",
        bounds={"x": (0, 30), "age": (0, 100)},
        keys={"h": ["A", "B"], "chapter": ["x"]},
        types={"d": "date", "y": "number", "ok": "boolean", "w": "text", "code": "text"},
        public={"codes": (EMPTY["codes"], "code")},
        limits=limits or {"rows": 3},
        budget=HUGE,
    )


def plans() -> dict[str, Any]:
    """A small set of plans that together use every part of the writer."""
    rows, groups = dataset(rows=3), dataset(rows=None, groups=2, per_group=2, joined=4)
    both = dataset(rows=3, groups=2, per_group=2, joined=4)
    return {
        "count all": rows.agg(n=tc.count(), u=tc.count_units()),
        "sum of a bounded column by public keys": rows.group_by("h").agg(s=tc.sum("x"), m=tc.mean("x")),
        "private keys under a limit of groups": groups.group_by("y").agg(n=tc.count(), s=tc.sum("x")),
        "distinct values under all limits": both.group_by("h").agg(k=tc.count_distinct("y")),
        "a histogram and a median": both.group_by("h").agg(b=tc.histogram("x", [0, 1, 5, 30]), q=tc.median("x")),  # noqa: E501
        "variance and a slope": both.agg(v=tc.variance("x"), b=tc.slope("x", "y", bounds=((0, 30), (0, 9)))),
        "units' own sums": rows.per_unit(s=tc.sum("x"), n=tc.count()).agg(m=tc.mean("s", bounds=(0, 90))),
        "a join of two protected tables": both["visits"].join(both["people"], how="left").group_by("w", keys=["u"]).agg(n=tc.count()),  # noqa: E501
        "a public table": rows["visits"].join("codes", "h").group_by("chapter").agg(n=tc.count()),
        "texts and dates": rows.where("UPPER(h) LIKE 'A\\%' AND d + INTERVAL 7 DAY > '2024-06-01'").agg(n=tc.count()),  # noqa: E501
        "arithmetic": rows.where("x / y > 1 OR ROUND(x, 1) = 2.5 OR x % y = 0").with_columns(z="x * y - 1").agg(s=tc.sum("z", bounds=(-9, 9))),  # noqa: E501
        "readings": rows.where("CAST(h AS DOUBLE) > 1 OR CAST(x AS VARCHAR) = '1' OR CAST(h AS DATE) > '2024-01-01' OR ok").agg(n=tc.count()),  # noqa: E501
        "a choice": rows.agg(top=tc.most_common("h", 2, ["A", "B", "it's \\"]), best=tc.best([1, 5], lambda c: tc.when(tc.col("x") >= c, c, -2))),  # noqa: E501
        "a sample": rows.sample(0.25).agg(n=tc.count()),
        "missing groups": rows.group_by("y", keys=[1, 2, None]).agg(n=tc.count()),
    }  # fmt: skip


def regressions() -> dict[str, Any]:
    """Plans of several columns together: products of parts, and sums of products."""
    rows = dataset(rows=1)
    bounds = {"y": (0, 9), "x": (0, 30)}
    return {
        "products of parts": rows.regress("x", on=["y", "h"], bounds=bounds).plan(epsilon=1),
        "sums of products": rows.with_columns(z="x * y")
        .regress("x", on=["y", "z"], bounds={**bounds, "z": (0, 99)})
        .plan(rho=1),
        "survival cells": rows.survival(time="x", event="ok", bins=[0, 5, 30], by="h").plan(epsilon=1),
    }


def emitted(dialect: Dialect) -> str:
    """Write all plans in a dialect, as one file."""
    writer, parts = SqlWriter(dialect, TYPES if dialect.name != "duckdb" else {}), []
    for title, answer in plans().items():
        steps, _ = lower(answer.question, by_row=False)
        made = statements(writer, answer.question, tuple(dict.fromkeys(s.statistic for s in steps)))
        parts += [f"-- {title}", *(f"{one.sql};" for one in made), ""]
    for title, question in regressions().items():
        task = question._members[0].task.subject
        made = statements(writer, task.asked, task.statistics)
        parts += [f"-- {title}", *(f"{one.sql};" for one in made), ""]
    return "\n".join(parts)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_emitted_text_is_the_stored_one(name):
    module, instance = DIALECTS[name]
    text, stored = emitted(getattr(import_module(module), instance)), FOLDER / f"{name}.sql"
    if os.environ.get("TACIT_UPDATE_SNAPSHOTS"):
        stored.write_text(text)
    assert text == stored.read_text(), "the SQL has changed; CONTRIBUTING says how to store it anew"


def test_no_dialect_writes_what_another_engine_misreads():
    """PostgreSQL takes SEMI and ANTI for aliases, so that limits would keep the wrong units."""
    for name in DIALECTS.keys() - {"duckdb"}:
        text = (FOLDER / f"{name}.sql").read_text().upper()
        assert "QUALIFY" not in text
        if name == "postgres":
            assert " ANTI JOIN" not in text
            assert " SEMI JOIN" not in text


def test_a_missing_operator_is_noticed_when_the_module_is_imported():
    class Half(Dialect):
        name = "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_an_empty_format_of_dates_is_refused_before_the_charge():
    """DuckDB fails on it when the statement runs, after the charge."""
    data = dataset()
    for asked in (
        lambda: data.where(tc.col("d").apply("strftime", "") == "").agg(n=tc.count()),
        lambda: data.where("strftime(d, '') = ''").agg(n=tc.count()),
        lambda: data.sql("SELECT count(*) AS n FROM visits WHERE strftime(d, '') = ''"),
    ):
        with pytest.raises(tc.TacitError, match="it is empty") as refused:
            asked().plan(epsilon=1).release()
        assert refused.value.code == "bad-expression"
    assert data.remaining.epsilon == HUGE.epsilon
