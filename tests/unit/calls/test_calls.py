"""A wrong call is a refusal with a line that works; an error that is no mistake of the caller stays."""

from __future__ import annotations

import inspect
import pickle
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import tacit as tc
from tacit.calls import refusing
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Set

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.accounting import Budget


@refusing
def shared(
    number: int, names: Sequence[str] = (), *, by: Mapping[str, tuple[str, str]] | None = None
) -> object:
    """Share a number.

    Examples
    --------
    >>> shared(3, by={"a": ("b", "c")})
    (4, [], {'a': 'B'})
    """
    if number == 7:
        raise ValueError("a mistake of this function")
    return number + 1, [name.upper() for name in names], {a: b.upper() for a, (b, _) in (by or {}).items()}


@refusing
def checked(budget: Budget) -> float:
    return float(budget.epsilon)


@pytest.mark.parametrize(
    ("args", "given", "what", "fix"),
    [
        ((), {}, "shared needs number", 'shared(3, by={"a": ("b", "c")})'),
        (([],), {}, "number must be a whole number, got a list", 'shared(3, by={"a": ("b", "c")})'),
        ((3, [4]), {}, "every element of names must be a text, got a whole number", None),
        ((3, "ab", 5), {}, "shared takes at most 2 arguments without a name, got 3", None),
        ((3,), {"number": 4}, "shared got number twice: by its place and by its name", None),
        ((3,), {"buy": {}}, "shared has no argument 'buy'", "did you mean by? one of: number, names, by"),
        (
            (3,),
            {"by": {"a": 1}},
            "every value of by must be a pair of a text, a text, got a whole number",
            None,
        ),
        ((3,), {"by": [1]}, "by must be a mapping from texts to pairs of a text, a text, got a list", None),
    ],
)
def test_a_wrong_call_says_what_is_wrong(args, given, what, fix):
    with pytest.raises(TacitError) as refused:
        shared(*args, **given)
    assert refused.value.code == "bad-parameter"
    assert refused.value.what == what
    assert str(refused.value.fix)
    assert fix is None or str(refused.value.fix) == fix
    assert refused.value.__cause__ is None


def test_the_fix_is_data():
    with pytest.raises(TacitError) as refused:
        shared(3, buy=1)
    assert refused.value.fix == Choose(("number", "names", "by"), given="buy", close="by")
    with pytest.raises(TacitError) as refused:
        shared(3, by=4)
    assert refused.value.fix == Set(by={"a": ("b", "c")})
    with pytest.raises(TacitError) as refused:
        tc.mechanisms.Laplace(0.5)
    assert refused.value.fix == Code("tc.mechanisms.Laplace(epsilon=0.8, sensitivity=1)")


def test_no_value_of_a_wrong_argument_is_shown():
    """It may be private: a mechanism gets true values."""
    with pytest.raises(TacitError) as refused:
        shared({"ana": "ill"})
    assert "ana" not in str(refused.value)
    assert "ill" not in str(refused.value)
    with pytest.raises(TacitError) as refused:
        shared(3, by={"ana": ["sick", 2, 3]})
    assert "ana" not in str(refused.value)


def test_a_mistake_of_the_function_itself_stays_what_it_is():
    with pytest.raises(ValueError, match="a mistake of this function"):
        shared(7)


def test_a_call_that_works_is_not_changed():
    assert shared(3, ["a"]) == (4, ["A"], {})
    assert list(inspect.signature(shared).parameters) == ["number", "names", "by"]
    assert refusing(shared) is shared


def test_a_class_refuses_in_its_constructor_and_its_methods():
    @refusing
    class Counter:
        def __init__(self, start: int) -> None:
            self.value = start + 0

        def add(self, number: int) -> int:
            return self.value + number

        @classmethod
        def at(cls, start: int) -> Counter:
            return cls(start + 0)

        def _private(self, number: int) -> int:
            return self.value + number

    assert Counter(3).add(4) == Counter.at(7).value == 7
    for call, what in (
        (lambda: Counter("a"), "start must be a whole number, got a text"),
        (lambda: Counter.at(None), "start must be a whole number, got None"),
        (lambda: Counter(1).add(), "add needs number"),
        (Counter, "Counter needs start"),
    ):
        with pytest.raises(TacitError) as refused:
            call()
        assert refused.value.what == what
    with pytest.raises(TypeError):
        Counter(1)._private("a")


def test_public_functions_can_be_pickled():
    assert pickle.loads(pickle.dumps(tc.mean)) is tc.mean


def test_what_is_imported_for_type_checkers_alone_is_known():
    with pytest.raises(TacitError, match="budget must be a Budget, got a list"):
        checked(budget=[])
    assert checked(budget=tc.Budget(1)) == 1


def test_an_aggregate_without_a_name_and_a_public_table_without_a_key_are_refused():
    """Both gave a bare error: `agg() takes 1 positional argument`, `too many values to unpack`."""
    table = pd.DataFrame({"patient": [1, 2], "stay": [3.0, 9.0]})
    declared = {"unit": "patient", "bounds": {"stay": (0, 30)}, "budget": tc.Budget(epsilon=1)}
    visits = tc.protect(table, **declared)
    with pytest.raises(TacitError, match="agg takes no argument without a name, got 1") as refused:
        visits.agg(tc.mean("stay"))
    assert str(refused.value.fix) == 'visits.agg(days=tc.mean("stay"))'
    with pytest.raises(TacitError, match="every value of public must be a pair"):
        tc.protect(table, **declared, public={"nation": "nation.parquet"})
