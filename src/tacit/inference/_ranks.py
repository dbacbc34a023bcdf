"""The rank test (Mann and Whitney) of two groups from noisy histograms over the same public cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.inference._draws import DRAWS, corrected, coupled_noise, generator

if TYPE_CHECKING:
    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise

_HARDLY = 0.01  # a part of the variance that is noise up to which the normal law serves


def rank_p(histograms: Floats, noise: LinearNoise, draws: int = DRAWS) -> tuple[Floats, Floats]:
    """Return P(a value of group 2 is larger) - P(smaller), and the p-value that both groups have one law.

    Of histograms h1 and h2 (tests, 2, cells), U = h1' K h2 with K the sign of the distance of two cells. With
    one law p, U has the variance n1 n2 (n1 + n2) Var_p(Kp) + tau^2 (n1^2 + n2^2) |Kp|^2 + tau^4 |K|^2. The
    product of two noises is not normal, so the p-value of the normal law is corrected by draws.
    """
    cells = histograms.shape[-1]
    sign = np.sign(np.arange(cells)[None, :] - np.arange(cells)[:, None]).astype(float)
    draw = generator(4, cells)
    normal = draw.standard_normal((draws, 2))
    noises = coupled_noise(draw, noise, (draws, 2, cells))
    pooled = np.maximum(histograms.sum(axis=1), 0.0) + 1e-9
    shares = pooled / pooled.sum(axis=-1, keepdims=True)
    found, p = np.empty(len(histograms)), np.empty(len(histograms))
    for i, (first, second) in enumerate(histograms):
        n1, n2 = max(float(first.sum()), 1.0), max(float(second.sum()), 1.0)
        u = float(first @ sign @ second)
        found[i] = np.clip(u / (n1 * n2), -1, 1)
        p[i] = _one_p(u, (n1, n2), shares[i], sign, noise, normal, noises)
    return found, p


def _one_p(
    u: float,
    sizes: tuple[float, float],
    p: Floats,
    sign: Floats,
    noise: LinearNoise,
    normal: Floats,
    noises: tuple[Floats, Floats],
) -> float:
    from scipy.special import ndtr

    n1, n2 = sizes
    ranks = sign @ p
    among = float(p @ ranks**2 - (p @ ranks) ** 2)  # the variance of a value's rank
    sampled = n1 * n2 * (n1 + n2) * among
    linear = noise.variance * (n1**2 + n2**2) * float(ranks @ ranks)
    spread = np.sqrt(sampled + linear + noise.variance**2 * float((sign**2).sum()))
    plain = 2 * ndtr(-abs(u) / spread)
    if not noise.laplace or sampled > (1 - _HARDLY) * spread**2:
        return float(plain)
    base = np.sqrt(sampled) * normal[:, 0]
    true, smooth = noises
    drawn = base + n1 * true[:, 1] @ ranks - n2 * true[:, 0] @ ranks
    drawn = drawn + ((true[:, 0] @ sign) * true[:, 1]).sum(axis=-1)
    like = base + n1 * smooth[:, 1] @ ranks - n2 * smooth[:, 0] @ ranks
    rest = np.sqrt(noise.variance**2 * float((sign**2).sum())) * normal[:, 1]
    return float(corrected(np.asarray(plain), np.asarray(abs(u)), np.abs(drawn), np.abs(like + rest)))
