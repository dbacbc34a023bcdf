"""`Budget`, what may be learned in total, and `Spend`, what one charge takes from it: exact numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting._display import shown
from tacit.accounting._json import (
    VERSION,
    WITH_CURVE,
    WITH_PROMISE,
    Json,
    RenyiCurve,
    read,
    read_curve,
    read_fields,
    write,
    write_curve,
)
from tacit.accounting._zcdp import pure_divergence, pure_rho
from tacit.accounting.numeric import on_grid
from tacit.exact import rational
from tacit.fixes import Either, Set
from tacit.parameters import Delta, Instance, Listed, Probability, RealNumber, exactly_one

if TYPE_CHECKING:
    from tacit.exact import Number


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """What may be learned in total about any one unit.

    Parameters
    ----------
    epsilon
        Pure differential privacy: no answer changes anyone's odds by more than a factor of exp(epsilon).
    delta
        With epsilon: the delta of (epsilon, delta)-differential privacy. With rho: the probability with which
        the rho may not hold.
    rho
        Zero-concentrated differential privacy (zCDP), the natural measure of Gaussian noise.

    Give either epsilon or rho. A number is read by its decimal notation, so ``0.1`` is exactly one tenth.

    Examples
    --------
    >>> Budget(epsilon=1, delta=1e-6)
    Budget(epsilon=1, delta=1e-06)
    >>> Budget(1) == Budget(epsilon=1.0)
    True
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None

    def __init__(
        self, epsilon: Number | None = None, delta: Number = 0, *, rho: Number | None = None
    ) -> None:
        exactly_one(
            "a budget", epsilon=epsilon, rho=rho,
            why="there is no default epsilon: the curator decides how much may be learned",
            fix=Either(Set(epsilon=1), Set(epsilon=1, delta=1e-6), Set(rho=0.1)),
        )  # fmt: skip
        object.__setattr__(self, "epsilon", None if epsilon is None else rational("epsilon", epsilon))
        object.__setattr__(self, "delta", read_delta(delta))
        object.__setattr__(self, "rho", None if rho is None else rational("rho", rho))

    @classmethod
    def from_risk(
        cls,
        *,
        advantage: Number | None = None,
        attack: tuple[Number, Number] | None = None,
        belief: tuple[Number, Number] | None = None,
        delta: Number = 0,
        total: str = "epsilon",
    ) -> Budget:
        """Return the largest budget of a form within a risk, whatever noise spends it.

        Guarantee: everything that the budget pays for, together, stays within the risk. For one plan whose
        noise is known, `plan(advantage=...)` allows more.

        Parameters
        ----------
        advantage
            The most by which an attacker's hits may exceed the false alarms, for all answers together.
        attack
            A false-alarm rate and the largest hit rate at it.
        belief
            A belief before all answers, and the largest belief afterwards, whatever the answers are.
        delta
            The delta of the budget. A budget with a delta bounds no belief for every answer.
        total
            ``"epsilon"`` or ``"rho"``.

        Examples
        --------
        >>> Budget.from_risk(advantage=0.05)
        Budget(epsilon=0.1000834)
        >>> Budget.from_risk(attack=(0.01, 0.02), delta=1e-6)
        Budget(epsilon=0.6930971, delta=1e-06)
        >>> Budget.from_risk(belief=(0.5, 0.75))
        Budget(epsilon=1.098612)
        """
        from tacit.accounting._risk import budget_within

        return budget_within(advantage, attack, belief, delta, total)

    def __repr__(self) -> str:
        return f"Budget({_fields(self.epsilon, self.delta, self.rho)})"

    def to_json(self) -> Json:
        """Return the budget as JSON data, exact and readable by every later version."""
        return {
            "version": VERSION,
            "epsilon": write(self.epsilon),
            "delta": write(self.delta),
            "rho": write(self.rho),
        }

    @classmethod
    def from_json(cls, data: object) -> Budget:
        """Read what `to_json` wrote.

        Examples
        --------
        >>> Budget.from_json(Budget(rho=0.1).to_json())
        Budget(rho=0.1)
        """
        epsilon, delta, rho = _read_three("budget", data)
        return cls(epsilon, delta, rho=rho)


