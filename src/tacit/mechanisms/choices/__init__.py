"""Mechanisms whose answer is a choice.

In reading order:

- ``_selection``: the best candidate, or the k best, by their scores
- ``_quantile_choice``: the candidate at a quantile, or two that enclose it
- ``_key_selection``: the groups with enough units
- ``_thresholds``: the values above a noisy threshold, and the regions of a map that are split
"""
