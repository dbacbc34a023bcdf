"""Surveys: polls without a trusted collector; each respondent randomizes the answer on their own device."""