@dataclass(frozen=True, slots=True, init=False)
class Spend:
    """What one charge takes from a budget: exact numbers, each at or above the true value.

    Guarantee
    ---------
    For every pair of neighbours and both directions, the law of the answer is a mixture: with probability
    ``1 - delta``, a part whose privacy loss stays within epsilon, that is rho-zCDP and whose Renyi
    divergences stay within the curve; with probability delta, anything. It is the *same* part for epsilon,
    rho and the curve, and the filters rely on this (`docs/proofs/filters.md`). The promise is a second
    statement about the same answer, which no filter adds to the first.

    Parameters
    ----------
    epsilon
        None if no finite epsilon holds (Gaussian noise).
    delta
        In [0, 1].
    rho
        None if no finite rho holds. A finite epsilon always gives a rho of at most epsilon tanh(epsilon/2).
    curve
        Pairs of a Renyi order above 1 and the divergence of that order, None if it is not finite. Filters
        ask for it at their own orders (`Filter.spend_of`). Other orders follow from rho and epsilon.
    promise
        The epsilon and delta that the answer was promised to keep, as a budget. A promise that says no more
        than the epsilon and delta of the spend is dropped, and so is one in rho.

    Numbers whose denominator has at most 1000 bits are kept exactly. Others are rounded up to 30 significant
    digits (no finer than 10^-60).

    Examples
    --------
    >>> Spend(epsilon=0.5, rho=0.1)
    Spend(epsilon=0.5, rho=0.1)
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    curve: RenyiCurve
    promise: Budget | None

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        curve: Iterable[tuple[Number, Number | None]] = (),
        promise: Budget | None = None,
    ) -> None:
        exact = None if epsilon is None else on_grid(rational("epsilon", epsilon, zero=True))
        mass = rational("delta", delta, zero=True)  # first, as in `read_delta`
        Probability(instead=1e-6).read("delta", delta)
        upper = None if rho is None else on_grid(rational("rho", rho, zero=True))
        if exact is not None:
            implied = pure_rho(exact)
            upper = implied if upper is None else min(upper, implied)
        object.__setattr__(self, "epsilon", exact)
        object.__setattr__(self, "delta", min(Fraction(1), on_grid(mass)))
        object.__setattr__(self, "rho", upper)
        object.__setattr__(self, "curve", _checked_curve(curve) if curve else ())
        object.__setattr__(self, "promise", None if promise is None else self._new_promise(promise))

    def _new_promise(self, promise: Budget) -> Budget | None:
        """Return a promise if it says more than epsilon and delta of the spend themselves."""
        Instance(Budget, "promise=Budget(epsilon=0.5, delta=1e-7)").read("promise", promise)
        if promise.epsilon is None:
            return None
        if self.epsilon is None or self.epsilon > promise.epsilon or self.delta > promise.delta:
            return promise
        return None

    @property
    def promised(self) -> tuple[Fraction | None, Fraction]:
        """The pair of epsilon and delta that the answer keeps; epsilon is None if there is none.

        Examples
        --------
        >>> Spend(rho=0.01, promise=Budget(0.5, 1e-7)).promised
        (Fraction(1, 2), Fraction(1, 10000000))
        >>> Spend(0.5).promised
        (Fraction(1, 2), Fraction(0, 1))
        """
        if self.promise is None:
            return self.epsilon, self.delta
        return self.promise.epsilon, self.promise.delta

    def divergence(self, order: Fraction) -> Fraction | None:
        """Return an upper value of the Renyi divergence of an order: from the curve, or from rho and epsilon.

        Examples
        --------
        >>> Spend(rho=0.1, curve=[(4, 0.25)]).divergence(Fraction(4)), Spend(rho=0.1).divergence(Fraction(4))
        (Fraction(1, 4), Fraction(2, 5))
        """
        for listed_order, value in self.curve:
            if listed_order == order and value is not None:
                return value
        if self.rho is None:
            return None
        bound = order * self.rho
        return bound if self.epsilon is None else min(bound, pure_divergence(self.epsilon, order))

    def __repr__(self) -> str:
        implied = self.epsilon is not None and self.rho == pure_rho(self.epsilon)
        parts = [_fields(self.epsilon, self.delta, None if implied else self.rho)]
        if self.curve:
            points = ", ".join(
                f"({shown(order)}, {None if value is None else shown(value)})" for order, value in self.curve
            )
            parts.append(f"curve=[{points}]")
        if self.promise is not None:
            parts.append(f"promise={self.promise}")
        return f"Spend({', '.join(part for part in parts if part)})"

    def __str__(self) -> str:
        parts = {"epsilon": self.epsilon, "rho": self.rho if self.epsilon is None else None}
        if self.epsilon is None and self.rho is None:
            points = [(order, value) for order, value in self.curve if value is not None]
            if not points:
                return "an unlimited loss"
            parts = {f"Renyi divergence of order {float(order):g}:": value for order, value in points[:1]}
        parts["delta"] = self.delta
        return ", ".join(f"{name} {float(value):.6g}" for name, value in parts.items() if value) or "nothing"

    def to_json(self) -> Json:
        """Return the spend as JSON data, exact and readable by every later version."""
        stored: Json = {
            "version": WITH_CURVE if self.curve else VERSION,
            "epsilon": write(self.epsilon),
            "delta": write(self.delta),
            "rho": write(self.rho),
        }
        if self.promise is not None:
            further = {"curve": write_curve(self.curve), "promise": self.promise.to_json()}
            return {**stored, **further, "version": WITH_PROMISE}
        return {**stored, "curve": write_curve(self.curve)} if self.curve else stored

    @classmethod
    def from_json(cls, data: object) -> Spend:
        """Read what `to_json` wrote.

        Examples
        --------
        >>> spend = Spend(rho=0.1, curve=[(4, 0.25)])
        >>> Spend.from_json(spend.to_json()) == spend
        True
        """
        if isinstance(data, Mapping) and "curve" in data:
            fields, version = {"epsilon", "delta", "rho", "curve"}, WITH_CURVE
            if "promise" in data:
                fields, version = fields | {"promise"}, WITH_PROMISE
            stored = read_fields("spend", data, fields, version=version)
            three = {name: stored[name] for name in ("epsilon", "delta", "rho")}
            promise = Budget.from_json(stored["promise"]) if "promise" in stored else None
            return cls(
                *_read_three("spend", {"version": VERSION, **three}), read_curve(stored["curve"]), promise
            )
        return cls(*_read_three("spend", data))


def read_delta(delta: Number) -> Fraction:
    """Read a delta in [0, 1)."""
    exact = rational("delta", delta, zero=True)  # first: "x" is not a number, rather than out of range
    Delta().read("delta", delta)
    return exact


def _checked_curve(curve: Iterable[tuple[Number, Number | None]]) -> RenyiCurve:
    """Read orders above 1, ascending, each once; values are exact or rounded up."""
    points: list[tuple[Fraction, Fraction | None]] = []
    for point in curve:
        order, divergence = Listed("numbers: an order and its divergence", "[(2, 0.1)]", 2, 2).read(
            "curve", point
        )
        RealNumber(above=1, instead=2).read("order", order)
        value = None if divergence is None else on_grid(rational("divergence", divergence, zero=True))
        points.append((rational("order", order), value))
    Listed("orders", "[(2, 0.1)]", 0, rising=True).read("curve", [order for order, _ in points])
    return tuple(points)


def _read_three(kind: str, data: object) -> tuple[Fraction | None, Fraction, Fraction | None]:
    stored = read_fields(kind, data, {"epsilon", "delta", "rho"})
    epsilon, rho = (None if stored[name] is None else read(name, stored[name]) for name in ("epsilon", "rho"))
    return epsilon, read("delta", stored["delta"]), rho


def _fields(epsilon: Fraction | None, delta: Fraction, rho: Fraction | None) -> str:
    fields = {"epsilon": epsilon, "delta": delta or None, "rho": rho}
    return ", ".join(f"{name}={shown(value)}" for name, value in fields.items() if value is not None)
