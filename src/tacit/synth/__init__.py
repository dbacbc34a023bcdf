"""Synthetic rows: invented rows that agree with measured tables. The tables are the release."""
