"""Prepaid fits in learning: one charge for all fits of a search, one run of instalments."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Cost
from tacit.core import Dataset, Draft, Goal, RunTask, Step, Unit, open_account, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Code, Set
from tacit.learn._declared_data import needs_names
from tacit.learn._fit_names import open_for_fit, private_parts
from tacit.learn._fit_noise import fit_noise, read_fit_goal, share_of_noise
from tacit.learn._fit_steps import digest_of_fit
from tacit.learn._fitted_numbers import FittedNumbers
from tacit.mechanisms import RoundedGaussian, SampledSteps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tacit.core import Measurement, Noisy, Plan, Release, Task


@dataclass(frozen=True)
class PrepaidFits:
    """What an estimator carries while its fits are prepaid: public facts from which the run is found.

    Parameters
    ----------
    name
        What the run is called.
    fits
        How many fits were paid for.
    noise
        The noise multiplier of one fit.
    epsilon, delta
        What all fits together promise.
    """

    name: str
    fits: int
    noise: Fraction
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class AnyFit:
    """A mechanism for one fit of any kind: its own mechanisms, whose noise is checked, cost one Gaussian.

    Guarantee: the fit's mechanisms are Gaussian, and their squared sensitivities over variances add up to at
    most 1 / noise^2. So whichever fit comes next, also one that was chosen by earlier answers, the Gaussian
    with this noise multiplier dominates it.
    """

    noise: Fraction

    @property
    def cost(self) -> Cost:
        """The cost of one Gaussian with the noise multiplier."""
        return Cost.gaussian(sigma=self.noise, sensitivity=1)

    def release(self, value: Task[Any, FittedNumbers]) -> list[str]:
        """Fit, and return the identity of the fit and what was learned, as text."""
        if gaussian_share(value.mechanisms) * self.noise**2 > 1:
            raise ValueError("the fit costs more than was paid for it")
        fitted = value.reading(value.draw(), Fraction(95, 100))
        return [digest_of_fit(value), json.dumps(fitted.to_json())]

    def to_json(self) -> dict[str, Any]:
        """Return the name, the noise and the cost."""
        return {
            "mechanism": "any-fit",
            "noise": str(self.noise),
            "numerics": "exact",
            "cost": self.cost.to_json(),
        }


def gaussian_share(mechanisms: Sequence[Measurement]) -> Fraction:
    """Return the sum of squared sensitivities over variances of Gaussian mechanisms, exactly.

    Examples
    --------
    >>> gaussian_share([RoundedGaussian(sigma=2, sensitivity=1), RoundedGaussian(sigma=4, sensitivity=2)])
    Fraction(1, 2)
    """
    total = Fraction(0)
    for one in mechanisms:
        match one:
            case RoundedGaussian():
                total += (one.sensitivity / one.sigma) ** 2
            case SampledSteps(rate=1):
                total += one.steps * (one.sensitivity / one.sigma) ** 2
            case _:
                raise TacitError(
                    "not-allowed",
                    "an estimator whose noise is not Gaussian cannot be fitted in a prepaid run or a search",
                    why="the run was charged for Gaussian noise",
                    fix=Code("estimator.fit(X, y)"),
                )
    return total


def draft_prepaid(
    data: Dataset, goal: Goal, *, said: PrepaidFits, fit: Task[Any, FittedNumbers] | None
) -> Draft[FittedNumbers]:
    """Draft a run of fits, of which the next one is given; it is no part of the run's identity."""
    del data
    step: Step[Any] = Step(AnyFit(said.noise), lambda held, _: held)

    def reading(number: int, noisy: Mapping[int, Sequence[Noisy]], _: Fraction) -> FittedNumbers:
        [identity, text] = noisy[number][0]
        fitted = FittedNumbers.from_json(json.loads(text))
        return replace(fitted, settings={**fitted.settings, "fit": identity})

    task = RunTask(
        document={"prepaid fits": said.fits, "name": said.name},
        instalments=said.fits,
        steps_of=lambda _: (step,),
        open=lambda _: fit,
        reading=reading,
    )
    return Draft(
        task=task,
        asked=f"{said.fits:,} fits, paid together",
        facts=[("fits", f"{said.fits:,}, each with noise multiplier {float(said.noise):.4g}")],
        goal=goal,
    )


def draw_prepaid(data: Dataset, said: PrepaidFits, fit: Task[Any, FittedNumbers]) -> Release[FittedNumbers]:
    """Return the instalment of this fit: a stored one of the same fit for nothing, else the next one."""
    gaussian_share(fit.mechanisms)
    run, identity = _plan_of(data, said, fit).run(), digest_of_fit(fit)
    for stored in run:
        if stored.content.settings.get("fit") == identity:
            return stored
    try:
        return run.next()
    except TacitError as refusal:
        if refusal.code != "run-finished" or run.remaining:
            raise
        raise _all_used(said) from None


