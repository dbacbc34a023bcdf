"""Mechanisms of training.

In reading order:

- ``_sampled_steps``: steps on random samples with independent noise, and shares of the noise of a secure sum
- ``_banded_steps``: steps whose later noise takes back a part of earlier noise
- ``_best_run``: the best of a random number of runs
"""
