"""Mechanisms that add noise to numbers.

In reading order:

- ``_lattice_noise``: what noise on the multiples of a grid has in common
- ``_grid_noise``: Laplace and Gaussian noise for real numbers, on a public grid
- ``_integer_noise``: discrete Laplace, discrete Gaussian and rounded Gaussian noise for whole numbers
- ``_linear_noise``: the law of a weighted sum of independent noises
- ``_moments``: counts, means and variances from noisy parts, with their confidence sets
- ``_measurements``: noise on many measurements of one column or tree, and the law of every sum of them
- ``_cross_tables``: noise on the residuals of many cross tables, and tables that are chosen privately
- ``_stream_noise``: noise on the days of a stream
- ``_ladders``: noise on counts in graphs, as wide as the graph needs
"""
