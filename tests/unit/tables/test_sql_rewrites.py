"""A refusal names what to write instead, and what it names works when it is pasted."""

# ruff: noqa: E501 - one question a line
from __future__ import annotations

import pytest

import tacit as tc
from tacit import TacitError


@pytest.fixture(scope="module")
def visits():
    codes = {"icd": ["A00", "B00"], "chapter": ["A", "B"]}
    import pyarrow as pa

    return tc.protect(
        {"visits": tc.tables.example_visits(), "people": pa.table({"patient_id": [1, 2], "sex": ["f", "m"]})},
        name="h",
        unit="patient_id",
        budget=tc.Budget(epsilon=10**6, delta=0.1),
        types={"age": "number", "hospital": "text", "admitted": "date", "icd": "text", "sex": "text"},
        bounds={"length_of_stay": (0, 30), "age": (0, 110)},
        keys={"hospital": tc.tables.EXAMPLE_HOSPITALS},
        public={"codes": (pa.table(codes), "icd")},
    )


ITEM, WHERE = "SELECT {} FROM visits", "SELECT COUNT(*) FROM visits WHERE {}"
REWRITES = [
    # (frame, what is refused in it, the frame for the fix where it is another)
    (ITEM, "*", "{}"),
    (ITEM, "age", "{}"),
    (ITEM, "APPROX_COUNT_DISTINCT(icd)", ITEM),
    (ITEM, "APPROX_QUANTILE(age, 0.5)", ITEM),
    (ITEM, "QUANTILE_CONT(age, [0.25, 0.5])", ITEM),
    (ITEM, "COUNT(DISTINCT icd, hospital)", ITEM),
    (ITEM, "SUM(DISTINCT age)", ITEM),
    (ITEM, "COUNT()", ITEM),
    (ITEM, "FIRST(hospital)", ITEM),
    (ITEM, "ANY_VALUE(hospital)", ITEM),
    (ITEM, "ARG_MAX(age, length_of_stay)", ITEM),
    (ITEM, "STRING_AGG(hospital, ',')", ITEM),
    (ITEM, "ARRAY_AGG(age)", ITEM),
    (ITEM, "BOOL_OR(age > 80)", ITEM),
    (ITEM, "BOOL_AND(age > 80)", ITEM),
    (ITEM, "SKEWNESS(age)", ITEM),
    (ITEM, "GEOMEAN(age + 1)", ITEM),
    (ITEM, "MAX(age) OVER (PARTITION BY hospital)", "SELECT AVG(age) FROM ({})"),
    (ITEM, "(SELECT AVG(age) FROM visits) + COUNT(*)", "{}"),
    ("SELECT hospital, {} FROM visits GROUP BY hospital", "ROW_NUMBER() OVER ()", None),
    ("SELECT hospital, {} FROM visits GROUP BY hospital", "FIRST_VALUE(COUNT(*)) OVER (ORDER BY hospital)", None),
    ("SELECT hospital, COUNT(*) / {} FROM visits GROUP BY hospital", "(SELECT COUNT(*) FROM visits)", None),
    (ITEM, "NTILE(4) OVER (ORDER BY age)", "SELECT hospital, {} FROM visits GROUP BY hospital"),
    (WHERE, "age > (SELECT AVG(age) FROM visits)", "{}"),
    (WHERE, "hospital IN (SELECT hospital FROM visits WHERE age > 90)", WHERE),
    (WHERE, "EXISTS (SELECT 1 FROM visits v WHERE v.age > 90)", WHERE),
    (WHERE, "REGEXP_MATCHES(hospital, '^A')", WHERE),
    (WHERE, "hospital SIMILAR TO 'A.*'", WHERE),
    (WHERE, "REGEXP_EXTRACT(hospital, '^...') = 'Aho'", "SELECT COUNT(*) FROM visits WHERE {} = 'Aho'"),
    (WHERE, "REGEXP_REPLACE(hospital, 'A', 'B') = 'B'", "SELECT COUNT(*) FROM visits WHERE {} = 'B'"),
    (WHERE, "TO_CHAR(admitted, 'YYYY') = '2024'", "SELECT COUNT(*) FROM visits WHERE {} = '2024'"),
    (WHERE, "admitted > CURRENT_DATE", "SELECT COUNT(*) FROM visits WHERE admitted > {}"),
    (WHERE, "admitted > NOW()", "SELECT COUNT(*) FROM visits WHERE admitted > {}"),
    (WHERE, "EPOCH(admitted) > 0", "SELECT COUNT(*) FROM visits WHERE {} > 0"),
    (WHERE, "TIME_BUCKET(INTERVAL 1 MONTH, admitted) = '2024-01-01'", "SELECT COUNT(*) FROM visits WHERE {} = '2024-01-01'"),
    (WHERE, "DECADE(admitted) = 202", "SELECT COUNT(*) FROM visits WHERE {} = 202"),
    (WHERE, "admitted > TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR", "SELECT COUNT(*) FROM visits WHERE admitted > TIMESTAMP '2024-01-01' + {}"),
    ("SELECT COUNT(*) FROM visits {}", "NATURAL JOIN people", None),
    ("SELECT COUNT(*) FROM visits {}", "CROSS JOIN people", None),
    ("SELECT COUNT(*) FROM visits {}", "SEMI JOIN people USING (patient_id)", None),
    ("SELECT COUNT(*) FROM visits {}", "RIGHT JOIN people USING (patient_id)", None),
    ("SELECT COUNT(*) FROM visits {}", "JOIN people ON visits.hospital = people.sex", None),
    ("SELECT COUNT(*) FROM visits {}", "JOIN codes ON visits.hospital = codes.chapter", "SELECT COUNT(*) FROM visits JOIN codes {}"),
    ("SELECT COUNT(*) {}", "FROM other.visits", None),
    ("SELECT COUNT(*) {}", "FROM patients.csv", None),
    ("SELECT COUNT(*) {}", "FROM 'patients.csv'", None),
    ("SELECT COUNT(*) {}", "FROM codes", None),
    ("SELECT hospital, COUNT(*) FROM visits GROUP BY 1 {}", "LIMIT 3 OFFSET 2", None),
    ("SELECT hospital, COUNT(*) FROM visits GROUP BY 1 {}", "QUALIFY COUNT(*) > 3", None),
    ("{}", "SELECT COUNT(*) FROM visits UNION SELECT 1", None),
    ("{}", "DELETE FROM visits", None),
    ("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits {})", "GROUP BY hospital", None),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "written", "then"), REWRITES, ids=[one[1][:50] for one in REWRITES])
def test_what_a_refusal_names_works_when_pasted(visits, frame, written, then):
    with pytest.raises(TacitError) as refused:
        visits.sql(frame.format(written)).plan(epsilon=1, delta=1e-6)
    assert refused.value.code in {"not-allowed", "unknown-table"}
    fixed = (then or frame).format(refused.value.fix)
    assert visits.sql(fixed).plan(epsilon=1, delta=1e-6).release().columns, fixed


def test_a_refusal_shows_string_agg_under_its_own_name(visits):
    with pytest.raises(tc.TacitError, match="STRING_AGG"):
        visits.sql("SELECT STRING_AGG(hospital, ',') FROM visits")