def _all_used(said: PrepaidFits) -> TacitError:
    """Refuse a fit beyond those that were paid for."""
    paid = "the 1 fit that was prepaid was" if said.fits == 1 else f"all {said.fits:,} prepaid fits were"
    more = f'fits={said.fits + 1}, name="{said.name} 2"'
    return TacitError(
        "run-finished",
        f"{paid} used, and this fit is one more",
        why="each candidate, each fold and each private step of a pipeline takes one fit, and the final fit "
        "takes one too; nothing was charged",
        fix=Code(f"tc.learn.prepaid(estimator, {more}, epsilon=1, delta=1e-6)"),
    )


def _plan_of(
    data: Dataset, said: PrepaidFits, fit: Task[Any, FittedNumbers] | None = None
) -> Plan[FittedNumbers]:
    """Return the plan of a run of fits, of which the next one is given."""
    from tacit.learn._questions import PREPAID

    return PREPAID.ask(data, said=said, fit=fit).planned(Goal.read(epsilon=said.epsilon, delta=said.delta))


@contextmanager
def prepaid(
    estimator: Any, *, fits: int, epsilon: Number, delta: Number, name: str = "prepaid fits"
) -> Iterator[Plan[FittedNumbers]]:
    """Pay once for all fits that scikit-learn will start in this block.

    Guarantee: the whole block costs (epsilon, delta), charged before the first fit. Each fit, also in another
    process, draws one instalment of the run, with noise for its share; its own ``epsilon`` is not used. A fit
    of the same data with the same parameters is a stored instalment, for nothing. Fits beyond the number that
    was paid for are refused. The guarantee holds for a patient if the folds are made patient by patient, with
    `tacit.learn.Folds`; scikit-learn's own folds depend on the positions of all rows.

    Parameters
    ----------
    estimator
        A private estimator, or a pipeline or search that contains one. Its fits, and those of its copies, are
        prepaid as long as the block lasts.
    fits
        How many fits: candidates times folds, plus one for the final fit; of each private step.
    epsilon, delta
        What all of them cost together.
    name
        What the run is called. A second run with the same numbers needs another name.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> model = tc.learn.Standardiser(
    ...     epsilon=1, delta=1e-6, bounds=(0, 1), size=100, dataset="doctest of prepaid fits",
    ...     budget=tc.Budget(epsilon=4, delta=1e-5),
    ... )
    >>> with tc.learn.prepaid(model, fits=3, epsilon=1, delta=1e-6) as plan:
    ...     _ = model.fit(np.zeros((100, 2)))
    >>> plan.instalments
    3
    """
    parts = private_parts(estimator)
    _check_folds(estimator)
    names = {(one.dataset, str(one.ledger), one.version, one.unit, one.size) for one in parts}
    if len(names) != 1:
        raise bad_parameter(
            "estimator", "one that contains private estimators of one dataset",
            f"{len(names)} datasets", fix=Code("tc.learn.prepaid(estimator, fits=16, epsilon=1, delta=1e-6)"),
        )  # fmt: skip
    first = parts[0]
    needs_names(first)
    goal, _ = read_fit_goal(epsilon=epsilon, delta=delta, size=first.size)
    number = count("fits", fits, zero=False)
    noise = share_of_noise(fit_noise(goal), Fraction(1, number))
    assert goal.epsilon is not None  # noqa: S101 - read checks it
    said = PrepaidFits(name, number, noise, goal.epsilon, goal.delta)
    identity = read_identity(
        name=first.dataset, version=first.version, unit=Unit.row() if first.unit == "row" else first.unit
    )
    ledger = open_for_fit(first.ledger)
    try:
        open_account(identity, first.budget, ledger)
        plan = _plan_of(Dataset(identity, ledger), said)
        plan.run()
        for one in parts:
            one.prepaid = said
        yield plan
    finally:
        for one in parts:
            one.prepaid = None
        if first.ledger is not None:
            ledger.close()


def _check_folds(estimator: Any) -> None:
    """Refuse a search whose folds depend on the positions of rows."""
    from tacit.learn._folds import Folds

    if hasattr(estimator, "cv") and not isinstance(estimator.cv, Folds):
        raise TacitError(
            "not-allowed",
            "the search divides patients into folds by the position of their rows",
            why="one more patient would move others into other folds, and then no number of fits bounds the "
            "cost",
            fix=Set(cv="tc.learn.Folds(5)"),
        )
