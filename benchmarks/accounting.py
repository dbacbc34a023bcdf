"""Epsilon at delta: Tacit against dp-accounting, prv-accountant and Opacus, on the same work in one run.

Each figure is the CPU time of one fresh reading in a warm process (Tacit empties its caches before each). CPU
time and not wall time, so that a busy machine does not decide; threads of a library count in full. Tacit and
peers are treated alike: the best of five readings, or of as many as fit into one second. Peers have at most
ten seconds per case (calibration: a minute), in environments of their own, at their defaults.
Values are upper values where the library states one; "width" is Tacit's certified upper over its lower value,
less one.
"""

import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable

from peers import ask_peer, peer_python
from tacit.accounting import Budget, Cost, calibrate

DELTA = 1e-5
GRID = list(itertools.product((0.001, 0.01, 0.1), (0.6, 1.0, 2.0), (10**2, 10**3, 10**4, 10**5)))
SMALL = list(itertools.product((1e-4, 1e-5, 1e-6), (0.6, 1.0), (10**3, 10**5)))
#: Sums of (kind, parameters, times), read at delta 1e-6.
SUMS: dict[str, list[tuple[str, list[float], int]]] = {
    "mixed": [
        ("laplace", [0.1], 50), ("gaussian", [10.0], 50), ("response", [0.2], 20),
        ("discrete gaussian", [8.0], 30),
    ],
    "mixed training and queries": [
        ("sgd", [0.01, 1.0], 1000), ("laplace", [0.1], 20), ("gaussian", [20.0], 10),
    ],
    "mixed training of two kinds": [("sgd", [0.01, 1.0], 500), ("sgd", [0.001, 0.8], 5000)],
    "mixed tables": [
        ("discrete laplace", [10.0], 40), ("discrete laplace", [7.0], 30), ("discrete gaussian", [5.0], 10),
    ],
    "mixed small samples": [
        ("sgd", [1e-4, 0.8], 10_000), ("sgd", [1e-5, 0.7], 10_000), ("gaussian", [30.0], 1),
    ],
}  # fmt: skip
CASES: dict[str, list] = {
    **{f"DP-SGD q={q} sigma={s} steps={k}": ["sgd", q, s, k] for q, s, k in GRID},
    **{
        f"Laplace {e} x {k}": ["laplace", e, k]
        for e, k in itertools.product((0.1, 0.5, 1.0), (10, 100, 1000))
    },
    **{f"Gaussian sigma=5 x {k}": ["gaussian", 5.0, k] for k in (10, 100, 1000)},
    **{f"DP-SGD q={q:.0e} sigma={s} steps={k}": ["sgd", q, s, k] for q, s, k in SMALL},
    **{name: ["mixed", name] for name in SUMS},
    **{f"shuffled n={n} x {k}": ["shuffled", 1.0, n, k] for n, k in ((1000, 1), (1000, 10), (10**6, 100))},
    "shuffled, 5 categories, n=1000 x 10": ["shuffled categories", 1.0, 5, 1000, 10],
    "sampled Laplace q=0.001 x 1000": ["sampled laplace", 0.001, 1.0, 1000],
    "nested Laplace (5 under one draw, q=0.1) x 100": ["nested laplace", 0.1, 0.5, 5, 100],
    "nested DP-SGD (5 of q=0.1 in a sample of 0.1) x 100": ["nested sgd", 0.1, 1.0, 5, 100],
    "exponential 0.1 x 100": ["exponential", 0.1, 100],
    "group of 3 in DP-SGD q=0.01 sigma=1 steps=100": ["group", 0.01, 1.0, 3, 100],
    "calibrate q=0.01 steps=1000 epsilon=2": ["calibrate", 0.01, 1000, 2.0],
}

