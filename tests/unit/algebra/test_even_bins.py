"""Even candidates are the floats nearest to exact multiples of their distance."""

from __future__ import annotations

import random
from fractions import Fraction

from tacit.algebra import EvenBins


def test_even_candidates_are_rounded_once():
    draw = random.Random(30)
    for _ in range(200):
        first, width = draw.uniform(-1, 1) * 10 ** draw.randint(-9, 9), draw.uniform(0.1, 9) / 3
        at, step = Fraction(repr(first)), Fraction(repr(width))
        bins = EvenBins(first, width, 12)
        assert bins.values == tuple(float(at + i * step) for i in range(12))
    assert EvenBins(0.1, 0.1, 3).values == (0.1, 0.2, 0.3)
