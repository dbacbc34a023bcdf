"""The algebra of privacy: costs, budgets, filters, conversions and calibration. No data, no noise."""
