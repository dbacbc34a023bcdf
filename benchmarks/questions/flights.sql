-- How many flights were there?
SELECT COUNT(*) FROM flights;

-- How many planes flew?
SELECT COUNT(DISTINCT tailnum) AS planes FROM flights;

-- Which airlines fly most?
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC;

-- Delay by airport
SELECT origin, AVG(dep_delay) AS avg_delay, COUNT(*) AS flights FROM flights GROUP BY origin;

-- Miles by month
SELECT month, SUM(distance) AS miles FROM flights GROUP BY 1 ORDER BY 1;

-- Airlines by their names
SELECT a.name, COUNT(*) AS n, AVG(f.arr_delay) AS arrival
FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name;

-- The ten busiest destinations
SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC LIMIT 10;

-- The five busiest destinations, as SQL Server writes it
-- truth: SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC
SELECT TOP 5 dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC;

-- Median delay by airport
SELECT origin, MEDIAN(dep_delay) AS med FROM flights GROUP BY origin;

-- The worst tenth of the arrivals
SELECT QUANTILE_CONT(arr_delay, 0.9) AS p90 FROM flights;

-- Two percentiles, as the standard writes them
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY air_time) AS p50,
       PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY air_time) AS p95 FROM flights;

-- Short, medium and long haul
SELECT CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'medium' ELSE 'long' END AS haul,
       COUNT(*) AS n, AVG(air_time) AS minutes
FROM flights GROUP BY haul;

-- Share of each airport
SELECT origin, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY origin;

-- Do late departures arrive late?
SELECT CORR(dep_delay, arr_delay) AS r FROM flights;

-- Minutes per mile
SELECT REGR_SLOPE(air_time, distance) AS minutes_per_mile, REGR_INTERCEPT(air_time, distance) AS fixed
FROM flights;

-- Spread of the delays
SELECT origin, STDDEV(arr_delay) AS spread FROM flights GROUP BY origin;

-- Airports and half-years with totals
SELECT origin, CASE WHEN month <= 6 THEN 'first half' ELSE 'second half' END AS half, COUNT(*) AS n
FROM flights GROUP BY ROLLUP (origin, half);

-- Large airlines only
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > 10000 ORDER BY n DESC;

-- Share of late flights by month
SELECT month, AVG(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS late FROM flights GROUP BY month ORDER BY month;

-- Flights by month of the calendar
SELECT date_trunc('month', time_hour) AS m, COUNT(*) AS n FROM flights GROUP BY m ORDER BY m;

-- Flights by weekday
SELECT dayname(time_hour) AS weekday, COUNT(*) AS n FROM flights GROUP BY weekday;

-- Flights per plane
SELECT AVG(n) AS per_plane FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum);

-- Planes with more than 100 flights
SELECT COUNT(*) AS busy FROM (SELECT tailnum FROM flights GROUP BY tailnum HAVING COUNT(*) > 100);

-- Makers of the planes
SELECT p.manufacturer, COUNT(*) AS n FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum
GROUP BY p.manufacturer ORDER BY n DESC;

-- Cancelled flights
SELECT SUM(CASE WHEN dep_time IS NULL THEN 1 ELSE 0 END) AS cancelled, COUNT(*) AS n FROM flights;

-- Average speed in the air
SELECT SUM(distance) / (SUM(air_time) / 60.0) AS mph FROM flights;

-- The first rows
-- refused
SELECT * FROM flights LIMIT 10;

-- A typing error in a column
-- refused
SELECT carier, COUNT(*) AS n FROM flights GROUP BY carier;

-- One row per plane
-- refused
SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum ORDER BY n DESC;
