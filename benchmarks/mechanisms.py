"""Releasing a million-cell histogram and picking from a million candidates, against two peers, in one run.

OpenDP adds exact noise, diffprivlib floating-point noise. All get the same counts and the same epsilon.
"""

import time

import numpy as np

import tacit as tc
from peers import ask_peer, peer_python

CELLS = 1_000_000
EPSILON = 0.5
LISTED = 100_000

OPENDP = """
import json, sys, time
import numpy as np
import opendp.prelude as dp
dp.enable_features("contrib")
n, epsilon = int(sys.argv[1]), float(sys.argv[2])
counts = np.random.default_rng(0).poisson(30, n).astype(np.int64)
noisy = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=1 / epsilon)
scores = [float(x) for x in counts]
pick = dp.m.make_noisy_max(
    dp.vector_domain(dp.atom_domain(T=float, nan=False)),
    dp.linf_distance(T=float, monotonic=True),
    dp.max_divergence(),
    scale=1 / epsilon,
)
rows = counts.tolist()
def best(work, value):
    found = []
    for _ in range(2):
        start = time.perf_counter(); work(value); found.append(time.perf_counter() - start)
    return min(found)
print(json.dumps({"histogram": best(noisy, rows), "pick": best(pick, scores)}))
"""

DIFFPRIVLIB = """
import json, sys, time
import numpy as np
from diffprivlib.mechanisms import Exponential, Geometric
n, epsilon = int(sys.argv[1]), float(sys.argv[2])
counts = np.random.default_rng(0).poisson(30, n).astype(np.int64)
part = 20_000  # one cell at a time is its only way; measured on a part and scaled
geometric = Geometric(epsilon=epsilon, sensitivity=1)
start = time.perf_counter()
[geometric.randomise(int(x)) for x in counts[:part]]
histogram = (time.perf_counter() - start) * n / part
start = time.perf_counter()
Exponential(epsilon=epsilon, sensitivity=1, utility=counts.tolist(), monotonic=True).randomise()
print(json.dumps({"histogram": histogram, "pick": time.perf_counter() - start}))
"""


def best_of(work, *, times: int = 5) -> float:
    work()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def ours() -> dict[str, float]:
    counts = np.random.default_rng(0).poisson(30, CELLS).astype(np.int64)
    histogram = tc.mechanisms.DiscreteLaplace(epsilon=EPSILON, sensitivity=1)
    pick = tc.mechanisms.Exponential(EPSILON, sensitivity=1, monotone=True)
    top = tc.mechanisms.TopK(EPSILON, k=10, sensitivity=1, monotone=True)
    noisy_max = tc.mechanisms.NoisyMax(EPSILON, sensitivity=1, monotone=True, grid=1)
    flip = tc.mechanisms.PermuteAndFlip(EPSILON, sensitivity=1, monotone=True)
    return {
        "histogram": best_of(lambda: histogram.release(counts)),
        "pick": best_of(lambda: pick.release(counts)),
        "pick, permute-and-flip": best_of(lambda: flip.release(counts)),
        "pick, noisy max": best_of(lambda: noisy_max.release(counts)),
        "top 10, one-shot": best_of(lambda: top.release(counts)),
    }


def inputs() -> None:
    """Time what is read before the noise: one number, and lists whose entries may have any types."""
    laplace = tc.mechanisms.Laplace(epsilon=1, sensitivity=0.5)
    whole = np.random.default_rng(0).integers(0, 1000, LISTED).tolist()
    floats = (np.random.default_rng(0).normal(size=LISTED) * 100).tolist()
    lists = {
        "ints": whole,
        "floats": floats,
        "ints and floats": [n if k % 2 else x for k, (n, x) in enumerate(zip(whole, floats, strict=True))],
        "floats beyond 2^54 grid steps": [x * 512 for x in floats],
        "ints beyond 64 bits": [n + 2**70 for n in whole],
    }
    one = best_of(lambda: [laplace.release(3.7) for _ in range(100)], times=50) / 100
    print(f"\nLaplace, one float: {one * 1e6:.1f} microseconds; milliseconds for a list of {LISTED:,}")
    for name, values in lists.items():
        print(f"{name:40}{best_of(lambda values=values: laplace.release(values)) * 1e3:>9.1f}")


def main() -> None:
    opendp = ask_peer(peer_python("opendp==0.16.0", "numpy"), OPENDP, CELLS, EPSILON)
    diffprivlib = ask_peer(peer_python("diffprivlib==0.6.6", "scikit-learn<1.6"), DIFFPRIVLIB, CELLS, EPSILON)
    tacit = ours()
    print(f"{CELLS:,} cells or candidates, epsilon {EPSILON}; seconds, and how many times Tacit's time")
    print(f"{'work':26}{'Tacit':>10}{'OpenDP 0.16':>22}{'diffprivlib 0.6.6':>24}")
    for work, seconds in tacit.items():
        row = f"{work:26}{seconds:10.4f}"
        for peer, width in ((opendp, 22), (diffprivlib, 24)):
            told = f"{peer[work]:.3f} ({peer[work] / seconds:,.0f} x)" if work in peer else ""
            row += f"{told:>{width}}"
        print(row)
    inputs()
    audited = tc.mechanisms.Laplace(epsilon=1, sensitivity=1)
    start = time.perf_counter()
    found = tc.audit.audit(audited, samples=1_000_000)
    spent = time.perf_counter() - start
    proven = f"epsilon >= {found.epsilon_lower:.3f} in {spent:.1f} s"
    print(f"\naudit of Laplace, epsilon 1, 1,000,000 samples: {proven}")


if __name__ == "__main__":
    main()
