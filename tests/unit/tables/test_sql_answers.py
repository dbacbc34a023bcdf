"""SQL that analysts write is answered, and with hardly any noise the answer is DuckDB's own."""

# ruff: noqa: E501 - one question a line
from __future__ import annotations

import datetime as dt
import math

import duckdb
import pyarrow as pa
import pytest

import tacit as tc

EPSILON = 10**9
DAYS = [
    dt.datetime(2013, 1, 1) + dt.timedelta(days=37 * i % 365, hours=i % 24, minutes=7 * i % 60)
    for i in range(240)
]
FLIGHTS = pa.table(
    {
        "tailnum": [f"N{i % 40:03}" for i in range(240)],
        "carrier": [["UA", "AA", "DL"][i // 5 % 3] for i in range(240)],
        "origin": [["JFK", "LGA", "EWR"][i % 3] for i in range(240)],
        "dest": [["BOS-1", "SFO-2", "bos-3", None][i % 4] for i in range(240)],
        "delay": [None if i % 11 == 0 else float(i * 7 % 90 - 20) for i in range(240)],
        "distance": [float(100 + i * 13 % 900) for i in range(240)],
        "cancelled": [i % 13 == 0 for i in range(240)],
        "time": pa.array(DAYS, pa.timestamp("us")),
    }
)
PLANES = pa.table(
    {
        "tailnum": [f"N{i:03}" for i in range(50)],
        "seats": [float(50 + i * 7 % 200) for i in range(50)],
        "maker": [["Boeing", "Airbus"][i % 2] for i in range(50)],
    }
)
AIRPORTS = pa.table(
    {
        "code": ["JFK", "LGA", "EWR"],
        "city": ["New York", "New York", "Newark"],
        "altitude": [13.0, 21.0, 18.0],
    }
)
TYPES = {
    "carrier": "text", "origin": "text", "dest": "text", "delay": "number", "distance": "number",
    "cancelled": "boolean", "time": "date", "maker": "text", "tailnum": "text", "city": "text",
    "altitude": "number", "code": "text", "seats": "number",
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return tc.protect(
        {"flights": FLIGHTS, "planes": PLANES},
        unit="tailnum",
        name="nyc",
        bounds={"delay": (-30, 90), "distance": (0, 1000), "seats": (0, 300)},
        keys={"carrier": ["AA", "DL", "UA"], "origin": ["EWR", "JFK", "LGA"], "maker": ["Airbus", "Boeing"]},
        types=TYPES,
        limits={"rows": 300, "pairs": 10**6},
        public={"airports": (AIRPORTS, "code")},
        budget=tc.Budget(epsilon=10**13, delta=0.9),
    )


@pytest.fixture(scope="module")
def truth():
    con = duckdb.connect()
    for name, table in {"flights": FLIGHTS, "planes": PLANES, "airports": AIRPORTS}.items():
        con.register(f"{name}_", table)
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
    return con


def lines_of(release):
    """Return keys and values of a release, line by line."""
    answer = release.content
    columns = [*answer.keys.values(), *(cells.value for cells in answer.columns.values())]
    return [tuple(column[i] for column in columns) for i in range(len(answer))]


def plain(value):
    """Return a value as both sides write it."""
    if isinstance(value, dt.datetime | dt.date):
        return str(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3)
    return a == b


def agree(found, expected):
    """Compare lines in any order."""

    def order(line):
        return [(v is None, str(type(v)), v if isinstance(v, str) else round(v or 0, 2)) for v in line]

    found = sorted((tuple(plain(v) for v in line) for line in found), key=order)
    expected = sorted((tuple(plain(v) for v in line) for line in expected), key=order)
    return len(found) == len(expected) and all(
        len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(found, expected, strict=True)
    )


ANSWERED = [
    # FILTER
    "SELECT COUNT(*) FILTER (WHERE delay > 30) AS late FROM flights",
    "SELECT carrier, COUNT(*) AS n, COUNT(*) FILTER (WHERE delay > 30) AS late FROM flights GROUP BY carrier",
    "SELECT SUM(distance) FILTER (WHERE origin = 'JFK') AS s, AVG(delay) FILTER (WHERE NOT cancelled) AS m FROM flights",
    "SELECT COUNT(delay) FILTER (WHERE origin IN ('JFK', 'LGA')) AS n FROM flights",
    "SELECT COUNT(DISTINCT dest) FILTER (WHERE distance > 500) AS n FROM flights",
    "SELECT COUNT(DISTINCT tailnum) FILTER (WHERE distance > 950) AS n FROM flights",
    "SELECT STDDEV(distance) FILTER (WHERE carrier = 'UA') AS s FROM flights",
    "SELECT AVG(n) AS m FROM (SELECT tailnum, COUNT(*) FILTER (WHERE delay > 0) AS n FROM flights GROUP BY tailnum)",
    "SELECT COUNT_IF(delay > 30) AS late FROM flights",
    # other names of aggregates
    "SELECT VAR_SAMP(distance) AS w, VARIANCE(distance) AS u FROM flights",
    "SELECT VAR_POP(distance) AS v, STDDEV_POP(distance) AS s FROM flights",
    "SELECT STDDEV_SAMP(distance) AS s, MEAN(distance) AS m FROM flights",
    # groups
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY ALL",
    "SELECT carrier, origin, COUNT(*) AS n FROM flights GROUP BY ALL ORDER BY ALL",
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY 1",
    "SELECT upper(maker) AS m, COUNT(*) AS n FROM planes GROUP BY maker",
    "SELECT origin AS o, COUNT(*) AS n FROM flights GROUP BY o",
    "SELECT cancelled, COUNT(*) AS n FROM flights WHERE distance > 300 GROUP BY cancelled",
    "SELECT delay > 30 AS late, COUNT(*) AS n FROM flights WHERE delay IS NOT NULL GROUP BY delay > 30",
    # parts of dates have public keys
    "SELECT dayname(time) AS d, COUNT(*) AS n FROM flights GROUP BY dayname(time)",
    "SELECT monthname(time) AS m, COUNT(*) AS n FROM flights GROUP BY 1",
    "SELECT isodow(time) AS d, COUNT(*) AS n FROM flights GROUP BY 1",
    "SELECT hour(time) AS h, COUNT(*) AS n FROM flights GROUP BY 1",
    "SELECT EXTRACT(month FROM time) AS m, AVG(distance) AS d FROM flights GROUP BY 1",
    "SELECT quarter(time) AS q, COUNT(*) AS n FROM flights GROUP BY q",
    "SELECT COUNT(*) AS n FROM flights WHERE strftime(time, '%Y-%m') = '2013-02'",
    "SELECT COUNT(*) AS n FROM flights WHERE strftime('%H', time) = '07'",
    "SELECT COUNT(*) AS n FROM flights WHERE date_part('month', time) = 2 AND dayofyear(time) > 40",
    "SELECT COUNT(*) AS n FROM flights WHERE week(time) = 7 OR EXTRACT(doy FROM time) = 3",
    "SELECT COUNT(*) AS n FROM flights WHERE time + INTERVAL 1 MONTH > '2013-06-01'",
    "SELECT COUNT(*) AS n FROM flights WHERE time >= TIMESTAMP '2013-06-01' - INTERVAL 2 WEEK",
    "SELECT AVG(LEAST(GREATEST(date_diff('day', time, '2014-01-01'), 0), 400)) AS d FROM flights",
    # text
    "SELECT COUNT(*) AS n FROM flights WHERE REPLACE(dest, '-', '') = 'BOS1'",
    "SELECT COUNT(*) AS n FROM flights WHERE CONCAT(dest, carrier, 1) = 'BOS-1UA1'",
    "SELECT COUNT(*) AS n FROM flights WHERE dest NOT LIKE 'BOS%'",
    "SELECT COUNT(*) AS n FROM flights WHERE dest ILIKE 'bos%' AND dest NOT ILIKE '%3'",
    "SELECT COUNT(*) AS n FROM flights WHERE RIGHT(dest, 1) = '2' OR contains(dest, '3') OR ends_with(dest, '1')",
    "SELECT COUNT(*) AS n FROM flights WHERE split_part(dest, '-', 2) = '1' AND strpos(dest, 'S') = 3",
    "SELECT COUNT(*) AS n FROM flights WHERE LTRIM(RTRIM(TRIM(LOWER(dest)))) = 'sfo-2' AND LENGTH(dest) = 5",
    "SELECT COUNT(*) AS n FROM flights WHERE SUBSTRING(dest, 1, 3) || '!' = 'SFO!'",
    "SELECT COUNT(*) AS n FROM flights WHERE CAST(CAST(distance AS INTEGER) AS VARCHAR) LIKE '1%'",
    "SELECT COUNT(*) AS n FROM flights WHERE dest IS DISTINCT FROM 'BOS-1'",
    # numbers
    "SELECT AVG(FLOOR(distance / 100)) AS f, AVG(CEIL(delay)) AS c, SUM(ROUND(distance, -2)) AS r FROM flights",
    "SELECT AVG(LN(distance + 1)) AS l, AVG(SQRT(distance)) AS q, AVG(LOG10(distance + 1)) AS t FROM flights",
    "SELECT SUM(ABS(delay)) AS a, SUM(SIGN(delay)) AS s, SUM(POWER(delay, 3)) AS p FROM flights",
    "SELECT AVG(distance % 7) AS m, SUM(TRUNC(distance / 7)) AS d FROM flights",
    "SELECT AVG(NULLIF(delay, 0)) AS a, AVG(COALESCE(delay, 0)) AS b, AVG(IFNULL(delay, 0)) AS c FROM flights",
    "SELECT SUM(IF(delay > 0, 1, 0)) AS a, SUM(CASE WHEN cancelled THEN distance END) AS b FROM flights",
    "SELECT AVG(CAST(cancelled AS INT)) AS a, SUM(cancelled::INT) AS b FROM flights",
    "SELECT COUNT(*) AS n FROM flights WHERE delay BETWEEN -5 AND 30 AND CAST(distance AS INTEGER) // 100 IN (2, 3)",
    # after the noise
    "SELECT POWER(AVG(distance), 2) AS p, ROUND(AVG(delay), 1) AS r, SQRT(COUNT(*)) AS s FROM flights",
    "SELECT CAST(COUNT(*) AS DOUBLE) AS c, LN(COUNT(*)) AS l, FLOOR(AVG(delay)) AS f FROM flights",
    "SELECT CAST(AVG(delay) AS INTEGER) AS c, COUNT(*)::DOUBLE / 7 AS d FROM flights",
    "SELECT 'all' AS who, COUNT(*) AS n, 1 AS one FROM flights",
    "SELECT carrier, CASE WHEN COUNT(*) > 70 THEN 'large' ELSE 'small' END AS size FROM flights GROUP BY carrier",
    "SELECT carrier, COALESCE(AVG(delay), 0) AS a, NULLIF(COUNT(*), 0) AS n FROM flights GROUP BY carrier",
    "SELECT GREATEST(COUNT(*), 10) AS g, LEAST(COUNT(*), 10) AS l, ABS(AVG(delay)) AS a FROM flights",
    "SELECT carrier || '!' AS c, COUNT(*) AS n FROM flights GROUP BY carrier",
    "SELECT SUM(delay) / NULLIF(COUNT(delay), 0) AS m FROM flights",
    "SELECT carrier, COUNT(*) FILTER (WHERE delay > 30) * 100.0 / COUNT(*) AS pct FROM flights GROUP BY carrier",
    # over the lines
    "SELECT carrier, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY carrier",
    "SELECT carrier, ROUND(100 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS share FROM flights GROUP BY carrier",
    "SELECT carrier, origin, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY carrier) AS s FROM flights GROUP BY carrier, origin",
    "SELECT carrier, SUM(distance) / SUM(SUM(distance)) OVER () AS share FROM flights GROUP BY carrier",
    "SELECT carrier, COUNT(*) - AVG(COUNT(*)) OVER () AS above FROM flights GROUP BY carrier",
    "SELECT carrier, MAX(COUNT(*)) OVER () AS most, MIN(COUNT(*)) OVER () AS least FROM flights GROUP BY carrier",
    "SELECT month(time) AS m, SUM(COUNT(*)) OVER (ORDER BY month(time)) AS so_far FROM flights GROUP BY 1",
    "SELECT origin, RANK() OVER (ORDER BY SUM(distance) DESC) AS place FROM flights GROUP BY origin",
    "SELECT month(time) AS m, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY month(time)) AS change FROM flights GROUP BY 1",
    "SELECT month(time) AS m, LEAD(COUNT(*)) OVER (ORDER BY month(time)) AS later FROM flights GROUP BY 1",
    "SELECT month(time) AS m, LAG(COUNT(*)) OVER (ORDER BY month(time) DESC) AS later FROM flights GROUP BY 1",
    "SELECT carrier, COUNT(*) AS n, n / 10 AS tenth FROM flights GROUP BY carrier",
    "SELECT COUNT(*), COUNT(1), COUNT(delay), COUNT(delay) FROM flights",
    "SELECT SUM(delay > 15) AS late, SUM(cancelled) AS c FROM flights",
    "SELECT AVG(n) AS a FROM (SELECT tailnum, SUM(cancelled) AS n FROM flights GROUP BY tailnum)",
    "SELECT date_part('month', time) AS m, COUNT(*) AS n FROM flights GROUP BY m",
    # LIMIT
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY n DESC FETCH FIRST 1 ROWS ONLY",
    # subqueries
    "SELECT COUNT(*) AS n FROM flights WHERE tailnum IN (SELECT tailnum FROM planes WHERE seats > 100)",
    "SELECT COUNT(*) AS n FROM flights WHERE tailnum NOT IN (SELECT tailnum FROM planes WHERE seats > 100)",
    "SELECT COUNT(*) AS n FROM flights WHERE tailnum IN (SELECT tailnum FROM planes WHERE seats > 100) OR delay > 50",
    "SELECT origin, COUNT(*) AS n FROM flights WHERE tailnum IN (SELECT tailnum FROM flights GROUP BY tailnum HAVING MAX(delay) > 60) GROUP BY origin",
    "SELECT AVG(seats) AS s FROM planes WHERE tailnum IN (SELECT DISTINCT tailnum FROM flights WHERE cancelled)",
    "SELECT COUNT(*) AS n FROM planes p WHERE EXISTS (SELECT 1 FROM flights f WHERE f.tailnum = p.tailnum AND f.delay > 60)",
    "SELECT COUNT(*) AS n FROM planes p WHERE NOT EXISTS (SELECT * FROM flights f WHERE f.tailnum = p.tailnum)",
    "WITH old AS (SELECT tailnum FROM planes WHERE seats < 80) SELECT COUNT(*) AS n FROM flights WHERE tailnum IN (SELECT tailnum FROM old)",
    "SELECT COUNT(*) AS n FROM flights WHERE origin IN (SELECT code FROM airports WHERE city = 'New York')",
    "SELECT COUNT(*) AS n FROM flights WHERE distance > 20 * (SELECT MAX(altitude) FROM airports)",
    "SELECT COUNT(*) AS n FROM flights WHERE distance > (SELECT AVG(altitude) FROM airports) + (SELECT COUNT(*) FROM airports)",
    "SELECT AVG(distance - (SELECT MIN(altitude) FROM airports)) AS d FROM flights",
    # joins
    "SELECT COUNT(*) AS n FROM flights f, planes p WHERE f.tailnum = p.tailnum AND p.maker = 'Boeing' AND f.delay > 0",
    "SELECT maker, AVG(delay) AS d FROM flights, planes WHERE flights.tailnum = planes.tailnum GROUP BY maker",
    "SELECT COUNT(*) AS n FROM flights f CROSS JOIN planes p WHERE f.tailnum = p.tailnum",
    "SELECT COUNT(*) AS n FROM flights f JOIN airports a ON f.origin = a.code JOIN airports b ON f.origin = b.code WHERE a.altitude + b.altitude > 30",
    "SELECT COUNT(*) AS n FROM flights f, airports a WHERE f.origin = a.code AND a.city = 'Newark'",
]  # fmt: skip


@pytest.mark.parametrize("sql", ANSWERED)
def test_the_answer_is_that_of_duckdb(data, truth, sql):
    release = data.sql(sql).plan(epsilon=EPSILON).release()
    found, expected = lines_of(release), truth.execute(sql).fetchall()
    assert agree(found, expected), (found, expected)
