"""Search in learning: a private choice of parameters, a random number of fits, one charge, one model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tacit.core import Question
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Code
from tacit.learn._examples import Examples
from tacit.learn._fit_noise import read_fit_goal
from tacit.learn._fitted_numbers import FittedNumbers
from tacit.learn._scorer import own_measure
from tacit.parameters import Instance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Release
    from tacit.learn._estimator import PrivateEstimator

E = TypeVar("E", bound="PrivateEstimator")

#: Parameters that say who is protected and who pays; they are not searched.
_FIXED = frozenset(
    {"budget", "dataset", "delta", "epsilon", "ledger", "per_unit", "prepaid", "size", "unit", "version"}
)


def search(
    estimator: E,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any = None,
    *,
    epsilon: Number,
    delta: Number,
    runs: Number = 10,
    score: str = "accuracy",
    owners: Any = None,
) -> E:
    """Choose parameters and fit, for one price: try candidates a random number of times, show the best.

    Guarantee: (epsilon, delta) for everything together, charged before the first fit, by `Cost.best_of`. Each
    try draws a candidate from the grid, fits it on about four fifths of the units, and scores it with noise
    on the others. A unit is on one side only, so a try costs as much as its fit. Only the best model is
    released; how many tries there were is not.

    Parameters
    ----------
    estimator
        A private estimator with its declared facts; its own ``epsilon`` and ``delta`` are not used.
    grid
        The values to try for some of its parameters, by name.
    X, y, owners
        As in `PrivateEstimator.fit`.
    epsilon, delta
        What the search costs.
    runs
        How many tries on average.
    score
        ``"accuracy"``, or ``"neg_mean_squared_error"`` for estimators with target bounds.

    Returns
    -------
    The estimator
        A copy of the estimator with the chosen parameters, fitted.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[0.0], [1.0]], 2000, axis=0) + np.linspace(0, 0.1, 4000)[:, None]
    >>> y = np.repeat([0, 1], 2000)
    >>> model = tc.learn.LogisticRegression(
    ...     classes=[0, 1], bounds=(0, 1), size=4000,
    ...     dataset="doctest of searches", budget=tc.Budget(epsilon=12, delta=1e-5),
    ... )
    >>> found = tc.learn.search(model, {"steps": [20, 40]}, X, y, epsilon=4, delta=1e-6)
    >>> found.steps in {20, 40}, found.predict([[0.0], [1.0]]).tolist()
    (True, [0, 1])
    """
    _check_estimator(estimator)
    read_fit_goal(epsilon=epsilon, delta=delta, size=_size(estimator, X))
    question = search_question(estimator, grid, X, y, runs=runs, score=score, owners=owners)
    try:
        found: E = question.fitted(question.plan(epsilon=epsilon, delta=delta).release())
    finally:
        if not isinstance(X, Examples) and estimator.ledger is not None:
            question.dataset._ledger.close()  # type: ignore[attr-defined]  # noqa: SLF001 - opened for it
    found.set_params(epsilon=epsilon, delta=delta)
    return found


class SearchQuestion(Question[FittedNumbers]):
    """A search that was asked for; made by `search_question`."""

    def fitted(self, release: Release[FittedNumbers]) -> Any:
        """Return the estimator with the chosen parameters, fitted, as a release of this question has it.

        Parameters
        ----------
        release
            A release of a plan of this question.
        """
        from sklearn.base import clone

        first = self.arguments["candidates"][0]
        chosen = clone(self.arguments["candidates"][int(release.content.settings["candidate"])])
        chosen.from_release(release)
        if hasattr(first, "feature_names_in_"):
            chosen.feature_names_in_ = first.feature_names_in_
        return chosen


def search_question(
    estimator: PrivateEstimator,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any = None,
    *,
    runs: Number = 10,
    score: str = "accuracy",
    owners: Any = None,
) -> SearchQuestion:
    """Ask for a search whose price is named later: to plan it, to put it in a batch, to price it for a year.

    Guarantee: that of `search`, for the epsilon and delta with which the question is planned.

    Parameters
    ----------
    estimator, grid, X, y, runs, score, owners
        As in `search`.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> people = tc.learn.examples(
    ...     np.zeros((100, 1)), np.zeros(100), unit=tc.Unit.row(), size=100,
    ...     budget=tc.Budget(epsilon=2, delta=1e-5),
    ... )
    >>> model = tc.learn.LogisticRegression(classes=[0, 1], bounds=(0, 1))
    >>> question = search_question(model, {"steps": [2, 3]}, people)
    >>> plan = question.plan(epsilon=2, delta=1e-6)
    >>> question.fitted(plan.release()).steps in {2, 3}
    True
    """
    from sklearn.base import clone

    from tacit.learn._questions import SEARCH

    _check_estimator(estimator)
    points, mean = _read_grid(grid), rational("runs", runs)
    base = clone(estimator)
    data, digest = base._declared(X, y, owners, priced=False)  # noqa: SLF001 - of this room
    candidates = [clone(base).set_params(**point) for point in points]
    for one in candidates:
        one.n_features_in_ = base.n_features_in_
        if hasattr(base, "feature_names_in_"):
            one.feature_names_in_ = base.feature_names_in_
    given = {"candidates": candidates, "score": _checked_score(score, base), "runs": mean, "digest": digest}
    return SearchQuestion(data, SEARCH, SEARCH.read(given))


def _size(estimator: PrivateEstimator, X: Any) -> int | None:
    return X.size if isinstance(X, Examples) else estimator.size


def _check_estimator(estimator: object) -> None:
    """Refuse what is not a single private estimator, such as a pipeline."""
    from tacit.learn._estimator import PrivateEstimator

    paid = "with tc.learn.prepaid(search, fits=7, epsilon=1, delta=1e-6): search.fit(X, y)"
    why = "the search fits and scores each candidate in one step, so a pipeline does not fit in"
    Instance(PrivateEstimator, paid, "a private estimator of Tacit", why).read("estimator", estimator)


def _read_grid(grid: Any) -> list[dict[str, Any]]:
    """Return all points of a grid, or refuse parameters that are not searched."""
    from sklearn.model_selection import ParameterGrid

    points = [dict(one) for one in ParameterGrid(grid)]
    fixed = sorted({name for point in points for name in point} & _FIXED)
    if fixed or not points:
        raise bad_parameter(
            "grid", "values of parameters that decide how a model is fitted", ", ".join(fixed) or grid,
            why="who is protected and who pays is declared, and the search sets epsilon itself",
            fix=Code('{"steps": [20, 40]}'),
        )  # fmt: skip
    return points


def _checked_score(score: str, estimator: PrivateEstimator) -> str:
    """Return the score, or refuse one that this estimator does not have."""
    if not estimator.__sklearn_tags__().target_tags.required:
        raise bad_parameter(
            "estimator", "one that predicts a target", type(estimator).__name__,
            why="candidates are compared by how well they predict",
            fix=Code("tc.learn.LogisticRegression(...)"),
        )  # fmt: skip
    return own_measure("score", score, estimator)
