"""Epsilon at delta: Tacit against dp-accounting, prv-accountant and Opacus, on the same work in one run.

Each figure is the wall time of one fresh reading in a warm process (Tacit's caches are emptied before each;
the best of three). Peers run once per case, for at most ten seconds (calibration: a minute), in environments
of their own, at their defaults. Values are upper values where the library states one; "width" is Tacit's
certified upper over its lower value, less one.
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
CASES: dict[str, list] = {
    **{f"DP-SGD q={q} sigma={s} steps={k}": ["sgd", q, s, k] for q, s, k in GRID},
    **{
        f"Laplace {e} x {k}": ["laplace", e, k]
        for e, k in itertools.product((0.1, 0.5, 1.0), (10, 100, 1000))
    },
    **{f"Gaussian sigma=5 x {k}": ["gaussian", 5.0, k] for k in (10, 100, 1000)},
    "mixed": ["mixed"],
    "calibrate q=0.01 steps=1000 epsilon=2": ["calibrate", 0.01, 1000, 2.0],
}

COMMON = """
LIMIT = 10
import json, signal, sys, time, math, warnings
warnings.simplefilter("ignore")
cases, delta, found = json.loads(sys.argv[1]), float(sys.argv[2]), {}
signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
def run(name, work):
    start = time.perf_counter()
    signal.alarm(60 if name.startswith('calibrate') else LIMIT)
    try:
        value = float(work())
    except Exception as error:
        value = math.nan
    signal.alarm(0)
    found[name] = [value, time.perf_counter() - start]
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
def mixed():
    if kind != "pld":
        raise NotImplementedError
    parts = [p.from_laplace_mechanism(10.0).self_compose(50),
             p.from_gaussian_mechanism(10.0).self_compose(50),
             p.from_randomized_response(2 / (1 + math.exp(0.2)), 2).self_compose(20),
             p.from_discrete_gaussian_mechanism(8.0).self_compose(30)]
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return total.get_epsilon_for_delta(1e-6)
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
        run(name, mixed)
    else:
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


def cost_of(what: str, *numbers: float) -> Cost:
    if what == "sgd":
        q, sigma, steps = numbers
        return int(steps) * Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)
    if what == "laplace":
        return int(numbers[1]) * Cost.laplace(scale=1, sensitivity=numbers[0])
    if what == "gaussian":
        return int(numbers[1]) * Cost.gaussian(sigma=numbers[0], sensitivity=1)
    return (
        50 * Cost.laplace(scale=10, sensitivity=1)
        + 50 * Cost.gaussian(sigma=10, sensitivity=1)
        + 20 * Cost.randomized_response(0.2)
        + 30 * Cost.discrete_gaussian(sigma=8, sensitivity=1)
    )


def forget() -> None:
    """Empty every cache of the accounting room, so that each reading is a fresh one."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tacit.accounting"):
            for thing in list(vars(module).values()):
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def fresh(work: Callable[[], float], times: int = 3) -> tuple[float, float]:
    best, value = math.inf, math.nan
    for _ in range(times):
        forget()
        start = time.perf_counter()
        value = float(work())
        best = min(best, time.perf_counter() - start)
    return value, best


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
    return value, upper / lower - 1, seconds


def ask(requirements: tuple[str, ...], script: str, kind: str) -> dict[str, list[float]]:
    try:
        return ask_peer(peer_python(*requirements), script, json.dumps(CASES), DELTA, kind)
    except Exception as error:  # a peer that does not install or start is reported, not hidden
        print(f"  {requirements}: {type(error).__name__}")
        return {}


def main() -> None:
    mine = {name: ours(*case) for name, case in CASES.items()}
    theirs = {name: ask(*peer) for name, peer in PEERS.items()}
    print(f"{'case':40} {'tacit':>12} {'width':>8} {'ms':>8}" + "".join(f" | {name:>31}" for name in PEERS))
    ratios: dict[str, list[float]] = {name: [] for name in PEERS}
    for name, (value, width, seconds) in mine.items():
        line = f"{name:40} {value:12.6f} {width:8.0e} {seconds * 1e3:8.2f}"
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
        and pld[name][0] < value * (1 - 1e-9) - value * width
        and not name.startswith("calibrate")
    ]
    print("cases where dp-accounting's PLD is tighter than Tacit:", "; ".join(loose) or "none")


if __name__ == "__main__":
    main()
