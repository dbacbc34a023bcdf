"""Exact laws of small splitting trees, for tests: every tree of a few levels with its probability."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import product

DIGITS = 50


def split_chance(value: int, theta: int, scale) -> Decimal:
    """Return P(value + noise > theta), written anew: a sum of the two tails of the discrete Laplace law."""
    c = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
    need = theta + 1 - value  # the least noise that splits
    if need >= 0:
        return c**need / (1 + c)
    return 1 - c ** (1 - need) / (1 + c)


def law(grid, *, depth, decay, theta, scale, level=0, row=0, column=0) -> dict[tuple, Decimal]:
    """Return every tree below a region, as the set of its leaves, with its probability."""
    size = 2 ** (depth - level)
    leaf = ((level, row, column),)
    if level == depth:
        return {leaf: Decimal(1)}
    n = sum(sum(line[column * size : (column + 1) * size]) for line in grid[row * size : (row + 1) * size])
    with localcontext() as context:
        context.prec = DIGITS
        chance = split_chance(max(n - level * decay, theta - decay), theta, scale)
        below = [
            law(grid, depth=depth, decay=decay, theta=theta, scale=scale, level=level + 1, row=r, column=q)
            for r in (2 * row, 2 * row + 1)
            for q in (2 * column, 2 * column + 1)
        ]
        found = {leaf: 1 - chance}
        for parts in product(*(part.items() for part in below)):
            leaves, p = (), chance
            for more, q in parts:
                leaves, p = leaves + more, p * q
            found[tuple(sorted(leaves))] = p
    return found


def loss(a: dict[tuple, Decimal], b: dict[tuple, Decimal]) -> Decimal:
    """Return the largest log-ratio of two laws, in both directions."""
    with localcontext() as context:
        context.prec = DIGITS
        return max(abs((a[tree] / b[tree]).ln()) for tree in a)


def path_loss(counts, moved, *, decay, theta, scale) -> Decimal:
    """Return the log-ratio of splitting every region of a path, with `moved` points more in each of them."""
    with localcontext() as context:
        context.prec = DIGITS
        total = Decimal(0)
        for level, n in enumerate(counts):
            more, less = (max(n + k - level * decay, theta - decay) for k in (moved, 0))
            total += (split_chance(more, theta, scale) / split_chance(less, theta, scale)).ln()
        return total
