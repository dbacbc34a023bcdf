"""Write accounting_references.json: delta at epsilon to 30 digits for more than 200 sums of laws.

Every figure comes from mpmath by another road than the package's engines, wherever there is one: closed
forms, binomial sums, plain convolution, integrals over the first of two steps. Many sampled steps and
mixtures with Laplace noise are inverted on a vertical line in 45-digit arithmetic, at two step widths and two
lengths that must agree to 20 digits. Run it with ``python tests/data/make_accounting_references.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import mpmath as mp

if TYPE_CHECKING:
    from collections.abc import Callable

mp.mp.dps = 45
Part = tuple[dict[str, str], int]


def law(name: str, **fields: object) -> dict[str, str]:
    return {"law": name, **{key: str(value) for key, value in fields.items()}}


def gaussian(mu: mp.mpf, e: mp.mpf) -> mp.mpf:
    return mp.ncdf(-e / mu + mu / 2) - mp.exp(e) * mp.ncdf(-e / mu - mu / 2)


def hockey(atoms: dict[mp.mpf, mp.mpf], e: mp.mpf) -> mp.mpf:
    return mp.fsum(p * (1 - mp.exp(e - loss)) for loss, p in atoms.items() if loss > e)


def response(e0: mp.mpf, k: int) -> dict[mp.mpf, mp.mpf]:
    p = 1 / (1 + mp.exp(-e0))
    return {(2 * j - k) * e0: mp.binomial(k, j) * p**j * (1 - p) ** (k - j) for j in range(k + 1)}


def convolve(masses: list[mp.mpf], k: int) -> list[mp.mpf]:
    total = [mp.mpf(1)]
    for _ in range(k):
        total = [
            mp.fsum(
                total[i] * masses[n - i] for i in range(max(0, n - len(masses) + 1), min(n + 1, len(total)))
            )
            for n in range(len(total) + len(masses) - 1)
        ]
    return total


def discrete_gaussian(sigma: mp.mpf, s: int, k: int) -> dict[mp.mpf, mp.mpf]:
    half = int(mp.ceil(17 * sigma))
    masses = [mp.exp(-(mp.mpf(x) ** 2) / (2 * sigma**2)) for x in range(-half, half + 1)]
    whole = mp.fsum(masses)
    total = convolve([m / whole for m in masses], k)
    # x - s ranges over -half .. half under P; loss s (2x - s) / (2 sigma^2)
    return {(s * s * k + 2 * s * (n - half * k)) / (2 * sigma**2): m for n, m in enumerate(total)}


def discrete_laplace(scale: mp.mpf, s: int, k: int) -> dict[mp.mpf, mp.mpf]:
    r = mp.exp(-1 / scale)
    masses = [(1 - r) / (1 + r) * r ** (s - i) for i in range(s + 1)]
    masses[0], masses[s] = r**s / (1 + r), 1 / (1 + r)
    total = convolve(masses, k)
    return {(2 * n - s * k) / scale: m for n, m in enumerate(total)}


def laplace(e0: mp.mpf, k: int, e: mp.mpf) -> mp.mpf:
    """Sum over how many losses are at the ends; the others add up to a tilted sum of uniform laws."""
    total = []
    for a in range(k + 1):
        for b in range(k + 1 - a):
            m = k - a - b
            ways = mp.factorial(k) / (mp.factorial(a) * mp.factorial(b) * mp.factorial(m))
            chance = ways * mp.mpf(0.5) ** (a + b) * mp.exp(-b * e0)
            x = e - (a - b) * e0
            if m == 0:
                total.append(chance * max(mp.mpf(0), 1 - mp.exp(x)))
                continue
            chance *= (mp.exp(-e0 / 2) / 4) ** m
            x0 = max(x, -m * e0)
            part = []
            for j in range(m + 1):
                top = (m - 2 * j) * e0
                if top <= x0:
                    continue
                v, sign = top - x0, (-1) ** j * mp.binomial(m, j) / mp.factorial(m - 1)
                first = mp.exp(top / 2) * 2**m * mp.gammainc(m, 0, v / 2)
                second = mp.exp(x - top / 2) * v**m / m * mp.hyp1f1(m, m + 1, v / 2)
                part.append(sign * (first - second))
            total.append(chance * mp.fsum(part))
    return mp.fsum(total)


def log_laplace(e0: mp.mpf) -> Callable[[mp.mpc], mp.mpc]:
    return lambda z: mp.log(((z + 1) * mp.exp(z * e0) + z * mp.exp(-(z + 1) * e0)) / (2 * z + 1))


def log_response(e0: mp.mpf) -> Callable[[mp.mpc], mp.mpc]:
    return lambda z: z * e0 - mp.log(1 + mp.exp(-e0)) + mp.log(1 + mp.exp(-(2 * z + 1) * e0))


def log_gaussian(mu: mp.mpf) -> Callable[[mp.mpc], mp.mpc]:
    return lambda z: mu**2 * z * (z + 1) / 2


class Sampled:
    """log E A^p by the trapezoid rule in x, wide and fine enough for 30 digits at |z| <= reach."""

    def __init__(self, q: mp.mpf, mu: mp.mpf, *, add: bool, reach: float) -> None:
        step = 2 * mp.pi / (mu * reach + 24 + 24 * mu)
        x = [i * step for i in range(-int(14 / step), int((14 + (reach + 2) * mu) / step) + 1)]
        self.logs = [mp.log(1 - q + q * mp.exp(mu * y - mu**2 / 2)) for y in x]
        self.weights = [step * mp.npdf(y) for y in x]
        self.add = add

    def __call__(self, z: mp.mpc) -> mp.mpc:
        p = -z if self.add else z + 1
        return mp.log(mp.fsum(w * mp.exp(p * a) for w, a in zip(self.weights, self.logs, strict=True)))

    def nodes(self, c: mp.mpf, h: mp.mpf, n: int) -> list[mp.mpc]:
        """The same at c + i j h, j = 0 .. n, turning each term on by one factor a step."""
        p, sign = (-c, -1) if self.add else (c + 1, 1)
        terms = [w * mp.exp(p * a) for w, a in zip(self.weights, self.logs, strict=True)]
        turns = [mp.expj(sign * h * a) for a in self.logs]
        found = []
        for _ in range(n + 1):
            found.append(mp.log(mp.fsum(terms)))
            terms = [term * turn for term, turn in zip(terms, turns, strict=True)]
        return found


def log_sampled(q: mp.mpf, mu: mp.mpf, *, add: bool, reach: float) -> Sampled:
    return Sampled(q, mu, add=add, reach=reach)


def invert(
    parts: list[tuple[Callable[[mp.mpc], mp.mpc], int]], e: mp.mpf, c: mp.mpf, t_max: mp.mpf
) -> mp.mpf:
    """Integrate exp(log M - z e) / (z (z+1)) over Re z = c, by two rules that must agree."""

    def rule(period: mp.mpf, last: mp.mpf) -> mp.mpf:
        h = 2 * mp.pi / period
        n = int(last / h)
        logs = [mp.mpc(0)] * (n + 1)
        for f, k in parts:
            line = f.nodes(c, h, n) if isinstance(f, Sampled) else [f(mp.mpc(c, j * h)) for j in range(n + 1)]
            logs = [a + k * b for a, b in zip(logs, line, strict=True)]
        terms = []
        for j, log in enumerate(logs):
            z = mp.mpc(c, j * h)
            terms.append((mp.exp(log - z * e) / (z * (z + 1))).real / (2 if j == 0 else 1))
        return h / mp.pi * mp.fsum(terms)

    period = max(90 / c, mp.mpf(30))
    one, two = rule(period, t_max), rule(mp.mpf("1.3") * period, mp.mpf("1.15") * t_max)
    assert abs(one / two - 1) < mp.mpf(10) ** -20, (e, c, one / two - 1)
    return two


def saddle(parts: list[tuple[Callable[[mp.mpc], mp.mpc], int]], e: mp.mpf, most: float) -> mp.mpf:
    cuts = [mp.mpf(most) * mp.mpf("0.7") ** i for i in range(1, 30)]
    return min(cuts, key=lambda c: (mp.fsum(k * f(mp.mpc(c)) for f, k in parts) - c * e - mp.log(c)).real)


def chernoff(parts: list[tuple[Callable[[mp.mpc], mp.mpc], int]], e: mp.mpf, c: mp.mpf) -> mp.mpf:
    return mp.exp((mp.fsum(k * f(mp.mpc(c)) for f, k in parts) - c * e).real)


def two_sampled(q: mp.mpf, mu: mp.mpf, e: mp.mpf, *, add: bool) -> mp.mpf:
    """Two steps: integrate the closed form of one over the other."""

    def log_a(x: mp.mpf) -> mp.mpf:
        return mp.log(1 - q + q * mp.exp(mu * x - mu**2 / 2))

    def single(b: mp.mpf) -> mp.mpf:
        if add:  # Q against (1-q) Q + q P
            w = 1 - (1 - q) * mp.exp(b)
            if w <= 0:
                return mp.mpf(0)
            return w * gaussian(mu, b + mp.log(q) - mp.log(w))
        if mp.exp(b) <= 1 - q:
            return 1 - mp.exp(b)
        return q * gaussian(mu, mp.log(1 + mp.expm1(b) / q))

    def density(x: mp.mpf) -> mp.mpf:
        return mp.npdf(x) if add else (1 - q) * mp.npdf(x) + q * mp.npdf(x - mu)

    cuts = [-14, -6, -3, -1, 0, 1, 2, 3, 4, 6, 9, 14 + mu]
    return mp.quad(lambda x: density(x) * single(e - (-log_a(x) if add else log_a(x))), cuts, maxdegree=9)


def cases() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []

    def put(family: str, parts: list[Part], e: object, delta: mp.mpf) -> None:
        assert 0 < delta < 1, (family, parts, e, delta)
        found.append({"family": family, "parts": parts, "epsilon": str(e), "delta": mp.nstr(delta, 30)})
        print(len(found), family, parts, e, mp.nstr(delta, 12), flush=True)

    for sigma, k in (("0.5", 1), ("1", 3), ("5", 100), ("25", 800), ("40", 2), ("300", 7), ("100000", 5)):
        mu = mp.sqrt(k) / mp.mpf(sigma)
        for times in ("0.01", "0.5", "1.5", "3", "5", "7", "9"):
            e = mp.nstr(mu**2 / 2 + mp.mpf(times) * mu, 12)
            put("gaussian", [(law("Gaussian", sigma=sigma, sensitivity=1), k)], e, gaussian(mu, mp.mpf(e)))
    for e0, k in (("0.01", 50), ("0.1", 1), ("0.1", 100), ("0.5", 7), ("1", 20), ("2", 3), ("0.02", 2000)):
        atoms = response(mp.mpf(e0), k)
        for share in ("0.05", "0.3", "0.6", "0.9"):
            e = mp.nstr(mp.mpf(share) * k * mp.mpf(e0), 12)
            if (delta := hockey(atoms, mp.mpf(e))) > mp.mpf(10) ** -250:
                put("response", [(law("RandomizedResponse", epsilon=e0), k)], e, delta)
    for e0, k in (("0.1", 1), ("1", 2), ("0.5", 4), ("0.1", 10), ("1", 8), ("0.3", 12)):
        for share in ("0.05", "0.3", "0.55", "0.8", "0.95"):
            e = mp.nstr(mp.mpf(share) * k * mp.mpf(e0), 12)
            put(
                "laplace",
                [(law("Laplace", scale=1, sensitivity=e0), k)],
                e,
                laplace(mp.mpf(e0), k, mp.mpf(e)),
            )
    for sigma, s, k in (("0.5", 1, 3), ("1", 1, 1), ("2", 1, 4), ("8", 1, 2), ("3", 2, 5)):
        atoms = discrete_gaussian(mp.mpf(sigma), s, k)
        mu = mp.sqrt(k) * s / mp.mpf(sigma)
        for times in ("0.1", "2", "4", "6"):
            e = mp.nstr(mu**2 / 2 + mp.mpf(times) * mu, 12)
            put("discrete gaussian", [(law("DiscreteGaussian", sigma=sigma, sensitivity=s), k)], e,
                hockey(atoms, mp.mpf(e)))  # fmt: skip
    for scale, s, k in (("1", 1, 10), ("10", 3, 10), ("80", 8, 30), ("4", 2, 60)):
        atoms = discrete_laplace(mp.mpf(scale), s, k)
        for share in ("0.05", "0.3", "0.6", "0.9"):
            e = mp.nstr(mp.mpf(share) * k * s / mp.mpf(scale), 12)
            put("discrete laplace", [(law("DiscreteLaplace", scale=scale, sensitivity=s), k)], e,
                hockey(atoms, mp.mpf(e)))  # fmt: skip
    for q, sigma in (("0.01", "1"), ("0.1", "0.7"), ("0.3", "2"), ("0.001", "0.6"), ("0.9", "3")):
        mu, share = 1 / mp.mpf(sigma), mp.mpf(q)
        for e in ("0.001", "0.1", "1", "3"):
            first = share * gaussian(mu, mp.log(1 + mp.expm1(mp.mpf(e)) / share))
            w = 1 - (1 - share) * mp.exp(mp.mpf(e))
            second = w * gaussian(mu, mp.mpf(e) + mp.log(share) - mp.log(w)) if w > 0 else mp.mpf(0)
            part = law("Sampled", q=q, sigma=sigma)
            put("sampled gaussian, once", [(part, 1)], e, max(first, second))
    for q, sigma in (("0.1", "1"), ("0.3", "2"), ("0.5", "0.8")):
        mu, share = 1 / mp.mpf(sigma), mp.mpf(q)
        for e in ("0.2", "1", "2.5"):
            both = [two_sampled(share, mu, mp.mpf(e), add=add) for add in (False, True)]
            put("sampled gaussian, twice", [(law("Sampled", q=q, sigma=sigma), 2)], e, max(both))
    for q, sigma, k, spans in (
        ("0.01", "1", 1000, ("0.5", "1.8", "3", "6")),
        ("0.001", "0.8", 100000, ("0.5", "2.5", "5")),
        ("0.1", "2", 1000, ("2", "8", "16")),
        ("0.02", "0.7", 300, ("1", "4", "7")),
        ("0.05", "1.5", 5000, ("3", "9", "15")),
    ):
        mu, share = 1 / mp.mpf(sigma), mp.mpf(q)
        for e in spans:
            both = []
            for add in (False, True):
                rough = [(log_sampled(share, mu, add=add, reach=60), k)]
                c = saddle(rough, mp.mpf(e), 40)
                if add and chernoff(rough, mp.mpf(e), c) < both[0]:
                    continue  # adding a unit costs less here
                c *= mp.mpf("0.6")  # closer to zero the right tail is lighter
                width = mp.sqrt(k * share**2 * (mp.exp(mu**2) - 1))
                t_max = 26 / width
                fine = [(log_sampled(share, mu, add=add, reach=float(1.2 * t_max + c)), k)]
                both.append(invert(fine, mp.mpf(e), c, t_max))
            put("sampled gaussian, many", [(law("Sampled", q=q, sigma=sigma), k)], e, max(both))
    for e0, k, sigma, n in (
        ("0.2", 20, "10", 50),
        ("1", 3, "2", 1),
        ("0.05", 200, "30", 400),
        ("0.7", 9, "5", 30),
    ):
        mu = mp.sqrt(n) / mp.mpf(sigma)
        atoms = response(mp.mpf(e0), k)
        for share in ("0.2", "0.8", "1.5", "2.2"):
            e = mp.nstr(mp.mpf(share) * (mp.sqrt(k) * mp.mpf(e0) + mu) * 2, 12)
            delta = mp.fsum(p * gaussian(mu, mp.mpf(e) - loss) for loss, p in atoms.items())
            put("response and gaussian", [(law("RandomizedResponse", epsilon=e0), k),
                (law("Gaussian", sigma=sigma, sensitivity=1), n)], e, delta)  # fmt: skip
    for e0, k, sigma, n in (("0.1", 50, "10", 50), ("0.5", 4, "3", 2), ("1", 30, "8", 100)):
        mu = mp.sqrt(n) / mp.mpf(sigma)
        parts = [(log_laplace(mp.mpf(e0)), k), (log_gaussian(mu), 1)]
        for e in ("1", "3", "6", "9"):
            c = saddle(parts, mp.mpf(e), 60)
            delta = invert(parts, mp.mpf(e), c, 15 / mu)
            put("laplace and gaussian", [(law("Laplace", scale=1, sensitivity=e0), k),
                (law("Gaussian", sigma=sigma, sensitivity=1), n)], e, delta)  # fmt: skip
    for e0, k, e1, n, sigma, m in (("0.1", 50, "0.2", 20, "10", 50), ("0.3", 5, "0.7", 3, "1.5", 1)):
        mu = mp.sqrt(m) / mp.mpf(sigma)
        parts = [(log_laplace(mp.mpf(e0)), k), (log_response(mp.mpf(e1)), n), (log_gaussian(mu), 1)]
        for e in ("0.5", "2", "4", "7"):
            c = saddle(parts, mp.mpf(e), 60)
            three = [
                (law("Laplace", scale=1, sensitivity=e0), k),
                (law("RandomizedResponse", epsilon=e1), n),
                (law("Gaussian", sigma=sigma, sensitivity=1), m),
            ]
            put("laplace, response and gaussian", three, e, invert(parts, mp.mpf(e), c, 15 / mu))
    for q, sigma, k, tau, n in (("0.02", "1", 200, "4", 3), ("0.1", "1.5", 50, "10", 20)):
        mu, share, nu = 1 / mp.mpf(sigma), mp.mpf(q), mp.sqrt(n) / mp.mpf(tau)
        for e in ("0.5", "2", "4"):
            both = []
            for add in (False, True):
                rough = [(log_sampled(share, mu, add=add, reach=40), k), (log_gaussian(nu), 1)]
                c = saddle(rough, mp.mpf(e), 25)
                if add and chernoff(rough, mp.mpf(e), c) < both[0]:
                    continue
                c *= mp.mpf("0.6")
                reach = float(18 / nu + c)
                fine = [(log_sampled(share, mu, add=add, reach=reach), k), (log_gaussian(nu), 1)]
                both.append(invert(fine, mp.mpf(e), c, 15 / nu))
            put("sampled gaussian and gaussian", [(law("Sampled", q=q, sigma=sigma), k),
                (law("Gaussian", sigma=tau, sensitivity=1), n)], e, max(both))  # fmt: skip
    return found


if __name__ == "__main__":
    path = Path(__file__).with_name("accounting_references.json")
    path.write_text(json.dumps(cases(), indent=0) + "\n", encoding="utf-8")
