-- Tests and people
SELECT COUNT(*) AS tests, COUNT(DISTINCT subject_id) AS people FROM covid_testing;

-- Tests by result
SELECT result, COUNT(*) AS n FROM covid_testing GROUP BY result;

-- Share of positive tests
SELECT AVG(CASE WHEN result = 'positive' THEN 1.0 ELSE 0.0 END) AS positivity FROM covid_testing;

-- Share of positive tests by gender, from two counts
SELECT gender, COUNT(*) FILTER (WHERE result = 'positive') * 1.0 / COUNT(*) AS positivity
FROM covid_testing GROUP BY gender;

-- Age of the tested
SELECT result, AVG(age) AS mean_age, STDDEV(age) AS sd_age FROM covid_testing GROUP BY result;

-- Tests by week of the pandemic
SELECT FLOOR(pan_day / 7) AS week, COUNT(*) AS n FROM covid_testing GROUP BY week ORDER BY week;

-- Age groups
SELECT CASE WHEN age < 1 THEN 'infant' WHEN age < 13 THEN 'child' WHEN age < 18 THEN 'teenager' ELSE 'adult' END AS age_group,
       COUNT(*) AS n, COUNT(*) FILTER (WHERE result = 'positive') AS positive
FROM covid_testing GROUP BY 1 ORDER BY 2 DESC;

-- Clinics with most tests
SELECT clinic_name, COUNT(*) AS n FROM covid_testing GROUP BY clinic_name ORDER BY n DESC LIMIT 5;

-- Turnaround by kind of patient
SELECT patient_class, AVG(rec_ver_tat) AS hours, COUNT(*) AS n FROM covid_testing GROUP BY patient_class;

-- Payors, with those who have none
SELECT COALESCE(payor_group, 'none') AS payor, COUNT(*) AS n FROM covid_testing GROUP BY payor ORDER BY n DESC;

-- People with more than one test
SELECT COUNT(*) AS retested FROM (SELECT subject_id, COUNT(*) AS n FROM covid_testing GROUP BY subject_id) WHERE n > 1;

-- People who were ever positive
SELECT COUNT(DISTINCT subject_id) AS people FROM covid_testing WHERE result = 'positive';

-- Tests of people who were ever positive
SELECT COUNT(*) AS n FROM covid_testing
WHERE subject_id IN (SELECT subject_id FROM covid_testing WHERE result = 'positive');

-- First test of each person
SELECT AVG(first_day) AS mean_day FROM (SELECT subject_id, MIN(pan_day) AS first_day FROM covid_testing GROUP BY subject_id);

-- Result by gender with totals
SELECT gender, result, COUNT(*) AS n FROM covid_testing GROUP BY CUBE (gender, result);

-- Cycle threshold of the positive
SELECT AVG(ct_result) AS ct, STDDEV_SAMP(ct_result) AS sd FROM covid_testing WHERE result = 'positive';

-- Total of a week
SELECT SUM(1) AS tests FROM covid_testing WHERE pan_day BETWEEN 50 AND 56;

-- Most frequent result
SELECT MODE(result) AS usual FROM covid_testing;

-- Quartiles of the age
-- truth: SELECT QUANTILE_CONT(age, 0.25) AS a, QUANTILE_CONT(age, 0.5) AS b, QUANTILE_CONT(age, 0.75) AS c FROM covid_testing
SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) AS quartiles FROM covid_testing;

-- Share of each result
SELECT result, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM covid_testing GROUP BY result;

-- Names of the tested
-- refused
SELECT fake_first_name, fake_last_name FROM covid_testing WHERE result = 'positive';

-- A typing error in a function
-- refused
SELECT AVERAGE(age) FROM covid_testing;

-- Number the tests of each person
-- refused
SELECT subject_id, ROW_NUMBER() OVER (PARTITION BY subject_id ORDER BY pan_day) AS nth FROM covid_testing;
