"""Risk in accounting: what an attacker may achieve, asked of the law of the noise itself.

The noise is chosen first, and then its own law is inverted: Laplace noise and Gaussian noise of one epsilon
have different risks, and a composition has less risk than the sum of its parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, Self

from tacit.accounting._cost import Cost
from tacit.accounting.numeric import float_down, log_down
from tacit.errors import TacitError
from tacit.fixes import Either, Set
from tacit.parameters import Choice, Delta, Pair, RealNumber, exactly_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting._algebra import Adjacency
    from tacit.accounting._budget import Budget
    from tacit.exact import Number

_INSIDE: Final = RealNumber(above=0, below=1, instead=0.05)
_ADVANTAGE: Final = RealNumber(
    above=0, below=1, instead=0.05, why="0 is the advantage of a coin, and 1 that of somebody who knows"
)
_ATTACK: Final = Pair(
    "probabilities: of a false alarm, and of a hit at this rate of false alarms", _INSIDE,
    example=(0.01, 0.02), why="a blind guess hits as often as it gives a false alarm",
)  # fmt: skip
_BELIEF: Final = Pair(
    "probabilities: of a belief before and after the answer", _INSIDE, example=(0.01, 0.02),
    why="a private answer may strengthen a belief, but not make it certain",
)  # fmt: skip
#: In which number a plan or a budget is stated that is asked for by a risk.
TOTALS: Final = Choice(("epsilon", "rho"))
#: The risks by which a plan or a budget can be asked for.
RISKS: Final = ("advantage", "attack", "belief")
_DIGITS = 7  # of an amount that a risk allows
_FURTHER = 8  # larger amounts that are tried above one that is too large
_TURNS = 200
_MAX_LOSS = 700.0  # a loss whose odds a double can hold


@dataclass(frozen=True, slots=True)
class Risk:
    """What an attacker may achieve at most.

    Parameters
    ----------
    name
        ``advantage``, ``attack`` or ``belief``.
    start
        The false-alarm rate of an attack, or the belief before; of an advantage, 0.
    end
        The advantage, the hit rate, or the belief afterwards.
    exception
        Of a belief: the probability with which an answer may move it further. With 0, no answer ever does.

    Examples
    --------
    >>> Risk.read(advantage=0.05).is_met(Cost.pure(0.1))
    True
    >>> Risk.read(attack=(0.01, 0.02)).is_met(Cost.pure(0.7))
    False
    """

    name: Literal["advantage", "attack", "belief"]
    start: Fraction
    end: Fraction
    exception: Fraction = Fraction(0)

    @classmethod
    def read(
        cls,
        *,
        advantage: Number | None = None,
        attack: tuple[Number, Number] | None = None,
        belief: tuple[Number, Number] | None = None,
        delta: Number = 0,
    ) -> Self:
        """Read one of the three risks, or refuse it.

        Parameters
        ----------
        advantage
            The most by which hits exceed false alarms.
        attack
            A false-alarm rate and the largest hit rate at it.
        belief
            A belief before the answer, and the largest belief afterwards.
        delta
            Of a belief: the probability with which an answer may move it further.
        """
        exactly_one(
            "a risk", advantage=advantage, attack=attack, belief=belief,
            fix=Either(Set(advantage=0.05), Set(attack=(0.01, 0.02)), Set(belief=(0.01, 0.02))),
        )  # fmt: skip
        if advantage is not None:
            return cls("advantage", Fraction(0), _ADVANTAGE.read("advantage", advantage))
        if attack is not None:
            return cls("attack", *_ATTACK.read("attack", attack))
        return cls("belief", *_BELIEF.read("belief", belief), Delta().read("delta", delta))

    @property
    def loss(self) -> float:
        """How far the odds of a belief may move, as a privacy loss, rounded down."""
        return float_down(log_down((self.end / (1 - self.end)) / (self.start / (1 - self.start))))

    def is_met(self, cost: Cost) -> bool:
        """Return whether no attacker achieves more, by the certified reading of the cost.

        Examples
        --------
        >>> gaussian = Cost.gaussian(sigma=1 / 0.1706, sensitivity=1)  # it reads (0.7033, 1e-6)
        >>> Risk.read(belief=(0.01, 0.02), delta=1e-6).is_met(gaussian)
        False
        """
        return self._reached(cost) <= self._allowed

    def used(self, cost: Cost) -> float:
        """Return about which share of the risk a cost uses; at most 1 exactly if it is met."""
        reached, allowed = self._reached(cost), self._allowed
        if self.name == "belief" and self.exception:
            share = _rarity(allowed) / _rarity(reached) if 0 < reached < 1 else 2.0 * (reached >= 1)
        else:
            base = self.start if self.name == "attack" else 0
            share = math.inf if reached is _UNBOUNDED else float((reached - base) / (allowed - base))
        return min(share, 1.0) if reached <= allowed else max(share, 1.0 + 2.0**-40)

    @property
    def _allowed(self) -> Fraction:
        """The bound on what `_reached` returns."""
        if self.name != "belief":
            return self.end
        return self.exception or Fraction(self.loss)

    def _reached(self, cost: Cost) -> Fraction:
        """Return advantage, hit rate, largest loss, or the chance of a larger loss, rounded up."""
        if self.name == "advantage":
            return Fraction(cost.advantage)
        if self.name == "attack":
            return 1 - Fraction(cost.tradeoff(self.start))
        if self.exception:
            return Fraction(cost.loss_exceeds(self.loss))
        spend = cost.spend
        return _UNBOUNDED if spend.delta or spend.epsilon is None else spend.epsilon

    def unknown_epsilon(self, delta: Fraction = Fraction(0)) -> float:
        """Return about the epsilon at which any (epsilon, delta) noise meets the risk; a start for searches.

        Examples
        --------
        >>> round(Risk.read(advantage=0.05).unknown_epsilon(), 6)
        0.100083
        >>> round(Risk.read(attack=(0.001, 0.01)).unknown_epsilon(Fraction(1, 10**6)), 5)
        2.30249
        """
        start, end, leak = float(self.start), float(self.end), float(delta)
        match self.name:
            case "advantage":
                epsilon = math.log(max((1 + end - 2 * leak) / (1 - end), 1.0))
            case "attack":
                missed = math.log(max((1 - leak - start) / (1 - end), 1.0))
                epsilon = max(math.log(max((end - leak) / start, 1.0)), missed)
            case _:
                epsilon = self.loss
        return epsilon or 1e-3 * end

    def largest(
        self, used: Callable[[Fraction], float], start: float, *, higher: bool = False
    ) -> Fraction | None:
        """Return the largest amount, in seven digits of `start`, of which at most the whole risk is used.

        Parameters
        ----------
        used
            Returns which share of the risk is used at an amount: at most 1 exactly if the risk is met.
        start
            An amount near the result.
        higher
            Whether larger amounts are tried where one is too large, because they may have other noise.

        Returns
        -------
        Fraction or None
            The amount, at which `used` was asked and is at most 1; None if no amount meets the risk.
        """
        unit = Fraction(10) ** (math.floor(math.log10(start)) + 1 - _DIGITS)
        shares: dict[int, float] = {}

        def share(number: int) -> float:
            if number not in shares:
                shares[number] = used(number * unit)
            return shares[number]

        low, high = _bracket(share, max(1, int(start / unit)), higher=higher)
        for turn in range(_TURNS):
            if high - low <= 1:
                break
            number = _between((low, share(low) if low else 0.0), (high, share(high)), turn)
            low, high = (number, high) if share(number) <= 1 else (low, number)
        return low * unit if low else None

    def words(self, cost: Cost, noun: str = "person", adjacency: Adjacency = "add/remove") -> str:
        """Say what a cost lets an attacker achieve, in the terms of this risk.

        Examples
        --------
        >>> Risk.read(advantage=0.05).words(Cost.pure(0.1), "patient")[-51:]
        'is right at most 52.5 % of the time instead of 50 %'
        >>> Risk.read(belief=(0.01, 0.02)).words(Cost.pure(0.7), "patient")
        'a belief of 1 % that one patient is in the data becomes at most 1.994 %'
        """
        fact = f"one {noun} is in the data"
        if adjacency == "replace":
            fact = f"the data of one {noun} has the one of two values and not the other"
        match self.name:
            case "advantage":
                right = _percent((1 + self._reached(cost)) / 2)
                return f"whoever guesses whether {fact} is right at most {right} of the time instead of 50 %"
            case "attack":
                alarms, hits = _percent(self.start), _percent(self._reached(cost))
                return (
                    f"whoever claims that {fact}, and is wrong for at most {alarms} of those of whom it is "
                    f"not true, finds at most {hits} of those of whom it is"
                )
            case _:
                return f"a belief of {_percent(self.start)} that {fact} becomes at most {self._belief(cost)}"

    def _belief(self, cost: Cost) -> str:
        """Say how strong a belief may become, except with the probability that was asked for."""
        spend = cost.spend
        exception = max(self.exception, 2 * spend.delta)
        if not exception and spend.epsilon is None:
            exception = Fraction(1, 10**6)
        if not exception:
            loss = float(spend.epsilon or 0)
        else:
            low, loss = 0.0, 1.0
            while Fraction(cost.loss_exceeds(loss)) > exception and loss < _MAX_LOSS:
                low, loss = loss, 2 * loss
            while loss - low > 1e-6 * loss:
                middle = (low + loss) / 2
                low, loss = (low, middle) if cost.loss_exceeds(middle) <= exception else (middle, loss)
            if not spend.delta and spend.epsilon is not None:
                loss = min(loss, float(spend.epsilon))
        odds = float(self.start / (1 - self.start)) * math.exp(min(loss, _MAX_LOSS)) * (1 + 1e-12)
        after = _percent(Fraction(odds / (1 + odds)))
        return f"{after}, except with probability {float(exception):g}" if exception else after


_UNBOUNDED: Final = Fraction(10**300)  # a loss that no belief allows


def cost_of_budget(budget: Budget) -> Cost:
    """Return the cost of everything that a budget may pay for, whatever it is.

    Examples
    --------
    >>> from tacit.accounting import Budget
    >>> cost_of_budget(Budget(epsilon=1)) == Cost.pure(1)
    True
    """
    if budget.rho is None:
        return Cost.approximate(budget.epsilon or 0, budget.delta)
    cost = Cost.zcdp(budget.rho)
    return cost + Cost.approximate(0, budget.delta) if budget.delta else cost


def budget_within(
    advantage: Number | None,
    attack: tuple[Number, Number] | None,
    belief: tuple[Number, Number] | None,
    delta: Number,
    total: str,
) -> Budget:
    """Return the largest budget in epsilon or rho, in seven digits, within a risk; see `Budget.from_risk`."""
    from tacit.accounting._budget import Budget

    risk = Risk.read(advantage=advantage, attack=attack, belief=belief)
    form, leak = TOTALS.read("total", total), Delta().read("delta", delta)

    def budget(amount: Fraction) -> Budget:
        return Budget(amount, leak) if form == "epsilon" else Budget(delta=leak, rho=amount)

    start = amount_near(risk, form, leak)
    amount = risk.largest(lambda number: risk.used(cost_of_budget(budget(number))), start)
    if amount is None:
        raise out_of_reach(risk, leak)
    return budget(amount)


def amount_near(risk: Risk, total: str, delta: Fraction) -> float:
    """Return an epsilon or a rho near the largest that a risk allows."""
    epsilon = risk.unknown_epsilon(delta)
    return epsilon if total == "epsilon" else max(epsilon**2 / 2, 1e-300)


def out_of_reach(risk: Risk, delta: Fraction) -> TacitError:
    """Say that no amount of noise meets a risk, and what would."""
    if risk.name == "belief" and not risk.exception:
        return TacitError(
            "no-guarantee",
            "this kind of noise does not keep a belief within a limit for every answer",
            why="with Gaussian noise or a delta, some rare answers move a belief by any factor",
            fix=Set(total="epsilon", delta=0),
        )
    larger = {"advantage": Set(advantage=0.05)}.get(risk.name, Set(**{risk.name: (0.01, 0.02)}))
    return TacitError(
        "no-guarantee",
        f"no amount of noise meets this {risk.name}",
        why="a part of the cost does not shrink with the noise"
        + (f": delta {float(delta):g} uses too much of the risk" if delta else ""),
        fix=Either(Set(delta=float(f"{float(delta) / 100:.1g}")), larger) if delta else larger,
    )


def _bracket(share: Callable[[int], float], number: int, *, higher: bool) -> tuple[int, int]:
    """Return a number at which the risk is met, or 0, and a larger one at which it is not.

    With `higher`, numbers up to 25 times as large are tried above one that is too large.
    """
    low = high = number
    while low and share(low) > 1:
        low, high = low // 2, low
    more, fails = (_FURTHER if higher else 0), int(high > low)
    tried = number
    while fails <= more:
        tried = 3 * tried // 2 + 1 if higher else 2 * tried
        if share(tried) <= 1:
            low = high = tried
            fails = 0
        else:
            high = high if high > low else tried
            fails += 1
    return low, high


def _between(low: tuple[int, float], high: tuple[int, float], turn: int) -> int:
    """Return a number between two: on the straight line in logarithms, or by turns in the middle."""
    (lower, at_lower), (upper, at_upper) = low, high
    middle = (lower + upper) // 2
    if turn % 4 == 3 or not (lower and math.isfinite(at_upper) and 0 < at_lower < at_upper):
        return middle
    slope = math.log(at_upper / at_lower) / math.log(upper / lower)
    crossing = lower * math.exp(min(-math.log(at_lower) / slope, 700.0))
    return min(max(math.floor(crossing) + turn % 2, lower + 1), upper - 1)


def _rarity(probability: Fraction) -> float:
    """Return a measure of a small probability that grows about linearly with the noise."""
    return math.sqrt(max(-2 * math.log(probability), 1e-12))


def _percent(share: Fraction) -> str:
    """Write a probability in percent, in four digits, rounded up."""
    exact = Decimal(share.numerator * 100) / Decimal(share.denominator)
    rounded = Context(prec=4, rounding=ROUND_CEILING).create_decimal(exact - Decimal("1e-15"))
    return f"{float(rounded):.4g} %"
