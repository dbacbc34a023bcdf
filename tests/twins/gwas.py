"""Broken twins of the association tests: each looks right, and each reveals more than it claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tacit as tc

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.genomes import AssociationTest

__all__ = ["choice_without_factor_two", "reports_beside_the_exact_count", "scores_without_minus_one"]


def scores_without_minus_one(test: AssociationTest, cases, controls) -> np.ndarray:
    """The distance of a significant SNP as its score, without the 1 that separates the two sides."""
    scores = test.scores(cases, controls)
    alleles = [table @ [0, 1, 2] for table in (cases, controls)]
    squares = (cases + controls) @ [0, 1, 4]
    significant = test._allelic(*alleles) if test.kind == "allelic" else test._trend(*alleles, squares)
    return np.where(significant, scores + 1_000, scores)


def choice_without_factor_two(epsilon: Fraction, k: int) -> tc.mechanisms.TopK:
    """The choice for monotone scores, though one person raises some scores and lowers others."""
    return tc.mechanisms.TopK(epsilon, k=k, sensitivity=1_001, monotone=True, grid=1)


def reports_beside_the_exact_count(randomizer, phenotypes) -> list[float]:
    """Randomised phenotypes, and beside them the exact number of cases "for the methods section"."""
    answers = randomizer.answers(phenotypes, len(phenotypes))
    return [float(randomizer.mechanism.release(answers).sum()), float(answers.sum())]
