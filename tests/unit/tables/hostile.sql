# One statement a line: the expected outcome, a bar, the statement. `answered` means: a plan is made and released safely.
# files and functions that read
not-allowed | SELECT COUNT(*) FROM read_csv('/etc/passwd')
not-allowed | SELECT COUNT(*) FROM read_csv_auto('/etc/passwd')
not-allowed | SELECT COUNT(*) FROM read_parquet('*.parquet')
not-allowed | SELECT COUNT(*) FROM read_json('x.json')
not-allowed | SELECT COUNT(*) FROM read_text('/etc/passwd')
not-allowed | SELECT COUNT(*) FROM read_blob('/etc/passwd')
unknown-table | SELECT COUNT(*) FROM '/etc/passwd'
unknown-table | SELECT COUNT(*) FROM "/etc/passwd"
unknown-table | SELECT COUNT(*) FROM 'https://example.org/x.parquet'
not-allowed | SELECT COUNT(*) FROM glob('/*')
not-allowed | SELECT COUNT(*) FROM duckdb_settings()
not-allowed | SELECT COUNT(*) FROM duckdb_tables()
unknown-table | SELECT COUNT(*) FROM duckdb_columns
not-allowed | SELECT COUNT(*) FROM information_schema.tables
not-allowed | SELECT COUNT(*) FROM pragma_table_info('visits')
not-allowed | SELECT COUNT(*) FROM range(1000000000)
not-allowed | SELECT COUNT(*) FROM generate_series(1, 10)
not-allowed | SELECT COUNT(*) FROM unnest([1, 2, 3])
not-allowed | SELECT COUNT(*) FROM (VALUES (1), (2)) t(a)
not-allowed | SELECT COUNT(*) FROM sqlite_scan('x.db', 't')
not-allowed | SELECT COUNT(*) FROM postgres_query('db', 'SELECT 1')
not-allowed | SELECT COUNT(*) FROM query('SELECT * FROM visits')
not-allowed | SELECT COUNT(*) FROM query_table('visits')
not-allowed | SELECT getenv('HOME'), COUNT(*) FROM visits
not-allowed | SELECT current_setting('memory_limit'), COUNT(*) FROM visits
not-allowed | SELECT version(), COUNT(*) FROM visits
not-allowed | SELECT COUNT(*) FROM other.visits
not-allowed | SELECT COUNT(*) FROM main.visits
unknown-table | SELECT COUNT(*) FROM nowhere
unknown-table | SELECT COUNT(*) FROM codes
unknown-table | SELECT COUNT(*) FROM "visits limited"
unknown-table | SELECT COUNT(*) FROM tacit_keys
# statements that are not questions
not-allowed | DROP TABLE visits
not-allowed | DELETE FROM visits
not-allowed | UPDATE visits SET x = 0
not-allowed | INSERT INTO visits VALUES (1)
not-allowed | CREATE TABLE t AS SELECT * FROM visits
not-allowed | CREATE VIEW v AS SELECT * FROM visits
not-allowed | CREATE MACRO f(x) AS x
not-allowed | ALTER TABLE visits ADD COLUMN z INT
not-allowed | COPY visits TO 'out.csv'
bad-sql | EXPORT DATABASE 'x'
not-allowed | ATTACH 'x.duckdb' AS x
not-allowed | DETACH x
not-allowed | INSTALL httpfs
not-allowed | LOAD httpfs
not-allowed | PRAGMA database_list
not-allowed | PRAGMA enable_profiling
not-allowed | SET memory_limit = '1TB'
not-allowed | RESET ALL
not-allowed | EXPLAIN SELECT COUNT(*) FROM visits
not-allowed | EXPLAIN ANALYZE SELECT COUNT(*) FROM visits
not-allowed | DESCRIBE visits
not-allowed | SUMMARIZE visits
not-allowed | SHOW TABLES
not-allowed | CALL pragma_version()
not-allowed | BEGIN TRANSACTION
not-allowed | COMMIT
not-allowed | CHECKPOINT
not-allowed | VACUUM
not-allowed | SELECT COUNT(*) FROM visits; DROP TABLE visits
not-allowed | SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits
not-allowed | VALUES (1)
not-allowed | FROM visits
bad-sql | SELECT COUNT(*) FROM
bad-sql | SELECT COUNT(* FROM visits
not-allowed | SELECT
not-allowed | 
bad-sql | SELEC COUNT(*) FROM visits
# rows and un-noised values
not-allowed | SELECT * FROM visits
not-allowed | SELECT x FROM visits
not-allowed | SELECT pid, x FROM visits LIMIT 1
answered | SELECT DISTINCT h FROM visits
not-allowed | SELECT COUNT(*), * FROM visits
not-allowed | SELECT x, COUNT(*) FROM visits
not-allowed | SELECT h, x, COUNT(*) FROM visits GROUP BY h
not-allowed | SELECT 1
not-allowed | SELECT ANY_VALUE(x) FROM visits
not-allowed | SELECT FIRST(x) FROM visits
not-allowed | SELECT LAST(x) FROM visits
not-allowed | SELECT ARG_MAX(h, x) FROM visits
keys-missing | SELECT MODE(y) FROM visits
answered | SELECT MODE(h) FROM visits
not-allowed | SELECT MODE(DISTINCT y) FROM visits
keys-missing | SELECT MODE(d) FROM visits
not-allowed | SELECT MOST_COMMON(h) FROM visits
not-allowed | SELECT MOST_COMMON(h, y) FROM visits
bad-parameter | SELECT MOST_COMMON(h, 1000000) FROM visits
not-allowed | SELECT LIST(x) FROM visits
not-allowed | SELECT ARRAY_AGG(x) FROM visits
not-allowed | SELECT STRING_AGG(h, ',') FROM visits
not-allowed | SELECT HISTOGRAM(x) FROM visits
not-allowed | SELECT HISTOGRAM(x, y, 3) FROM visits
not-allowed | SELECT HISTOGRAM() FROM visits
bad-parameter | SELECT HISTOGRAM(x, 3, 1) FROM visits
answered | SELECT HISTOGRAM(x, 0, 1, 3) FROM visits
not-allowed | SELECT APPROX_COUNT_DISTINCT(x) FROM visits
not-allowed | SELECT APPROX_QUANTILE(x, 0.5) FROM visits
not-allowed | SELECT BIT_XOR(y) FROM visits
not-allowed | SELECT BOOL_OR(x > 1) FROM visits
not-allowed | SELECT PRODUCT(x) FROM visits
missing-bounds | SELECT CORR(x, y) FROM visits
answered | SELECT CORR(x, LEAST(GREATEST(y, 0), 5)) FROM visits
missing-bounds | SELECT COVAR_POP(x / y, x) FROM visits WHERE 1 = 0
bad-sql | SELECT CORR(x) FROM visits
not-allowed | SELECT CORR(x, SUM(y)) FROM visits
not-allowed | SELECT REGR_COUNT(x, y) FROM visits
missing-bounds | SELECT REGR_SLOPE(x, y) FROM visits
not-allowed | SELECT ENTROPY(x) FROM visits
not-allowed | SELECT MAX(x, 3) FROM visits
answered | SELECT VAR_POP(x) FROM visits
not-allowed | SELECT SUM(DISTINCT x) FROM visits
not-allowed | SELECT AVG(DISTINCT x) FROM visits
not-allowed | SELECT COUNT(DISTINCT x, y) FROM visits
answered | SELECT COUNT(*) FILTER (WHERE x > 1) FROM visits
not-allowed | SELECT COUNT(*) FILTER (WHERE x > (SELECT AVG(x) FROM visits)) FROM visits
bad-expression | SELECT COUNT(*) FILTER (WHERE x) FROM visits
not-allowed | SELECT COUNT(*) FILTER (WHERE COUNT(*) > 1) FROM visits
not-allowed | SELECT SUM(SUM(x)) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM visits
not-allowed | SELECT SUM(x + COUNT(*)) OVER () FROM visits
not-allowed | SELECT AVG(n) FROM (SELECT pid, SUM(COUNT(*)) OVER () AS n FROM visits GROUP BY pid)
not-allowed | SELECT SUM(x) OVER (PARTITION BY h) FROM visits
not-allowed | SELECT ROW_NUMBER() OVER (), COUNT(*) FROM visits
not-allowed | SELECT COUNT(*) FROM visits QUALIFY ROW_NUMBER() OVER () = 1
not-allowed | SELECT LAG(x) OVER (ORDER BY d) FROM visits
not-allowed | SELECT COUNT(*) FROM visits WINDOW w AS (ORDER BY x)
answered | SELECT COUNT(*) FROM visits TABLESAMPLE 10%
not-allowed | SELECT COUNT(*) FROM visits TABLESAMPLE 10% (bernoulli, 377)
not-allowed | SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10 PERCENT) REPEATABLE (377)
not-allowed | SELECT COUNT(*) FROM (SELECT * FROM visits TABLESAMPLE 10%)
not-allowed | SELECT COUNT(*) FROM visits TABLESAMPLE 10 ROWS
not-allowed | SELECT COUNT(*) FROM visits USING SAMPLE 10
not-allowed | SELECT COUNT(*) FROM visits OFFSET 1
answered | SELECT h, COUNT(*) FROM visits GROUP BY ROLLUP (h)
not-allowed | SELECT h, COUNT(DISTINCT x) FROM visits GROUP BY ROLLUP (h)
not-allowed | SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY ROLLUP (pid))
answered | SELECT h, COUNT(*) FROM visits GROUP BY CUBE (h)
answered | SELECT h, COUNT(*) FROM visits GROUP BY GROUPING SETS ((h), ())
not-allowed | SELECT WIDTH_BUCKET(x, 0, y, 3), COUNT(*) FROM visits GROUP BY 1
bad-parameter | SELECT WIDTH_BUCKET(x, 0, 1, 100000), COUNT(*) FROM visits GROUP BY 1
answered | SELECT WIDTH_BUCKET(x, 0, 1, 10), COUNT(*) FROM visits GROUP BY 1
answered | SELECT h, COUNT(*) FROM visits GROUP BY ALL
not-allowed | SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits
not-allowed | SELECT COUNT(*) FROM visits EXCEPT SELECT 1
not-allowed | SELECT COUNT(*) FROM visits INTERSECT SELECT 1
answered | SELECT DISTINCT COUNT(*) FROM visits
not-allowed | SELECT DISTINCT ON (h) h FROM visits
not-allowed | SELECT DISTINCT COUNT(*) FROM visits GROUP BY h
not-allowed | SELECT COUNT(*) INTO x FROM visits
not-allowed | SELECT COUNT(*) FROM visits FOR UPDATE
not-allowed | SELECT COUNT(COLUMNS(*)) FROM visits
not-allowed | SELECT COUNT(visits.*) FROM visits
unknown-column | SELECT AVG(x), rowid FROM visits
unknown-column | SELECT AVG(rowid) FROM visits
unknown-column | SELECT COUNT(*) FROM visits WHERE rowid = 1
unknown-column | SELECT COUNT(*) FROM visits WHERE tacit_u = 1
unknown-column | SELECT SUM(secret) FROM visits
# randomness, time, session
not-allowed | SELECT random() FROM visits
not-allowed | SELECT COUNT(*) FROM visits WHERE random() < 0.5
not-allowed | SELECT setseed(0.5), COUNT(*) FROM visits
not-allowed | SELECT COUNT(*) FROM visits WHERE d < now()
not-allowed | SELECT COUNT(*) FROM visits WHERE d < CURRENT_DATE
not-allowed | SELECT COUNT(*) FROM visits WHERE d < CURRENT_TIMESTAMP
not-allowed | SELECT uuid(), COUNT(*) FROM visits
not-allowed | SELECT nextval('s'), COUNT(*) FROM visits
not-allowed | SELECT COUNT(*) FROM visits WHERE hash(pid) % 2 = 0
not-allowed | SELECT COUNT(*) FROM visits WHERE md5(h) = 'x'
# operators that could fail or blow up
not-allowed | SELECT COUNT(*) FROM visits WHERE error('x')
not-allowed | SELECT COUNT(*) FROM visits WHERE regexp_matches(h, '(a+)+$')
not-allowed | SELECT COUNT(*) FROM visits WHERE h ~ '(a+)+$'
not-allowed | SELECT COUNT(*) FROM visits WHERE repeat(h, 1000000000) = 'x'
not-allowed | SELECT COUNT(*) FROM visits WHERE x << 70 > 0
answered | SELECT COUNT(*) FROM visits WHERE x // 0 = 1
bad-expression | SELECT COUNT(*) FROM visits WHERE POWER(x, y) > 1
answered | SELECT COUNT(*) FROM visits WHERE POWER(x, -0.5) > 1
not-allowed | SELECT COUNT(*) FROM visits WHERE FACTORIAL(y) > 1
not-allowed | SELECT COUNT(*) FROM visits WHERE CHR(y) = 'a'
not-allowed | SELECT COUNT(*) FROM visits WHERE [1, 2][y] = 1
not-allowed | SELECT COUNT(*) FROM visits WHERE {'a': y}.a = 1
not-allowed | SELECT COUNT(*) FROM visits WHERE list_contains([1], y)
not-allowed | SELECT COUNT(*) FROM visits WHERE CAST(h AS JSON) IS NULL
not-allowed | SELECT COUNT(*) FROM visits WHERE CAST(h AS INTEGER[]) IS NULL
not-allowed | SELECT COUNT(*) FROM visits WHERE CAST(h AS STRUCT(a INT)) IS NULL
not-allowed | SELECT COUNT(*) FROM visits WHERE CAST(h AS UUID) IS NULL
not-allowed | SELECT COUNT(*) FROM visits WHERE CAST(h AS BLOB) IS NULL
not-allowed | SELECT COUNT(*) FROM visits WHERE STRPTIME(h, '%Y') IS NULL
answered | SELECT COUNT(*) FROM visits WHERE d + INTERVAL '1' YEAR > d
bad-expression | SELECT COUNT(*) FROM visits WHERE d + INTERVAL '999999999' YEAR > d
not-allowed | SELECT COUNT(*) FROM visits WHERE d + INTERVAL '1' HOUR > d
not-allowed | SELECT COUNT(*) FROM visits WHERE d + INTERVAL (y) DAY > d
not-allowed | SELECT COUNT(*) FROM visits WHERE h LIKE 'a!%' ESCAPE '!'
not-allowed | SELECT COUNT(*) FROM visits WHERE h SIMILAR TO 'a+'
bad-expression | SELECT COUNT(*) FROM visits WHERE h LIKE h
bad-expression | SELECT COUNT(*) FROM visits WHERE x = 'abc'
bad-expression | SELECT COUNT(*) FROM visits WHERE d > 5
bad-expression | SELECT COUNT(*) FROM visits WHERE x
bad-expression | SELECT COUNT(*) FROM visits WHERE d > '2024-02-30'
bad-expression | SELECT COUNT(*) FROM visits WHERE ROUND(x, y) = 1
bad-expression | SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('century', d) = d
not-allowed | SELECT COUNT(*) FROM visits WHERE EXTRACT(epoch FROM d) > 1
not-allowed | SELECT COUNT(*) FROM visits WHERE EXTRACT(julian FROM d) > 1
# subqueries that mix units
not-allowed | SELECT COUNT(*) FROM visits WHERE x > (SELECT AVG(x) FROM visits)
answered | SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM visits WHERE x > 5)
not-allowed | SELECT COUNT(*) FROM visits WHERE h IN (SELECT h FROM visits WHERE x > 5)
not-allowed | SELECT COUNT(*) FROM visits WHERE pid IN (SELECT y FROM visits)
not-allowed | SELECT COUNT(*) FROM visits WHERE pid + 1 IN (SELECT pid FROM visits)
not-allowed | SELECT COUNT(*) FROM visits WHERE y IN (SELECT pid FROM visits)
unknown-table | SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM people p WHERE p.age > visits.x)
not-allowed | SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM people LIMIT 1)
answered | SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = visits.pid)
not-allowed | SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits v WHERE v.h = visits.h)
not-allowed | SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits v WHERE v.x > visits.x)
not-allowed | SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits v)
not-allowed | SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits WHERE visits.pid = visits.pid)
not-allowed | SELECT COUNT(*) FROM visits v WHERE x = (SELECT MAX(x) FROM visits w WHERE w.pid = v.pid)
not-allowed | SELECT (SELECT COUNT(*) FROM visits)
not-allowed | SELECT COUNT(*) + (SELECT COUNT(*) FROM visits) FROM visits
not-allowed | SELECT AVG(n) FROM (SELECT h, COUNT(*) AS n FROM visits GROUP BY h)
not-allowed | SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits)
not-allowed | SELECT COUNT(*) FROM (SELECT h FROM visits ORDER BY x LIMIT 1)
not-allowed | SELECT COUNT(*) FROM (SELECT x FROM visits LIMIT 5)
not-allowed | SELECT COUNT(*) FROM (SELECT DISTINCT h FROM visits)
not-allowed | SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY x) AS r FROM visits) WHERE r = 1
not-allowed | SELECT COUNT(*) FROM (SELECT x AS pid, COUNT(*) AS n FROM visits GROUP BY x)
not-allowed | WITH t AS (SELECT y AS pid, x FROM visits) SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid)
not-allowed | WITH t AS (SELECT h AS pid, x FROM visits) SELECT COUNT(*) FROM t JOIN people ON t.pid = people.pid
not-allowed | WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT COUNT(*) FROM t
not-allowed | WITH t AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM t
not-allowed | WITH t(a) AS (SELECT x FROM visits) SELECT COUNT(*) FROM t
unknown-table | WITH t AS (SELECT COUNT(*) AS n FROM u GROUP BY pid) SELECT AVG(n) FROM t
not-allowed | SELECT COUNT(*) FROM visits, LATERAL (SELECT 1)
not-allowed | PIVOT visits ON h USING COUNT(*)
not-allowed | UNPIVOT visits ON x, y INTO NAME n VALUE v
# joins that mix units
not-allowed | SELECT COUNT(*) FROM visits a, visits b
not-allowed | SELECT COUNT(*) FROM visits a CROSS JOIN visits b
not-allowed | SELECT COUNT(*) FROM visits a JOIN visits b ON a.h = b.h
not-allowed | SELECT COUNT(*) FROM visits a JOIN visits b ON a.x < b.x
not-allowed | SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid OR a.h = b.h
not-allowed | SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid AND a.h = b.h
not-allowed | SELECT COUNT(*) FROM visits a JOIN visits b ON TRUE
not-allowed | SELECT COUNT(*) FROM visits a FULL JOIN visits b ON a.pid = b.pid
not-allowed | SELECT COUNT(*) FROM visits a RIGHT JOIN visits b ON a.pid = b.pid
not-allowed | SELECT COUNT(*) FROM visits NATURAL JOIN people
not-allowed | SELECT COUNT(*) FROM visits SEMI JOIN people USING (pid)
not-allowed | SELECT COUNT(*) FROM visits ANTI JOIN people USING (pid)
not-allowed | SELECT COUNT(*) FROM visits ASOF JOIN people USING (pid)
not-allowed | SELECT COUNT(*) FROM visits POSITIONAL JOIN people
not-allowed | SELECT COUNT(*) FROM visits JOIN people USING (pid, x)
not-allowed | SELECT COUNT(*) FROM visits JOIN codes ON visits.h = codes.chapter
not-allowed | SELECT COUNT(*) FROM visits JOIN people ON visits.x = people.pid
not-allowed | SELECT COUNT(*) FROM visits JOIN visits ON visits.pid = visits.pid
# missing facts
missing-bounds | SELECT SUM(z) FROM (SELECT x / y AS z FROM visits)
answered | SELECT AVG(EXP(x)) FROM visits
missing-bounds | SELECT AVG(EXP(y)) FROM visits
missing-bounds | SELECT MEDIAN(LENGTH(h)) FROM visits
missing-bounds | SELECT SUM(x) FROM (SELECT x / y AS x FROM visits)
missing-bounds | SELECT SUM(x) FROM (SELECT LN(x) AS x FROM visits)
unknown-kind | SELECT COUNT(*) FROM visits WHERE free = other
# answered: hostile values meet total operators
answered | SELECT COUNT(*) FROM visits WHERE x / 0 > 1
answered | SELECT COUNT(*) FROM visits WHERE CAST(h AS INTEGER) = 1
answered | SELECT COUNT(*) FROM visits WHERE CAST(h AS DATE) > '2024-01-01'
answered | SELECT COUNT(*) FROM visits WHERE LN(x) > 0 OR SQRT(x) < 2
answered | SELECT COUNT(*) FROM visits WHERE y % 0 = 0
answered | SELECT COUNT(*) FROM visits WHERE x * 1e308 * 1e308 > 0
answered | SELECT COUNT(*) FROM visits WHERE EXP(x * 1000) > 1
answered | SELECT COUNT(*) FROM visits WHERE pid = 1
answered | SELECT COUNT(*) FROM visits WHERE FALSE
answered | SELECT COUNT(*) FROM visits WHERE NULL
answered | SELECT COUNT(*) FROM visits WHERE h = ''' OR 1=1 --'
answered | SELECT COUNT(*) FROM visits -- a comment
answered | SELECT COUNT(*) FROM visits WHERE h IN ('A', 'B') AND NOT (x IS NULL)
answered | SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid
answered | SELECT COUNT(*) FROM visits LEFT JOIN people USING (pid) WHERE people.age IS NULL
answered | SELECT codes.chapter, COUNT(*) FROM visits JOIN codes ON visits.h = codes.code GROUP BY codes.chapter
answered | SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)
answered | SELECT COUNT(*) FROM (SELECT pid AS who, MAX(x) AS m FROM visits GROUP BY pid HAVING COUNT(*) > 1) t WHERE m > 2
answered | SELECT AVG(n) FROM (SELECT q, COUNT(*) AS n FROM (SELECT pid AS q FROM visits) t GROUP BY q)
answered | SELECT COUNT(*) FROM (SELECT DISTINCT pid, h FROM visits)
answered | SELECT h, COUNT(DISTINCT pid) AS n FROM visits GROUP BY h ORDER BY n DESC, h LIMIT 2
answered | SELECT h, SUM(x) / COUNT(x) AS m FROM visits GROUP BY h HAVING SUM(x) > 0
answered | SELECT pid, COUNT(*) FROM visits GROUP BY pid
answered | SELECT SUM(LEAST(GREATEST(x / y, 0), 5)) FROM visits
answered | SELECT SUM(CASE WHEN x > 1 THEN 1 ELSE 0 END) FROM visits
answered | SELECT MIN(x), MAX(x), MEDIAN(x), STDDEV(x), VARIANCE(x) FROM visits
answered | SELECT QUANTILE_CONT(x, 0.25) FROM visits
answered | SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x) FROM visits
answered | SELECT DATE_TRUNC('month', d) AS m, COUNT(*) FROM visits GROUP BY m
answered | SELECT EXTRACT(year FROM d + INTERVAL 7 DAY) AS year, COUNT(*) FROM visits GROUP BY 1 ORDER BY 2
answered | SELECT UPPER(h) AS hh, COUNT(*) FROM visits GROUP BY 1
