-- Searches by race
SELECT race, COUNT(*) AS stops, COUNT(*) FILTER (WHERE personSearch = 'YES') AS searched FROM MplsStops GROUP BY race ORDER BY stops DESC;

-- Rate of searches by race
SELECT race, AVG(CASE WHEN personSearch = 'YES' THEN 1 ELSE 0 END) AS rate FROM MplsStops WHERE race IS NOT NULL GROUP BY race;

-- Stops by month
SELECT date_trunc('month', date) AS month, COUNT(*) AS n FROM MplsStops GROUP BY month ORDER BY month;

-- Stops by hour of the day
SELECT EXTRACT(hour FROM date) AS hour, COUNT(*) AS n FROM MplsStops GROUP BY hour ORDER BY hour;

-- Stops on the first of May
SELECT COUNT(*) AS n FROM MplsStops WHERE date::date = '2017-05-01';

-- Stops in summer
SELECT COUNT(*) AS n FROM MplsStops WHERE date >= '2017-06-01' AND date < '2017-09-01';

-- Stops by weekday
SELECT strftime(date, '%a') AS weekday, COUNT(*) AS n FROM MplsStops GROUP BY weekday;

-- Weekend against weekdays
SELECT CASE WHEN isodow(date) >= 6 THEN 'weekend' ELSE 'weekday' END AS part, COUNT(*) AS n FROM MplsStops GROUP BY part;

-- Neighborhoods with most stops
SELECT neighborhood, COUNT(*) AS n FROM MplsStops GROUP BY neighborhood ORDER BY n DESC LIMIT 10;

-- Stops in poor neighborhoods
SELECT COUNT(*) AS n FROM MplsStops s JOIN MplsDemo d ON s.neighborhood = d.neighborhood WHERE d.poverty > 0.06;

-- Stops by income of the neighborhood
SELECT CASE WHEN d.hhIncome < 40000 THEN 'low' WHEN d.hhIncome < 70000 THEN 'middle' ELSE 'high' END AS income, COUNT(*) AS n
FROM MplsStops s, MplsDemo d WHERE s.neighborhood = d.neighborhood GROUP BY income;

-- Neighborhoods poorer than the average
SELECT COUNT(*) AS n FROM MplsStops s JOIN MplsDemo d USING (neighborhood)
WHERE d.hhIncome < (SELECT AVG(hhIncome) FROM MplsDemo);

-- Precincts, all columns
SELECT policePrecinct, problem, COUNT(*) AS n FROM MplsStops GROUP BY ALL;

-- Totals by precinct, and totals by kind
SELECT policePrecinct, problem, COUNT(*) AS n FROM MplsStops GROUP BY GROUPING SETS ((policePrecinct), (problem), ());

-- Citations among traffic stops
SELECT citationIssued, COUNT(*) AS n FROM MplsStops WHERE problem = 'traffic' GROUP BY citationIssued;

-- Share of stops that end with a citation
SELECT SUM(CASE WHEN citationIssued = 'YES' THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS cited FROM MplsStops WHERE citationIssued IN ('YES', 'NO');

-- Where the stops are
SELECT AVG(lat) AS lat, AVG(long) AS long FROM MplsStops;

-- Middle latitude of each precinct
SELECT policePrecinct, MEDIAN(lat) AS lat FROM MplsStops GROUP BY policePrecinct;

-- Histogram of latitudes
-- truth: SELECT 1 + CAST(lat >= 44.91 AS INT) + CAST(lat >= 44.93 AS INT) + CAST(lat >= 44.95 AS INT) + CAST(lat >= 44.97 AS INT) + CAST(lat >= 44.99 AS INT) + CAST(lat >= 45.01 AS INT) + CAST(lat >= 45.03 AS INT) + CAST(lat >= 45.05 AS INT) AS band, COUNT(*) AS n FROM MplsStops GROUP BY band
SELECT WIDTH_BUCKET(lat, 44.89, 45.05, 8) AS band, COUNT(*) AS n FROM MplsStops GROUP BY band ORDER BY band;

-- Which races appear
-- truth: SELECT race, COUNT(*) AS units FROM MplsStops GROUP BY race
SELECT DISTINCT race FROM MplsStops;

-- Was the race guessed right?
SELECT COUNT(*) AS n FROM MplsStops WHERE preRace = race AND preRace <> 'Unknown';

-- Precincts with many searches of cars
SELECT policePrecinct, COUNT(*) AS n FROM MplsStops WHERE vehicleSearch = 'YES' GROUP BY policePrecinct HAVING COUNT(*) > 500;

-- Who was stopped at a place
-- refused
SELECT idNum, date, race FROM MplsStops WHERE neighborhood = 'Whittier' ORDER BY date DESC LIMIT 20;

-- A typing error in a table
-- refused
SELECT COUNT(*) FROM MplsStop WHERE race = 'Black';

-- Delete rows
-- refused
DELETE FROM MplsStops WHERE race IS NULL;
