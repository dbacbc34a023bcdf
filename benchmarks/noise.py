"""Exact noise against NumPy's floating-point noise (unsafe) and OpenDP's exact noise, in one run."""

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from peers import ask_peer, peer_python
from tacit import noise

SIZES = [10**6, 10**7]
SCALES = [1, 1000]
OPENDP_DRAWS = 100_000  # its rate does not depend on the number of draws
OPENDP = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
kind, scale, n = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
laplace = kind == "laplace"
make = dp.m.make_laplace if laplace else dp.m.make_gaussian
metric = dp.l1_distance(T=int) if laplace else dp.l2_distance(T=int)
draw = make(dp.vector_domain(dp.atom_domain(T=int)), metric, scale=scale)
one = make(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale)
zeros = [0] * n
draw(zeros[:1000])
best = one_best = 1e9
for _ in range(3):
    start = time.perf_counter(); draw(zeros); best = min(best, time.perf_counter() - start)
for _ in range(30):
    start = time.perf_counter()
    for _ in range(100):
        one(0)
    one_best = min(one_best, (time.perf_counter() - start) / 100)
print(json.dumps({"rate": n / best, "latency": one_best}))
"""
IMPORT = (
    "import resource; import {}; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
)


def best_of(work: Callable[..., object], *arguments: object, times: int = 5) -> float:
    """Return the shortest of several runs, after one to warm up."""
    work(*arguments)
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work(*arguments)
        found.append(time.perf_counter() - start)
    return min(found)


def latency(draw: Callable[..., object], *arguments: object) -> float:
    """Return seconds per scalar draw, the best of 100 short runs: a busy machine is not what is measured."""
    return best_of(lambda: [draw(*arguments) for _ in range(100)], times=100) / 100


def first_draw(draw: Callable[[int], object], scales: Iterator[int]) -> float:
    """Return the time of a draw at a scale never seen before, the median of 200."""
    found = []
    for _ in range(200):
        scale = next(scales)
        start = time.perf_counter()
        draw(scale)
        found.append(time.perf_counter() - start)
    return sorted(found)[100]


def import_cpu(module: str) -> float:
    """Return the CPU seconds that importing a module adds to a fresh interpreter; best of 15."""

    def once(name: str) -> float:
        command = [sys.executable, "-c", IMPORT.format(name)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return min(once(module) for _ in range(15)) - min(once("sys") for _ in range(15))


def rates() -> None:
    generator = np.random.default_rng()
    python = peer_python("opendp==0.16.0")
    kinds = {
        "laplace": (noise.discrete_laplace, generator.laplace, 0.5),
        "gaussian": (noise.discrete_gaussian, generator.normal, 0.25),
    }
    print("million draws per second; ratios of Tacit to each peer, and the floors to reach")
    names = ["Tacit", "NumPy", "OpenDP", "x NumPy"]
    print(f"{'law':10}{'scale':>6}{'draws':>12}{''.join(f'{name:>9}' for name in names)}{'x OpenDP':>10}")
    latencies, fresh = [], itertools.count(10**6)
    for kind, (ours, theirs, floor) in kinds.items():
        for scale in SCALES:
            peer = ask_peer(python, OPENDP, kind, scale, OPENDP_DRAWS)
            for size in SIZES:
                a = size / best_of(ours, scale, size)
                b = size / best_of(theirs, 0.0, scale, size)
                c = peer["rate"]
                met = "ok" if a / b >= floor and a / c >= 100 else "MISSED"
                print(
                    f"{kind:10}{scale:>6}{size:>12,}{a / 1e6:>9.1f}{b / 1e6:>9.1f}{c / 1e6:>9.3f}"
                    f"{a / b:>9.2f}{a / c:>10,.0f}  (floors {floor} and 100: {met})"
                )
            one, other = latency(ours, scale), latency(theirs, 0.0, scale)
            latencies.append((kind, scale, one, other, peer["latency"], first_draw(ours, fresh)))
    print("\nmicroseconds for one scalar draw (at most 20), and for the first at a new scale")
    print(f"{'law':10}{'scale':>6}{'Tacit':>9}{'NumPy':>9}{'OpenDP':>9}{'new scale':>11}")
    for kind, scale, *seconds in latencies:
        met = "ok" if seconds[0] < 20e-6 else "MISSED"
        one, other, peer_one, new = (second * 1e6 for second in seconds)
        print(f"{kind:10}{scale:>6}{one:>9.1f}{other:>9.1f}{peer_one:>9.1f}{new:>11.1f}  ({met})")


def others() -> None:
    generator = np.random.default_rng()
    scores = generator.integers(0, 1000, 10**6)
    scales = generator.uniform(1, 1000, 10**5)
    doubles = generator.normal(size=10**6)
    print("\nmilliseconds for the rest")
    for name, work in {
        "select, 10^6 candidates": lambda: noise.select(scores, scale=100),
        "select_top 100 of 10^6": lambda: noise.select_top(scores, 100, scale=100),
        "discrete_laplace, 10^5 different scales": lambda: noise.discrete_laplace(scales),
        "discrete_gaussian, 10^5 different scales": lambda: noise.discrete_gaussian(scales),
        "rounded_gaussian(1000), 10^6": lambda: noise.rounded_gaussian(1000, 10**6),
        "rounded_gaussian, 10^5 different scales": lambda: noise.rounded_gaussian(scales),
        "bernoulli(0.3), 10^6": lambda: noise.bernoulli(0.3, 10**6),
        "uniform_below(1000), 10^6": lambda: noise.uniform_below(1000, 10**6),
        "permutation(10^6)": lambda: noise.permutation(10**6),
        "quantise 10^6 doubles to 0.01": lambda: noise.quantise(doubles, 0.01),
    }.items():
        print(f"{name:44}{best_of(work, times=3) * 1e3:>9.1f}")


def imports() -> None:
    ours, theirs = import_cpu("tacit"), import_cpu("numpy")
    met = "ok" if ours <= 1.5 * theirs else "MISSED"
    print(f"\nCPU of `import tacit`: {ours * 1e3:.0f} ms, of `import numpy`: {theirs * 1e3:.0f} ms, ", end="")
    print(f"ratio {ours / theirs:.2f} (at most 1.5: {met})")


if __name__ == "__main__":
    rates()
    others()
    imports()
