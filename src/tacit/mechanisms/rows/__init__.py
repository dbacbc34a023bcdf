"""Mechanisms that take rows, one per person.

In reading order:

- ``_input_rows``: what a row means, clipping before the noise, and truncation and folding after it
- ``_row_mechanism``: what the mechanisms of rows share, and samples of rows
- ``_aggregates``: counts, sums, means, variances and histograms
- ``_quantiles``: quantiles, and bounds for clipping where none are known
"""