COMMON = """
LIMIT = 10
import json, signal, sys, time, math, warnings
warnings.simplefilter("ignore")
(cases, sums), delta, found = json.loads(sys.argv[1]), float(sys.argv[2]), {}
signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
def run(name, work):
    value, times = math.nan, []
    try:
        while len(times) < 5 and sum(times) < 1:
            signal.setitimer(signal.ITIMER_REAL, 60 if name.startswith('calibrate') else LIMIT)
            start = time.process_time()
            value = float(work())
            times.append(time.process_time() - start)
    except Exception as error:
        value = math.nan
    signal.setitimer(signal.ITIMER_REAL, 0)
    found[name] = [value, min(times, default=math.nan)]
"""
DP_ACCOUNTING = (
    COMMON
    + """
import dp_accounting as d
from dp_accounting.pld import pld_privacy_accountant, privacy_loss_distribution as p
from dp_accounting.rdp import rdp_privacy_accountant
kind = sys.argv[3]
fresh = pld_privacy_accountant.PLDAccountant if kind == "pld" else rdp_privacy_accountant.RdpAccountant
def sgd(q, s, k):
    return d.SelfComposedDpEvent(d.PoissonSampledDpEvent(q, d.GaussianDpEvent(s)), k)
def read(event):
    return fresh().compose(event).get_epsilon(delta)
def gaussian(s, q=1.0):
    return p.from_gaussian_mechanism(s, sampling_prob=q, use_connect_dots=True)
LAWS = {
    "laplace": lambda e: p.from_laplace_mechanism(1 / e),
    "gaussian": gaussian,
    "sgd": lambda q, s: gaussian(s, q),
    "response": lambda e: p.from_randomized_response(2 / (1 + math.exp(e)), 2),
    "discrete gaussian": p.from_discrete_gaussian_mechanism,
    "discrete laplace": lambda b: p.from_discrete_laplace_mechanism(1 / b),
}
def mixed(name):
    if kind != "pld":
        raise NotImplementedError
    total = None
    for what, numbers, times in sums[name]:
        part = LAWS[what](*numbers).self_compose(times)
        total = part if total is None else total.compose(part)
    return total.get_epsilon_for_delta(1e-6)
def group(q, s, m, k):
    if kind != "pld":
        raise NotImplementedError
    shares = [math.comb(m, j) * q**j * (1 - q) ** (m - j) for j in range(m + 1)]
    law = p.from_mixture_gaussian_mechanism(s, list(range(m + 1)), shares)
    return law.self_compose(k).get_epsilon_for_delta(delta)
def clones(e, n, k):
    # The clones' pair of Feldman, McMillan and Talwar, written out as two probability mass functions.
    if kind != "pld" or n > 2000:
        raise NotImplementedError
    r, truth = math.exp(-e), 1 / (1 + math.exp(-e))
    def log_binomial(n, x, p):
        return (math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1)
                + x * math.log(p) + (n - x) * math.log1p(-p))
    middle, spread = (n - 1) * r, math.sqrt(n * r)
    lower, upper = {}, {}
    for c in range(max(0, int(middle - 8 * spread)), min(n, int(middle + 8 * spread)) + 1):
        start = log_binomial(n - 1, c, r)
        if start < -60:
            continue
        heads = {a: math.exp(start + log_binomial(c, a, 0.5)) for a in range(c + 1)}
        for a in range(c + 2):
            more, less = heads.get(a - 1, 0.0), heads.get(a, 0.0)
            one, other = truth * more + (1 - truth) * less, (1 - truth) * more + truth * less
            if one > 1e-40:
                upper[(c, a)], lower[(c, a)] = math.log(one), math.log(other)
    pld = p.from_two_probability_mass_functions(lower, upper)
    return pld.self_compose(k).get_epsilon_for_delta(delta)
def calibrated(q, k, e):
    return d.calibrate_dp_mechanism(fresh, lambda s: sgd(q, s, k), e, delta)
read(sgd(0.5, 3.0, 2))
for name, (what, *numbers) in cases.items():
    if what == "sgd":
        run(name, lambda: read(sgd(*numbers)))
    elif what == "laplace":
        run(name, lambda: read(d.SelfComposedDpEvent(d.LaplaceDpEvent(1 / numbers[0]), numbers[1])))
    elif what == "gaussian":
        run(name, lambda: read(d.SelfComposedDpEvent(d.GaussianDpEvent(numbers[0]), numbers[1])))
    elif what == "mixed":
        run(name, lambda: mixed(*numbers))
    elif what == "shuffled":
        run(name, lambda: clones(*numbers))
    elif what == "group":
        run(name, lambda: group(*numbers))
    elif what == "sampled laplace":
        q, e, k = numbers
        run(name, lambda: read(d.SelfComposedDpEvent(d.PoissonSampledDpEvent(q, d.LaplaceDpEvent(1 / e)), k)))
    elif what == "nested laplace":
        q, e, inner, k = numbers
        run(name, lambda: read(d.SelfComposedDpEvent(d.PoissonSampledDpEvent(
            q, d.SelfComposedDpEvent(d.LaplaceDpEvent(1 / e), inner)), k)))
    elif what == "nested sgd":
        q, s, inner, k = numbers
        run(name, lambda: read(d.SelfComposedDpEvent(d.PoissonSampledDpEvent(q, sgd(q, s, inner)), k)))
    elif what == "calibrate":
        run(name, lambda: calibrated(*numbers))
print(json.dumps(found))
"""
)
PRV = (
    COMMON
    + """
from prv_accountant import PRVAccountant
from prv_accountant import PoissonSubsampledGaussianMechanism, GaussianMechanism, LaplaceMechanism
def read(mechanism, k):
    accountant = PRVAccountant(
        prvs=[mechanism], max_self_compositions=[k], eps_error=0.01, delta_error=delta / 1000
    )
    return accountant.compute_epsilon(delta=delta, num_self_compositions=[k])[2]
for name, (what, *numbers) in cases.items():
    if what == "sgd":
        q, s, k = numbers
        mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=s, sampling_probability=q)
        run(name, lambda: read(mechanism, k))
    elif what == "laplace":
        run(name, lambda: read(LaplaceMechanism(mu=numbers[0]), numbers[1]))
    elif what == "gaussian":
        run(name, lambda: read(GaussianMechanism(noise_multiplier=numbers[0]), numbers[1]))
print(json.dumps(found))
"""
)
OPACUS = (
    COMMON
    + """
from opacus.accountants import PRVAccountant, RDPAccountant
fresh = PRVAccountant if sys.argv[3] == "prv" else RDPAccountant
def read(q, s, k):
    accountant = fresh()
    accountant.history = [(s, q, k)]
    return accountant.get_epsilon(delta)
run("warm", lambda: read(0.5, 3.0, 2))
del found["warm"]
for name, (what, *numbers) in cases.items():
    if what == "sgd":
        run(name, lambda: read(*numbers))
print(json.dumps(found))
"""
)
PEERS = {
    "dp-accounting PLD": (("dp-accounting==0.6.0",), DP_ACCOUNTING, "pld"),
    "dp-accounting RDP": (("dp-accounting==0.6.0",), DP_ACCOUNTING, "rdp"),
    "prv-accountant": (("prv-accountant==0.2.0",), PRV, ""),
    "opacus PRV": (("opacus==1.6.0", "torch==2.13.0"), OPACUS, "prv"),
    "opacus RDP": (("opacus==1.6.0", "torch==2.13.0"), OPACUS, "rdp"),
}


