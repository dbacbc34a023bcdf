"""GWAS: distances of 10^5 SNPs, the strongest SNPs that are found, and statistics of randomised phenotypes.

Run: python benchmarks/gwas.py [snps]     (default 1e5 SNPs, 50,000 cases and 50,000 controls)
Best known (closed form, on a reference machine): allelic 0.14 s, trend 5 s; top 5 found .84 / 1.0 and top 10
.44 / 1.0 at epsilon .1 / 1, with twenty SNPs of 1.1 times the frequency in cases.
"""

from __future__ import annotations

import resource
import sys
import time
from fractions import Fraction

import numpy as np

import tacit as tc
from tacit.genomes import AssociationTest

EACH = 50_000
RUNS = 40


def counts(rng: np.random.Generator, p: np.ndarray) -> np.ndarray:
    """Draw genotype counts in Hardy-Weinberg equilibrium."""
    both = rng.binomial(EACH, p**2)
    one = rng.binomial(EACH - both, 2 * p * (1 - p) / (1 - p**2))
    return np.stack([EACH - both - one, one, both], axis=1)


def distances(snps: int) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.5, snps)
    shifted = p.copy()
    shifted[:20] *= 1.1
    cases, controls = counts(rng, shifted), counts(rng, p)
    for kind, goal, known in (("allelic", 1, 0.14), ("trend", 10, 5)):
        test = AssociationTest.at(kind, cases=EACH, controls=EACH, threshold=5e-8)
        start = time.process_time()
        scores = test.scores(cases, controls)
        spent = time.process_time() - start
        print(f"{kind}: distances of {snps:,} SNPs in {spent:.2f} CPU s (goal {goal}, best known {known})")
        far = -np.median(scores[20:]) / 1_000
        print(
            f"  {int((scores[:20] > -1_000).sum())} of 20 significant; other SNPs lie {far:,.0f} people away"
        )
        for k, known_shares in ((5, (0.84, 1.0)), (10, (0.44, 1.0))):
            best = set(np.argsort(-scores, kind="stable")[:k].tolist())
            for epsilon, known_share in zip((Fraction(1, 10), 1), known_shares, strict=True):
                top = tc.mechanisms.TopK(epsilon, k=k, sensitivity=1_001, adjacency="replace", grid=1)
                drawn = [set(top.release(scores)) for _ in range(RUNS)]
                found = np.mean([len(one & set(range(20))) / k for one in drawn])
                same = np.mean([len(one & best) / k for one in drawn])
                print(
                    f"  top {k} at epsilon {float(epsilon):g}: {found:.2f} true SNPs, "
                    f"{same:.2f} of the exact top {k} (best known {known_share})"
                )


def statistics(people: int = 20_000, snps: int = 2_000) -> None:
    rng = np.random.default_rng(1)
    calls = rng.binomial(2, rng.uniform(0.05, 0.5, snps), (people, snps)).astype(np.int8)
    trait = rng.normal(size=people)
    cohort = tc.genotypes(calls, unit="phenotype", phenotype=trait, budget=tc.Budget(epsilon=3))
    plan = cohort.summary_statistics(trait=(0, 1)).plan(epsilon=3)
    start = time.process_time()
    plan.release()
    spent = time.process_time() - start
    print(f"summary statistics of {snps:,} SNPs x {people:,} people: {spent:.2f} CPU s")


def main() -> None:
    distances(int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000)
    statistics()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
