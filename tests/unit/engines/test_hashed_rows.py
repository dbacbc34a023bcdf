"""The text by which every engine orders a unit's rows: different values give different texts."""

from itertools import product

import duckdb

from tacit.engines._values import MACROS
from tacit.engines.duckdb._dialect import PORTABLE_DUCKDB
from tacit.engines.sql._dialect import hashed_part

HOSTILE = ["", "-", "|", "|.", "|,", "|-", "||", ".", ",", "a", "a|,b", "a|,", "|,a", "|.|,", None]


def test_rows_that_differ_have_different_texts():
    rows = list(product(HOSTILE, repeat=3))
    with duckdb.connect() as con:
        con.execute(MACROS)
        con.execute("CREATE MACRO tacit_key() AS 7::UBIGINT")
        con.execute("CREATE TABLE t (tacit_u VARCHAR, a VARCHAR, b VARCHAR)")
        con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        order = PORTABLE_DUCKDB.ranked([("a", "text"), ("b", "text")])
        [(different,)] = con.execute(f"SELECT count(DISTINCT {order}) FROM t").fetchall()
    assert different == len(rows)


def test_a_text_is_computed_once():
    assert hashed_part("dear(x)", "text").count("dear(x)") == 1
    assert hashed_part("dear(x)", "float").count("dear(x)") == 1
