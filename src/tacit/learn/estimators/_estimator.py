"""The private estimator: scikit-learn's conventions around a plan, a charge and a release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.core import Release, Unit
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.learn._cells import cells, refuse_constant, refuse_unknown_labels, stored_types
from tacit.learn._examples import Examples, examples
from tacit.learn._questions import FIT
from tacit.learn.estimators._declared_bounds import read_feature_bounds
from tacit.learn.estimators._fits import ANY_FIT_GOAL, read_fit_goal
from tacit.learn.estimators._fitted_numbers import FittedNumbers
from tacit.learn.estimators._identity import (
    check_shape,
    data_digest,
    needs_names,
    one_column,
    open_for_fit,
    refuse_drawn_rows,
    refuse_exact_scores,
    refuse_hidden_fits,
)
from tacit.learn.estimators._prepaid import draw_prepaid

if TYPE_CHECKING:
    import os
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Budget
    from tacit.core import Plan, Question
    from tacit.learn.estimators._fits import FitSteps
    from tacit.learn.estimators._prepaid import PrepaidFits


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What every private estimator shares: the declaration of the data, the plan, and the fit.

    Guarantee: `fit` charges the ledger for (epsilon, delta) before it computes anything, and everything that
    it learns comes from the release, add/remove of one unit. The same data with the same parameters is the
    stored release, free and identical. Public facts (size, bounds, classes) are declared and never read.

    A subclass is a dataclass with ``kw_only=True, eq=False, repr=False``. It names its ``kind``, says what it
    computes in `_fit_steps`, and takes what was learned in `_learned`.

    Parameters
    ----------
    epsilon, delta
        The promise of one fit; delta is at most 1 / size.
    dataset
        The name of the data in the ledger. A durable name, so that copies of the estimator (`clone`,
        cross-validation, other processes) pay from the same account.
    ledger
        The path or address of the ledger; None keeps one in memory for this process.
    budget
        What may be learned of this dataset in total.
    size
        About how many units there are: public.
    unit
        Who is protected: ``"row"`` where each row is another person, else a name such as ``"patient_id"``,
        and `fit` takes ``owners``.
    per_unit
        How many rows of one unit count, at most.
    version
        The declared version of the data.
    prepaid
        Set by `tacit.learn.prepaid` while its block lasts.
    """

    epsilon: float | None = None
    delta: float | None = None
    dataset: str | None = None
    ledger: str | os.PathLike[str] | None = None
    budget: Budget | None = None
    size: int | None = None
    unit: str = "row"
    per_unit: int = 1
    version: int = 1
    prepaid: PrepaidFits | None = None

    #: What the estimator is called in releases and certificates.
    kind: ClassVar[str] = ""
    #: Checks of scikit-learn that a private estimator must not pass, and why; for `check_estimator`.
    unlike_scikit_learn: ClassVar[dict[str, str]] = {
        "check_estimators_empty_data_messages": "whether there is any patient at all is not shown",
        "check_dtype_object": "an error must not depend on the value of one patient",
        "check_supervised_y_no_nan": "a target that is not a finite number counts as zero, without a word",
        "check_classifiers_regression_target": "an undeclared label counts as zero, without a word",
        "check_classifiers_one_label_sample_weights": "an argument that a fit lacks gives a TacitError",
        "check_classifier_data_not_an_array": "compares two fits, which have different noise",
        "check_regressor_data_not_an_array": "compares two fits, which have different noise",
        "check_regressors_int": "compares two fits, which have different noise",
        "check_transformer_data_not_an_array": "compares two fits, which have different noise",
        "check_supervised_y_2d": "compares two fits, which have different noise",
    }

    # what a subclass says

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        """Return what the fit computes with a noise multiplier; check all parameters, read no data."""
        raise NotImplementedError

    def _learned(self, fitted: FittedNumbers) -> None:
        """Set the attributes that end in an underscore from what was released."""
        raise NotImplementedError

    def _score_bounds(self) -> tuple[float, float] | None:
        """Return the declared bounds of a number that is predicted; None where a class is predicted."""
        return None

    # what users call

    def plan(self, X: Any, y: Any = None, *, owners: Any = None) -> Plan[FittedNumbers]:
        """Return what the fit would compute and cost; nothing is charged.

        Parameters
        ----------
        X, y
            Features and targets, or examples declared with `tacit.learn.examples` alone.
        owners
            To whom each row belongs, where the unit is not a row.
        """
        return self._plan_of(*self._declared(X, y, owners))

    def question(self, X: Any, y: Any = None, *, owners: Any = None) -> Question[FittedNumbers]:
        """Ask for a fit whose price is named later: to plan it, to put it in a batch, to price it for a year.

        Guarantee: nothing is charged. The estimator's own epsilon and delta are not used.

        Parameters
        ----------
        X, y, owners
            As in `plan`. `from_release` takes what the release holds.

        Examples
        --------
        >>> import numpy as np, tacit as tc
        >>> people = tc.learn.examples(
        ...     np.zeros((100, 2)), unit=tc.Unit.row(), size=100, budget=tc.Budget(epsilon=2, delta=1e-5)
        ... )
        >>> model = tc.learn.Standardiser(bounds=(0, 1))
        >>> release = model.question(people).plan(epsilon=1, delta=1e-6).release()
        >>> model.from_release(release).transform([[0.0, 0.0]]).shape
        (1, 2)
        """
        copy = clone(self)
        data, digest = copy._declared(X, y, owners, priced=False)  # noqa: SLF001 - its own copy
        return FIT.ask(data, estimator=copy, digest=digest)

    def fit(self, X: Any, y: Any = None, *, owners: Any = None) -> Self:
        """Plan, charge, release, and take what was learned.

        Parameters
        ----------
        X, y, owners
            As in `plan`.
        """
        data, digest = self._declared(X, y, owners)
        try:
            self._take(self._released(data, digest))
        finally:
            if not isinstance(X, Examples) and self.ledger is not None:
                data._ledger.close()  # type: ignore[attr-defined]  # noqa: SLF001 - opened for this fit
        return self

    def from_release(self, release: Release[FittedNumbers]) -> Self:
        """Take what a release holds, such as one that was saved to a file; free.

        Parameters
        ----------
        release
            A release of an estimator of this kind.
        """
        content: object = release.content
        if not isinstance(content, FittedNumbers) or content.estimator != self.kind:
            raise bad_parameter(
                "release",
                f"a release of {self.kind}",
                release.content,
                fix=Set(release="tc.Release.load(path)"),
            )
        self._take(release)
        return self

    # how it is done

    def _checked_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        """Return what the fit computes; refuse data from whose types alone nothing could be learned."""
        steps = self._fit_steps(data, noise)
        features, *labels = data._types or ((),)  # noqa: SLF001 - the types of a dataset are public
        low = high = np.zeros(0)
        if getattr(self, "bounds", None) is not None:
            low, high = read_feature_bounds(self.bounds, self.n_features_in_)
        refuse_constant("the features", features, low, high)
        classes, target = getattr(self, "classes", None), self._score_bounds()
        if labels and classes is not None:
            refuse_unknown_labels(labels[0], list(classes), spelled=True)
        elif labels and target is not None:
            refuse_constant("the target", labels[0], *(np.array([one]) for one in target))
        return steps

    def _released(self, data: Examples, digest: str) -> Release[FittedNumbers]:
        if self.prepaid is None:
            plan = self._plan_of(data, digest)
            refuse_hidden_fits()
            return plan.release()
        refuse_drawn_rows()
        steps = self._checked_steps(data, self.prepaid.noise)
        return draw_prepaid(data, self.prepaid, steps.task(self.kind, digest))

    def _take(self, release: Release[FittedNumbers]) -> None:
        self.release_ = release
        self.n_features_in_ = int(release.content.settings["features"])
        self._learned(release.content)

    def _plan_of(self, data: Examples, digest: str) -> Plan[FittedNumbers]:
        goal, _ = read_fit_goal(epsilon=self.epsilon, delta=self.delta, size=data.size)
        return FIT.ask(data, estimator=self, digest=digest).planned(goal)

    @np.errstate(all="ignore")  # a warning would say something about one value
    def _declared(self, X: Any, y: Any, owners: Any, *, priced: bool = True) -> tuple[Examples, str]:
        """Return the data as examples, and the keyed digest that recognises it; refuse what is missing."""
        if isinstance(X, Examples):
            validate_data(self, X._arrays[0], skip_check_array=True)  # noqa: SLF001 - the parts of a dataset
            return X, ""
        types = tuple(stored_types(one) for one in ((X,) if y is None else (X, y)))
        refuse_constant("the features", types[0], np.zeros(0), np.zeros(0))
        X = cells(X)
        check_shape(X)
        features = validate_data(self, X, ensure_all_finite=False, ensure_min_samples=0, dtype=None)
        target = self._target(y)
        if target is not None and len(target) != len(features):
            raise ValueError("X and y have different numbers of rows")
        goal = (self.epsilon, self.delta) if priced else ANY_FIT_GOAL
        read_fit_goal(epsilon=goal[0], delta=goal[1], size=self.size)  # before a ledger is opened
        needs_names(self)
        arrays = (features,) if target is None else (features, target)
        ledger = open_for_fit(self.ledger)
        dataset = examples(
            *arrays, unit=Unit.row() if self.unit == "row" else self.unit, size=self.size, budget=self.budget,  # type: ignore[arg-type]
            owners=owners, per_unit=self.per_unit, name=self.dataset, version=self.version, ledger=ledger,  # type: ignore[arg-type]
        )  # fmt: skip
        dataset = replace(dataset, _types=types)
        return dataset, data_digest(ledger, *arrays, *(() if owners is None else (owners,)))

    @np.errstate(all="ignore")  # a warning would say something about one value
    def _seen(self, X: Any) -> NDArray[Any]:
        """Return features to predict from; refuse scikit-learn's exact scores of a cross-validation."""
        check_is_fitted(self)
        refuse_exact_scores()
        return np.asarray(validate_data(self, X, reset=False, ensure_all_finite=False, dtype=None))

    def _target(self, y: Any) -> NDArray[Any] | None:
        """Return the target as one column; its values are not looked at."""
        if not self.__sklearn_tags__().target_tags.required:
            return None
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        return one_column(y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags


class PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A private estimator of a number."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise may spoil any one fit
        return tags