def sgd(q: float, sigma: float) -> Cost:
    return Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)


#: Kind -> the cost of one law with the parameters that CASES and SUMS give.
LAWS: dict[str, Callable[..., Cost]] = {
    "sgd": sgd,
    "laplace": lambda e: Cost.laplace(scale=1, sensitivity=e),
    "gaussian": lambda s: Cost.gaussian(sigma=s, sensitivity=1),
    "response": Cost.randomized_response,
    "discrete gaussian": lambda s: Cost.discrete_gaussian(sigma=s, sensitivity=1),
    "discrete laplace": lambda b: Cost.discrete_laplace(scale=b, sensitivity=1),
    "shuffled": lambda e, n: Cost.pure(e).shuffled(n),
    "shuffled categories": lambda e, k, n: Cost.randomized_response(e, categories=k).shuffled(n),
    "sampled laplace": lambda q, e: Cost.laplace(scale=1, sensitivity=e).sampled(q),
    "nested laplace": lambda q, e, k: (k * Cost.laplace(scale=1, sensitivity=e)).sampled(q),
    "nested sgd": lambda q, s, k: (k * sgd(q, s)).sampled(q),
    "exponential": Cost.exponential,
    "group": lambda q, s, m: sgd(q, s).group(m),
}


def cost_of(what: str, *numbers: float) -> Cost:
    if what == "mixed":
        return sum((times * LAWS[kind](*inner) for kind, inner, times in SUMS[str(numbers[0])]), Cost.zero())
    *law, times = numbers
    return int(times) * LAWS[what](*law)


