"""Prepaid fits: one charge for all fits of a search, one run of instalments.

Each unit is in a fold by a keyed hash of its own, whoever else is in the data.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting import Cost
from tacit.core import Dataset, Draft, Goal, RunTask, Step, Unit, open_account, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Code, Set
from tacit.learn._cells import cell_name, cells, column_cells, written_cells
from tacit.learn.estimators._fits import digest_of_fit, fit_noise, read_fit_goal, share_of_noise
from tacit.learn.estimators._fitted_numbers import FittedNumbers
from tacit.learn.estimators._identity import needs_names, open_for_fit, private_parts
from tacit.mechanisms import RoundedGaussian, SampledSteps

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import Measurement, Noisy, Plan, Release, Task
    from tacit.ledger import Ledger


@dataclass(frozen=True)
class Folds:
    """A splitter for ``cv=`` of scikit-learn that divides units into folds, unit by unit.

    Guarantee: the fold of a unit is a function of its owner's name (``groups``), or else of its own row, and
    of the ledger's key. One unit more or less changes no other unit's fold.

    Parameters
    ----------
    number
        How many folds.
    ledger
        The path of the ledger, as in the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(8.0)[:, None]
    >>> parts = [test for _, test in Folds(2).split(X)]
    >>> sorted(np.concatenate(parts).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7]
    """

    number: int = 5
    ledger: str | os.PathLike[str] | None = None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        del X, y, groups
        return count("number", self.number, zero=False)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield for each fold the rows to train on and the rows to test on."""
        folds = self.folds_of(X, y, groups)
        for fold in range(self.get_n_splits()):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def folds_of(self, X: Any, y: Any = None, groups: Any = None) -> NDArray[np.int64]:
        """Return the fold of each row."""
        ledger = open_for_fit(self.ledger)
        try:
            rows = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(cells(X))
            return unit_folds(ledger, self.get_n_splits(), rows, y, groups)
        finally:
            if self.ledger is not None:
                ledger.close()


def unit_folds(ledger: Ledger, number: int, rows: NDArray[Any], y: Any, owners: Any) -> NDArray[np.int64]:
    """Return the fold of each row: by its owner's name, else by its own content, keyed with the ledger's key.

    Examples
    --------
    >>> from tacit.ledger import Ledger
    >>> folds = unit_folds(Ledger.memory(), 5, np.zeros((3, 1)), None, ["ana", "ben", "ana"])
    >>> bool(folds[0] == folds[2])
    True
    """
    if owners is not None:
        names = [cell_name(one) for one in column_cells(owners)]
    else:
        targets = [None] * len(rows) if y is None else column_cells(y).tolist()
        names = [written_cells([row.tolist(), target]) for row, target in zip(rows, targets, strict=True)]
    digests = [ledger.keyed_digest("folds", one) for one in names]
    return np.array([int(one[:15], 16) % number for one in digests], dtype=np.int64)


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
    for mechanism in mechanisms:
        match mechanism:
            case RoundedGaussian():
                total += (mechanism.sensitivity / mechanism.sigma) ** 2
            case SampledSteps(rate=1):
                total += mechanism.steps * (mechanism.sensitivity / mechanism.sigma) ** 2
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
    step: Step[Any] = Step(AnyFit(said.noise), lambda draw, _: draw)

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


def draw_prepaid(data: Dataset, fits: PrepaidFits, fit: Task[Any, FittedNumbers]) -> Release[FittedNumbers]:
    """Return the instalment of this fit: a stored one of the same fit for nothing, else the next one."""
    gaussian_share(fit.mechanisms)
    run, identity = _plan_of(data, fits, fit).run(), digest_of_fit(fit)
    for stored in run:
        if stored.content.settings.get("fit") == identity:
            return stored
    try:
        return run.next()
    except TacitError as refusal:
        if refusal.code != "run-finished" or run.remaining:
            raise
        raise _all_used(fits) from None


def _all_used(fits: PrepaidFits) -> TacitError:
    """Refuse a fit beyond those that were paid for."""
    subject = "the 1 fit that was prepaid was" if fits.fits == 1 else f"all {fits.fits:,} prepaid fits were"
    more = f'fits={fits.fits + 1}, name="{fits.name} 2"'
    return TacitError(
        "run-finished",
        f"{subject} used, and this fit is one more",
        why="each candidate, each fold and each private step of a pipeline takes one fit, and the final fit "
        "takes one too; nothing was charged",
        fix=Code(f"tc.learn.prepaid(estimator, {more}, epsilon=1, delta=1e-6)"),
    )


def _plan_of(
    data: Dataset, fits: PrepaidFits, fit: Task[Any, FittedNumbers] | None = None
) -> Plan[FittedNumbers]:
    """Return the plan of a run of fits, of which the next one is given."""
    from tacit.learn._questions import PREPAID

    return PREPAID.ask(data, said=fits, fit=fit).planned(Goal.read(epsilon=fits.epsilon, delta=fits.delta))


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
    names = {(part.dataset, str(part.ledger), part.version, part.unit, part.size) for part in parts}
    if len(names) != 1:
        raise bad_parameter(
            "estimator", "one that contains private estimators of one dataset",
            f"{len(names)} datasets", fix=Code("tc.learn.prepaid(estimator, fits=16, epsilon=1, delta=1e-6)"),
        )  # fmt: skip
    leader = parts[0]
    needs_names(leader)
    goal, _ = read_fit_goal(epsilon=epsilon, delta=delta, size=leader.size)
    number = count("fits", fits, zero=False)
    noise = share_of_noise(fit_noise(goal), Fraction(1, number))
    assert goal.epsilon is not None  # noqa: S101 - read checks it
    facts = PrepaidFits(name, number, noise, goal.epsilon, goal.delta)
    identity = read_identity(
        name=leader.dataset, version=leader.version, unit=Unit.row() if leader.unit == "row" else leader.unit
    )
    ledger = open_for_fit(leader.ledger)
    try:
        open_account(identity, leader.budget, ledger)
        plan = _plan_of(Dataset(identity, ledger), facts)
        plan.run()
        for part in parts:
            part.prepaid = facts
        yield plan
    finally:
        for part in parts:
            part.prepaid = None
        if leader.ledger is not None:
            ledger.close()


def _check_folds(estimator: Any) -> None:
    """Refuse a search whose folds depend on the positions of rows."""
    if hasattr(estimator, "cv") and not isinstance(estimator.cv, Folds):
        raise TacitError(
            "not-allowed",
            "the search divides patients into folds by the position of their rows",
            why="one more patient would move others into other folds, and then no number of fits bounds the "
            "cost",
            fix=Set(cv="tc.learn.Folds(5)"),
        )
