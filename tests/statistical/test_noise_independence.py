"""Draws of processes, threads and pickled copies are independent: never equal, and uncorrelated."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from tacit import noise

SIGNIFICANCE = 1e-9
WORKERS = 8


def work(_):
    """2000 draws that never collide by chance (below 1e-9 over all workers), and 200,000 to correlate."""
    return noise.discrete_laplace(2**58, 2000), noise.discrete_gaussian(1, 200_000)


def copied(_):
    return pickle.loads(pickle.dumps(work))(_)


def by_forks():
    context = multiprocessing.get_context("fork")
    noise.discrete_laplace(2**58)  # the parent has a key, a stock and a table before it forks
    noise.discrete_laplace(2**58, 2000)
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        # one task per worker: each waits until all have begun
        return list(pool.map(work, range(WORKERS), chunksize=1))


def by_threads():
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, range(WORKERS)))


def by_pickles():
    return [copied(i) for i in range(WORKERS)]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("way", [by_forks, by_threads, by_pickles])
def test_eight_workers_are_independent(way):
    found = way()
    distinct = np.concatenate([big for big, _ in found])
    assert np.unique(distinct).size == WORKERS * 2000
    clipped = [np.clip(small, -2, 2) + 2 for _, small in found]
    for i in range(WORKERS):
        for j in range(i):
            table = np.bincount(clipped[i] * 5 + clipped[j], minlength=25).reshape(5, 5)
            assert stats.chi2_contingency(table).pvalue > SIGNIFICANCE / 28