def forget() -> None:
    """Empty every cache of the accounting room, so that each reading is a fresh one."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tacit.accounting"):
            for thing in list(vars(module).values()):
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def fresh(work: Callable[[], float]) -> tuple[float, float]:
    """Return the value, and the least CPU time of up to five readings in up to one second."""
    times: list[float] = []
    value = math.nan
    while len(times) < 5 and sum(times) < 1:
        forget()
        start = time.process_time()
        value = float(work())
        times.append(time.process_time() - start)
    return value, min(times)


def ours(what: str, *numbers: float) -> tuple[float, float, float]:
    """Return value, certified width and seconds."""
    if what == "calibrate":
        q, steps, epsilon = numbers
        target = Budget(epsilon=epsilon, delta=DELTA)
        value, seconds = fresh(lambda: calibrate(lambda s: cost_of("sgd", q, s, steps), target))
        return value, 0.0, seconds
    delta = 1e-6 if what == "mixed" else DELTA
    value, seconds = fresh(lambda: cost_of(what, *numbers).epsilon(delta=delta))
    lower, upper, _ = cost_of(what, *numbers).bounds(delta=delta)
    return value, upper / lower - 1 if lower else math.inf, seconds


def ask(requirements: tuple[str, ...], script: str, kind: str) -> dict[str, list[float]]:
    try:
        return ask_peer(peer_python(*requirements), script, json.dumps([CASES, SUMS]), DELTA, kind)
    except Exception as error:  # a peer that does not install or start is reported, not hidden
        print(f"  {requirements}: {type(error).__name__}")
        return {}


def main() -> None:
    mine = {name: ours(*case) for name, case in CASES.items()}
    theirs = {name: ask(*peer) for name, peer in PEERS.items()}
    print(f"{'case':52} {'tacit':>12} {'width':>8} {'ms':>8}" + "".join(f" | {name:>31}" for name in PEERS))
    ratios: dict[str, list[float]] = {name: [] for name in PEERS}
    for name, (value, width, seconds) in mine.items():
        line = f"{name:52} {value:12.6f} {width:8.0e} {seconds * 1e3:8.2f}"
        for peer, answers in theirs.items():
            there, took = answers.get(name, [math.nan, math.nan])
            if math.isnan(there):
                line += f" | {'-':>31}"
                continue
            ratios[peer].append(took / seconds)
            line += f" | {there:12.6f} {took:8.3f} s {took / seconds:7.0f} x"
        print(line)
    for peer, found in ratios.items():
        if found:
            middle = statistics.median(found)
            print(f"{peer}: median {middle:.0f} x, least {min(found):.1f} x over {len(found)} cases")
    pld = theirs["dp-accounting PLD"]
    loose = [
        f"{name} ({pld[name][0]:.9g} against {value:.9g})"
        for name, (value, width, _) in mine.items()
        if name in pld
        and pld[name][0] < value * (1 - 1e-9) - (value * width if width < 1 else 0.0)
        and not name.startswith("calibrate")
    ]
    print("cases where dp-accounting's PLD is tighter than Tacit:", "; ".join(loose) or "none")


if __name__ == "__main__":
    main()
