"""Decoding a million randomized answers, against pure-ldp in the same run; and unknown strings, with recall.

CPU seconds of the collector, from an array of reports to an estimate of every answer's share. pure-ldp reads
one report at a time: it gets fewer reports twice, and the line through both times is read at a million.
"""

import time

import numpy as np

import tacit as tc
from peers import ask_peer, peer_python
from tacit.surveys import StringHashing, find_heavy

REPORTS = 1_000_000
EPSILON = 1

#: pure-ldp 1.2.0 does not name what it imports.
PURE_LDP = ("pure-ldp==1.2.0", "xxhash<4", "scikit-learn", "statsmodels")

PEER = """
import json, sys, time, random
import numpy as np
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
n, epsilon, d = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
random.seed(1); np.random.seed(1)
shift = lambda x: x - 1
def servers(kind, **more):
    return lambda: kind(epsilon, d, index_mapper=shift, **more)
def client(kind, **more):
    return kind(epsilon, d, index_mapper=shift, **more)
functions = HadamardResponseServer(epsilon, d, index_mapper=shift).get_hash_funcs()
hadamard = servers(HadamardResponseServer)
kinds = {
    "OLH": (150, client(LHClient, use_olh=True), servers(LHServer, use_olh=True)),
    "k-ary response": (10_000, client(DEClient), servers(DEServer)),
    "OUE": (1_000, client(UEClient, use_oue=True), servers(UEServer, use_oue=True)),
    "Hadamard": (5_000, client(HadamardResponseClient, hash_funcs=functions), hadamard),
}
answers = np.minimum(np.random.default_rng(0).zipf(1.5, 40_000), d)
def seconds(server, reports):
    start = time.process_time()
    for report in reports:
        server.aggregate(report)
    server.estimate_all(range(1, d + 1), suppress_warnings=True)
    return time.process_time() - start
found = {}
for name, (part, sender, server) in kinds.items():
    reports = [sender.privatise(int(x)) for x in answers[: 4 * part]]
    few = min(seconds(server(), reports[:part]) for _ in range(3))
    more = min(seconds(server(), reports) for _ in range(3))
    found[name] = few + (more - few) * (n - part) / (3 * part)
print(json.dumps(found))
"""


def cpu(work, *, times: int = 3) -> float:
    work()
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def decoding(randomizer) -> float:
    rng = np.random.default_rng(0)
    reports = randomizer.release(np.minimum(rng.zipf(1.5, REPORTS), randomizer.size) - 1)
    return cpu(lambda: randomizer.shares(randomizer.supports(reports), REPORTS))


def lists() -> None:
    hashing, response = tc.mechanisms.LinearHashing, tc.mechanisms.SubsetSelection
    small = decoding(hashing(epsilon=EPSILON, size=1000))
    own = {  # the same law where there is one; the others beside linear hashing, whose variance is as small
        "k-ary response": decoding(response(epsilon=EPSILON, size=1000, subset=1)),
        "Hadamard": decoding(hashing(epsilon=EPSILON, size=1000, bits=1)),
    }
    peer = ask_peer(peer_python(*PURE_LDP), PEER, REPORTS, EPSILON, 1000)
    print(f"\n{REPORTS:,} reports decoded, epsilon {EPSILON} (CPU seconds)")
    print(f"  1,000 answers, tacit, linear hashing     {small:10.3f}   (to reach: 0.1)")
    for name, seconds in peer.items():
        mine = own.get(name, small)
        least = 100 if name == "OLH" else 10
        times = f"{seconds / mine:8.0f} x (to reach: {least})"
        print(f"  1,000 answers, pure-ldp, {name:15s} {seconds:10.2f}   {times}")
    for name, seconds in own.items():
        print(f"  1,000 answers, tacit, the law of {name:14s} {seconds:4.3f}")
    large = hashing(epsilon=EPSILON, size=10**6)
    print(f"  1,000,000 answers, tacit, linear hashing {decoding(large):10.3f}   (to reach: 1)")
    reports = large.release(np.minimum(np.random.default_rng(0).zipf(1.5, REPORTS), 10**6) - 1)
    print(f"  1,000,000 answers, heavy hitters         {cpu(lambda: find_heavy(reports, large)):10.3f}")


def strings() -> None:
    """Zipf 1.1 over 10^5 random strings of six bytes, a million respondents."""
    rng = np.random.default_rng(7)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789"))
    names = ["".join(row) for row in rng.choice(letters, (10**5, 6))]
    weights = 1 / np.arange(1, 10**5 + 1) ** 1.1
    texts = [names[i] for i in rng.choice(10**5, REPORTS, p=weights / weights.sum())]
    known = set(names)
    print(f"\nunknown strings, {REPORTS:,} reports (to reach: 5 CPU seconds)")
    for epsilon in (1, 2, 4):
        plan = StringHashing(epsilon=epsilon)
        reports = plan.release(texts)
        start = time.process_time()
        found = plan.find(reports)
        seconds = time.process_time() - start
        real = [answer.removesuffix("…") for answer in found.answers]
        first, second = (np.mean([name in real for name in names[:top]]) for top in (16, 32))
        print(
            f"  epsilon {epsilon}: recall of the top 16 {first:.2f}, of the top 32 {second:.2f}; "
            f"{len(real)} reported, {sum(name in known for name in real)} of them exist; {seconds:.2f} s"
        )


def main() -> None:
    lists()
    strings()


if __name__ == "__main__":
    main()
