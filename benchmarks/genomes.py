"""Allele frequencies of 10,000 variants of 100,000 people from a PLINK bed: CPU time and peak memory.

Run: python benchmarks/genomes.py [variants people]

The bed (250 MB) is invented and written to a temporary folder. Each figure is of a process of its own. Beside
Tacit stands bed-reader, which pip installs into an environment of its own on first use: it reads blocks of
200 variants, and NumPy counts; if it cannot be installed, the page says so.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from peers import ask_peer, peer_python

VARIANTS, PEOPLE = 10_000, 100_000

OURS = """
import json, resource, sys, time
import numpy as np
import tacit as tc
path, kind = sys.argv[1:3]
start = time.process_time()
table = np.load(path.replace(".bed", ".npy")) if kind in {"reference", "clipped"} else None
cohort = tc.genotypes(path, budget=tc.Budget(rho=1))
opened = time.process_time() - start
if kind == "counts":
    cohort._source.table_counts()
elif kind == "trial":
    cohort.hardy_weinberg().plan(rho=0.1).release()
else:
    cohort.frequencies(reference=table, clip=10 if kind == "clipped" else None).plan(rho=0.1).release()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
print(json.dumps({"cpu": time.process_time() - start, "opened": opened, "peak": peak}))
"""

THEIRS = """
import json, resource, sys, time
import numpy as np
from bed_reader import open_bed
start = time.process_time()
with open_bed(sys.argv[1], num_threads=1) as bed:
    for first in range(0, bed.sid_count, 200):
        calls = bed.read(np.s_[:, first : first + 200], dtype="int8")
        [(calls == copies).sum(axis=0) for copies in (0, 1, 2)]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
print(json.dumps({"cpu": time.process_time() - start, "peak": peak}))
"""


def write_bed(folder: Path, variants: int, people: int) -> Path:
    """Write an invented cohort in Hardy-Weinberg equilibrium, 1 % missing, and its public reference."""
    random = np.random.default_rng(1)
    reference = random.uniform(0.05, 0.5, variants)
    width = -(-people // 4)
    with (folder / "cohort.bed").open("wb") as file:
        file.write(b"\x6c\x1b\x01")
        for p in reference:
            q = 1 - p
            cuts = np.cumsum([p * p, 0.01, 2 * p * q])  # two copies, missing, one copy, none
            codes = np.searchsorted(cuts * 2**16 / (cuts[-1] + q * q), random.integers(0, 2**16, 4 * width))
            quads = codes.astype(np.uint8).reshape(-1, 4) << np.arange(0, 8, 2, dtype=np.uint8)
            file.write(np.bitwise_or.reduce(quads, axis=1).tobytes())
    lines = (f"1\trs{i}\t0\t{1000 + 10 * i}\tG\tA\n" for i in range(variants))
    (folder / "cohort.bim").write_text("".join(lines))
    (folder / "cohort.fam").write_text("".join(f"f{i} p{i} 0 0 0 -9\n" for i in range(people)))
    np.save(folder / "cohort.npy", reference)
    return folder / "cohort.bed"


def main() -> None:
    """Print one line for each figure."""
    variants, people = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (VARIANTS, PEOPLE)
    with tempfile.TemporaryDirectory() as folder:
        bed = write_bed(Path(folder), variants, people)
        print(f"{variants:,} variants of {people:,} people, {bed.stat().st_size / 1e6:.0f} MB")
        print(f"{'what':<52} {'CPU s':>7} {'MiB':>6}   goal 10 s, 205 MiB")
        for kind, words in {
            "counts": "counts of 0, 1, 2 copies and missing calls",
            "plain": "frequencies, no reference: plan and release",
            "reference": "frequencies, clipped at a reference (two passes)",
            "clipped": "the same, with a norm that everybody exceeds",
            "trial": "Hardy-Weinberg tests",
        }.items():
            found = ask_peer(Path(sys.executable), OURS, bed, kind)
            print(f"{words:<52} {found['cpu']:7.2f} {found['peak']:6.0f}")
        try:
            found = ask_peer(peer_python("bed-reader==1.1.0"), THEIRS, bed)
        except subprocess.CalledProcessError:
            print(
                "bed-reader is not installed here (8.5 s and 118 MB were measured for its counts elsewhere)"
            )
        else:
            print(f"{'bed-reader 1.1, counts in NumPy':<52} {found['cpu']:7.2f} {found['peak']:6.0f}")


if __name__ == "__main__":
    main()
