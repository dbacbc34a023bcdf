"""Teacher ensembles: parts, votes, prices, aggregation, students and refusals."""

from __future__ import annotations

import math
import random
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import tacit as tc
from support.exact_integers import exact_of_plan
from tacit.accounting import Cost
from tacit.audit import neighbours
from tacit.core import members_of
from tacit.errors import TacitError
from tacit.learn import _examples
from tacit.learn.teachers import _teachers
from tacit.learn.teachers._teachers import train_teachers
from twins import learn_teachers as twins

PUBLIC = np.array([[-2.0, 0.0], [2.0, 0.0], [0.02, 0.5]])


def examples(rows=600, budget=None, classes=2, **more):
    random = np.random.default_rng(2)
    X = random.normal(size=(rows, 2))
    y = np.digitize(X[:, 0], np.linspace(-1, 1, classes - 1)) if classes > 2 else (X[:, 0] > 0).astype(int)
    budget = budget or tc.Budget(rho=10**9)
    return tc.learn.examples(X, y, **{"unit": tc.Unit.row(), "size": rows, **more}, budget=budget)


def ensemble(data=None, teachers=20, classes=(0, 1), estimator=None):
    estimator = estimator or KNeighborsClassifier(3)
    return tc.learn.Teachers(estimator, data=data or examples(), teachers=teachers, classes=classes)


def refused(call, code="bad-parameter"):
    with pytest.raises(TacitError) as caught:
        call()
    assert caught.value.code == code
    return str(caught.value)


# -- the price


@pytest.mark.parametrize(
    ("queries", "sigma", "exact", "renyi"),
    [(640, 40, 3.8486, 4.1616), (100, 40, 1.3565, 1.4781), (300, 60, 1.5906, 1.7312)],
)
def test_votes_are_priced_as_one_gaussian(queries, sigma, exact, renyi):
    plan = ensemble(classes=range(10)).label(np.zeros((queries, 2))).plan(sigma=sigma)
    assert plan.cost.epsilon(delta=1e-5) == pytest.approx(exact, abs=5e-5)
    assert Cost.zcdp(plan.cost.spend.rho).epsilon(delta=1e-5) == pytest.approx(renyi, abs=1e-4)
    assert plan.cost.rho == pytest.approx(queries / sigma**2, rel=1e-9)


def test_two_classes_need_one_count():
    plan = ensemble().label(np.zeros((600, 2))).plan(sigma=48.8)
    assert plan.cost.epsilon(delta=1e-5) == pytest.approx(2.0, abs=0.02)
    assert np.shape(exact_of_plan(plan)[0]) == (600,)


def test_epsilon_chooses_the_noise():
    plan = ensemble(data=examples(30_000)).label(np.zeros((600, 2))).plan(epsilon=2, delta=1e-5)
    assert 1.9999 < plan.cost.epsilon(delta=1e-5) <= 2
    assert float(members_of(plan)[0].task.subject.noise.sigma) == pytest.approx(48.8, abs=0.05)


def test_a_check_is_charged_for_every_query_and_votes_for_the_answers():
    question = ensemble(classes=range(3)).label(np.zeros((200, 2)), threshold=(15, 150), answers=50)
    plan = question.plan(sigma=40)
    assert plan.cost.rho == pytest.approx(200 / (2 * 150**2) + 2 * 50 / (2 * 40**2), rel=1e-9)
    asked = ensemble(data=examples(9_000)).label(np.zeros((200, 2)), threshold=(15, 150), answers=50)
    calibrated = asked.plan(epsilon=2, delta=1e-5)
    assert 1.9999 < calibrated.cost.epsilon(delta=1e-5) <= 2


def test_the_cost_survives_json_and_the_ledger():
    data = examples(30_000, budget=tc.Budget(4, 1e-5))
    plan = ensemble(data).label(np.zeros((600, 2))).plan(epsilon=2, delta=1e-5)
    assert Cost.from_json(plan.cost.to_json()) == plan.cost
    plan.release()
    assert data.remaining is not None
    assert refused(
        lambda: ensemble(data).label(np.zeros((601, 2))).plan(epsilon=3.5, delta=1e-5).release(),
        "budget-exceeded",
    )


# -- parts and votes


LIMIT = math.sqrt(12) * (1 + 1e-12)  # six queries, on each of which one vote moves


@pytest.fixture
def fixed_secret(monkeypatch):
    for module in (_teachers, _examples):
        monkeypatch.setattr(module, "ranking_secret", lambda: twins.SECRET)


class Fragile(twins.NearestMean):
    """Fails, warns, uses global random numbers or answers nonsense, depending on its data."""

    def fit(self, features, labels):
        self.seen = len(features)
        warnings.warn(f"{self.seen} rows", stacklevel=1)
        np.random.normal(size=self.seen)
        if self.seen % 5 == 0 and self.seen < 100:
            raise ValueError(self.seen)
        super().fit(features, labels)
        self.classes = self.classes[np.random.permutation(len(self.classes))]
        return self

    def predict(self, queries):
        return np.full(len(queries), 77) if self.seen % 7 == 0 else super().predict(queries)


class FailsOnLittle(twins.NearestMean):
    def fit(self, features, labels):
        if len(features) < 100:
            raise ValueError(features.mean())
        return super().fit(features, labels)


def exact_votes(rows, *, owners=None, estimator=None, dtype=float, per_unit=1):
    """Return the votes that a plan would add noise to."""
    unit = tc.Unit.row() if owners is None else "patient"
    data = tc.learn.examples(
        rows[:, :-1].astype(dtype), rows[:, -1].astype(int), unit=unit, owners=owners, per_unit=per_unit,
        size=20, budget=tc.Budget(rho=1),
    )  # fmt: skip
    teachers = tc.learn.Teachers(
        estimator or twins.NearestMean(), data=data, teachers=twins.TEACHERS, classes=range(twins.CLASSES)
    )
    plan = teachers.label(twins.QUERIES).plan(sigma=100)
    return np.array(exact_of_plan(plan)[0])


MANY = pytest.mark.parametrize("tries", [30, pytest.param(150, marks=pytest.mark.long)])


@MANY
@pytest.mark.usefixtures("fixed_secret")
@pytest.mark.parametrize("make", [twins.NearestMean, Fragile])
def test_one_more_example_moves_one_vote_of_each_query(make, tries):
    random = np.random.default_rng(5)

    def pair():
        rows, more = twins.neighbours_of(random)
        if random.random() < 0.2:  # what is not finite, or no class, counts for nobody
            more = np.concatenate([[[math.nan, 1.0], [0.5, 9.0]][: 1 + int(random.integers(2))][-1:], rows])
        return rows, more

    found = neighbours(lambda rows: exact_votes(rows, estimator=make()), pair, LIMIT, tries=tries, norm="l2")
    assert found.holds
    assert found.largest > 0


@MANY
@pytest.mark.usefixtures("fixed_secret")
def test_one_more_patient_with_many_examples_moves_one_vote_of_each_query(tries):
    random = np.random.default_rng(6)

    def pair():
        rows, _ = twins.neighbours_of(random)
        owners = random.integers(0, 6, len(rows))
        return (rows, owners), (rows[owners != 0], owners[owners != 0])

    found = neighbours(
        lambda both: exact_votes(both[0], owners=both[1], per_unit=3),
        lambda: next(one for one in iter(pair, None) if len(one[1][0])),
        LIMIT, tries=tries, norm="l2",
    )  # fmt: skip
    assert found.holds
    assert found.largest > 0


@pytest.mark.usefixtures("fixed_secret")
def test_the_votes_are_those_of_the_right_twin():
    random = np.random.default_rng(7)
    for _ in range(20):
        rows, _ = twins.neighbours_of(random)
        votes = exact_votes(rows)
        assert (votes.sum(axis=1) == twins.TEACHERS).all()
        assert votes.shape == (len(twins.QUERIES), twins.CLASSES)


def test_examples_that_are_not_finite_or_of_no_class_count_for_nobody():
    rows = np.array([[0.1, 0], [math.nan, 1], [math.inf, 2], [0.2, 9], [0.3, 2]])
    data = tc.learn.examples(rows[:, :1], rows[:, 1], unit=tc.Unit.row(), size=5, budget=tc.Budget(rho=1))
    parts = _teachers.teacher_parts(data, 3, (0, 1, 2))
    assert sorted(np.concatenate([features for features, _ in parts]).ravel()) == [0.1, 0.3]
    assert sorted(np.concatenate([number for _, number in parts])) == [0, 2]


def test_empty_parts_and_failures_still_vote():
    votes = exact_votes(np.array([[0.5, 2.0]]))
    assert (votes.sum(axis=1) == twins.TEACHERS).all()
    assert votes[:, 2].tolist() == [1] * len(twins.QUERIES)  # one teacher knows one class
    rows = np.random.default_rng(1).normal(size=(40, 2)).round()
    broken = exact_votes(rows, estimator=FailsOnLittle())
    assert (broken.sum(axis=1) == twins.TEACHERS).all()
    assert (broken == broken[0]).all()  # whoever fails does not look at the query


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize(("features", "targets"), [((2,), ()), ((3, 2), (1,)), ((), ())])
@pytest.mark.parametrize("owned", [False, True], ids=["rows", "owners"])
def test_teachers_label_even_if_nobody_is_in_the_data(rows, features, targets, owned):
    data = tc.learn.examples(
        np.zeros((rows, *features)), np.zeros((rows, *targets)), size=100,
        unit="patient" if owned else tc.Unit.row(), owners=["ana"] * rows if owned else None,
        per_unit=2 if owned else 1, budget=tc.Budget(rho=10**9),
    )  # fmt: skip
    queries = np.zeros((3, *features))
    made = ensemble(data, estimator=lambda features, number: lambda asked: np.zeros(len(asked)))
    for check in ({}, {"threshold": (1, SHARP)}):
        assert made.label(queries, **check).plan(sigma=SHARP).release().labels == (0, 0, 0)
    assert made._votes(queries).tolist() == [[20, 0]] * 3


@pytest.mark.parametrize("cell", [0.5, "x"])
def test_no_cell_of_a_list_decides_whether_an_estimator_is_refused(cell):
    data = tc.learn.examples(
        [[0.1, 0.2]] * 9 + [[0.1, cell]], [0, 1] * 5, unit=tc.Unit.row(), size=10, budget=tc.Budget(rho=1)
    )
    assert ensemble(data, estimator=lambda *_: 1 / 0).label(PUBLIC).plan(sigma=5).cost


def test_targets_without_a_column_are_refused():
    data = tc.learn.examples(
        np.zeros((4, 2)), np.zeros((4, 0)), unit=tc.Unit.row(), size=4, budget=tc.Budget(rho=1)
    )
    assert "one target" in refused(lambda: ensemble(data))


@pytest.mark.parametrize("tries", [12, pytest.param(60, marks=pytest.mark.long)])
def test_a_teacher_with_random_numbers_does_not_shift_those_of_the_next(fixed_secret, tries):
    random = np.random.default_rng(8)
    before = np.random.get_state()[1].copy()
    found = neighbours(
        lambda rows: exact_votes(rows, estimator=DecisionTreeClassifier(max_features=1)),
        lambda: twins.neighbours_of(random), LIMIT, tries=tries, norm="l2",
    )  # fmt: skip
    assert found.holds
    assert (np.random.get_state()[1] == before).all()


def test_warnings_of_teachers_do_not_show(recwarn):
    rows = np.random.default_rng(1).normal(size=(60, 2)).round()
    exact_votes(np.abs(rows), estimator=Fragile())
    assert not recwarn.list


# -- aggregation

SHARP = Fraction(1, 100)  # rounded to whole votes, this is no noise


def test_the_majority_becomes_the_label():
    release = ensemble(classes=range(3), data=examples(classes=3)).label(PUBLIC).plan(sigma=SHARP).release()
    assert release.labels[:2] == (0, 2)
    assert all(sum(votes) == 20 for votes in release.votes.values())
    assert release.clear[:2] == (True, True)
    assert list(release.answered) == [0, 1, 2]


def test_only_queries_on_which_teachers_agree_are_answered():
    plan = ensemble(estimator=LogisticRegression()).label(PUBLIC, threshold=(19, SHARP)).plan(sigma=SHARP)
    release = plan.release()
    assert release.labels == (0, 1, None)
    assert plan.release().labels == release.labels
    fewer = ensemble().label(PUBLIC, threshold=(1, SHARP), answers=2).plan(sigma=SHARP).release()
    assert sum(one is not None for one in fewer.labels) == 2
    none = ensemble().label(PUBLIC, threshold=(21, SHARP)).plan(sigma=SHARP).release()
    assert none.labels == (None, None, None)


def test_teachers_answer_where_they_contradict_the_student():
    told = [[0.99, 0.01], [0.95, 0.05], [0.5, 0.5]]
    release = ensemble().label(PUBLIC, threshold=(12, SHARP), student=told).plan(sigma=SHARP).release()
    assert release.labels == (0, 1, None)  # agreed, corrected, unsure
    assert list(release.votes) == [1]
    assert release.clear == (False, True, False)


def test_a_check_moves_by_at_most_one():
    random = np.random.default_rng(4)
    check = members_of(ensemble().label(PUBLIC, threshold=(12, 5), student=[[0.3, 0.7]] * 3).plan(sigma=5))[0]
    assert check.task.subject.check.strength(np.array([[20, 0], [0, 20], [7, 13]])).tolist() == [14, 6, 1]
    for _ in range(200):
        votes = random.multinomial(20, [0.4, 0.6], size=3)
        moved = votes + np.array([[1, -1]] * 3) * (votes[:, 1:] > 0)
        change = check.task.subject.check.strength(moved) - check.task.subject.check.strength(votes)
        assert np.abs(change).max() <= 1


# -- one way through


def test_a_plan_is_a_function_of_public_facts():
    first, second = (ensemble(examples(rows, size=500)) for rows in (400, 600))
    one, two = (teachers.label(PUBLIC, threshold=(9, 9)).plan(sigma=9) for teachers in (first, second))
    assert one.hash == two.hash
    assert repr(one) == repr(two)
    assert one.hash != first.label(PUBLIC[::-1], threshold=(9, 9)).plan(sigma=9).hash
    other = ensemble(examples(400, size=500), estimator=KNeighborsClassifier(5))
    assert one.hash != other.label(PUBLIC, threshold=(9, 9)).plan(sigma=9).hash


class Watched(KNeighborsClassifier):
    fits, lock = 0, threading.Lock()  # teachers may be trained in several threads

    def fit(self, X, y):
        with Watched.lock:
            Watched.fits += 1
        return super().fit(X, y)


def test_nothing_is_trained_before_the_charge_and_nothing_twice():
    Watched.fits = 0
    poor = ensemble(examples(budget=tc.Budget(rho=0.001)), estimator=Watched(1))
    plan = poor.label(PUBLIC).plan(sigma=1)
    assert Watched.fits == 1  # on made-up examples
    refused(plan.release, "budget-exceeded")
    assert Watched.fits == 1
    Watched.fits = 0
    rich = ensemble(estimator=Watched(1))
    first = rich.label(PUBLIC).plan(sigma=5).release()
    assert Watched.fits == 21
    assert rich.label(PUBLIC).plan(sigma=5).release().votes == first.votes
    rich.label(PUBLIC[:2]).plan(sigma=5).release()
    assert Watched.fits == 21


class Incomparable:
    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = None


@pytest.mark.parametrize("owner", [np.array([b"\xff"]), np.array(["\ud800"])], ids=["bytes", "surrogate"])
def test_the_name_of_one_patient_cannot_make_a_release_fail(owner):
    X, y = np.zeros((40, 2)), np.zeros(40)
    owners = np.concatenate([np.repeat(owner, 3), np.array([f"p{i}" for i in range(37)], owner.dtype.kind)])
    patients = tc.learn.examples(
        X, y, unit="patient_id", owners=owners, size=40, budget=tc.Budget(rho=10**6), per_unit=2
    )
    assert len(ensemble(patients).label(PUBLIC).plan(sigma=5).release().labels) == 3


def test_a_target_that_cannot_be_compared_counts_for_nobody():
    X = np.zeros((40, 2))
    y = np.array([*(i % 2 for i in range(39)), Incomparable()], dtype=object)
    patients = tc.learn.examples(X, y, unit=tc.Unit.row(), size=40, budget=tc.Budget(rho=10**6))
    assert len(ensemble(patients).label(PUBLIC).plan(sigma=5).release().labels) == 3


class Slow(KNeighborsClassifier):
    def fit(self, X, y):
        time.sleep(0.002)
        return super().fit(X, y)


def test_releases_in_two_threads_do_not_give_a_unit_two_teachers():
    both = ensemble(estimator=Slow(1))
    plans = [both.label(PUBLIC[:size]).plan(sigma=5) for size in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda plan: plan.release(), plans))
    assert len(both._trained) == 20
    assert (both._votes(PUBLIC).sum(axis=1) == 20).all()


def test_the_global_generator_of_python_is_no_way_from_one_teacher_to_the_next():
    def guess(features, number):
        [random.random() for _ in range(len(features))]
        chosen = random.randrange(2)
        return lambda queries: np.full(len(queries), chosen)

    before = random.getstate()
    parts = [(np.zeros((size, 1)), np.arange(size) % 2) for size in (4, 4, 4, 4, 4, 4, 4, 4)]
    more = [(np.zeros((5, 1)), np.arange(5) % 2), *parts[1:]]
    votes = [[one(PUBLIC)[0] for one in train_teachers(guess, some, (0, 1))] for some in (parts, more)]
    assert votes[0][1:] == votes[1][1:]
    assert random.getstate() == before


def test_labels_are_saved_and_read_with_their_certificate(tmp_path):
    release = ensemble().label(PUBLIC, threshold=(15, 2)).plan(sigma=SHARP).release()
    release.save(tmp_path / "labels.json")
    again = tc.Release.load(tmp_path / "labels.json")
    assert again.content == release.content
    assert "agreement of teachers" in str(again.certificate.fields)
    assert "labels of 20 teachers" in repr(release)
    assert release.plot() is not None
    assert refused(lambda: release.plot("votes"), "unknown-column")


# -- students


def test_a_student_learns_from_the_labels():
    random = np.random.default_rng(9)
    public = random.normal(size=(80, 2))
    release = ensemble().label(public).plan(sigma=SHARP).release()
    held = random.normal(size=(400, 2))
    student = release.student(LogisticRegression(), public)
    assert (student.predict(held) == (held[:, 0] > 0)).mean() > 0.85
    assert "the public features that were labelled" in refused(
        lambda: release.student(LogisticRegression(), public[::-1])
    )


def test_few_labels_spread_over_clusters():
    random = np.random.default_rng(10)
    middle = np.array([[-3.0, 0.0], [3.0, 0.0]])[random.integers(0, 2, 200)]
    public = middle + 0.5 * random.normal(size=(200, 2))
    asked = tc.learn.representatives(public, 6)
    assert len(asked) == 6
    queries, rest = public[asked], np.delete(public, asked, axis=0)
    release = ensemble().label(queries).plan(sigma=SHARP).release()
    student = release.student(KNeighborsClassifier(1), queries, more=rest, spread=12)
    assert (student.predict(public) == (public[:, 0] > 0)).all()
    assert refused(lambda: tc.learn.representatives(public, 201))


def test_one_class_of_labels_teaches_nobody():
    release = ensemble().label(PUBLIC[:1]).plan(sigma=SHARP).release()
    assert "two classes" in refused(lambda: release.student(LogisticRegression(), PUBLIC[:1]))


# -- estimators of any kind


def test_pipelines_texts_and_torch_can_teach():
    data = examples()
    words = tc.learn.examples(
        data._arrays[0], np.array(["ill", "well"])[data._arrays[1]], unit=tc.Unit.row(), size=600,
        budget=tc.Budget(rho=10**9),
    )  # fmt: skip
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    release = (
        ensemble(words, classes=["ill", "well"], estimator=pipeline).label(PUBLIC).plan(sigma=SHARP).release()
    )
    assert release.labels[:2] == ("ill", "well")

    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)

    def linear(features, number):
        model = torch.nn.Linear(2, 2)
        moves = torch.optim.SGD(model.parameters(), lr=1.0)
        inputs, targets = torch.tensor(features, dtype=torch.float32), torch.tensor(number)
        for _ in range(20):
            moves.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            moves.step()
        return lambda queries: model(torch.tensor(queries, dtype=torch.float32))

    tensors = tc.learn.examples(
        torch.tensor(data._arrays[0]), torch.tensor(data._arrays[1]), unit=tc.Unit.row(), size=600,
        budget=tc.Budget(rho=10**9),
    )  # fmt: skip
    release = ensemble(tensors, estimator=linear, teachers=8).label(PUBLIC).plan(sigma=SHARP).release()
    assert release.labels[:2] == (0, 1)


# -- refusals


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sigma": 5, "epsilon": 1, "delta": 1e-6},
        {"sigma": 5, "delta": 1e-6},
        {"epsilon": 1},
        {"epsilon": 1, "delta": 0.01},
        {"sigma": 5, "answers": 1},
        {"sigma": 5, "student": [[0.5, 0.5]] * 3},
        {"sigma": 5, "threshold": (9, 5), "student": [[0.5, 0.5]] * 2},
        {"sigma": 5, "threshold": (9, 5), "student": [[math.nan, 0.5]] * 3},
        {"sigma": 5, "threshold": (9, 5), "student": [[0.5, 0.5]] * 3, "certain": 2},
        {"epsilon": 1, "delta": 1e-6, "threshold": (9, 1)},
    ],
)
def test_a_promise_that_does_not_hold_is_refused(settings):
    goal = {name: settings.pop(name) for name in ("epsilon", "delta", "sigma") if name in settings}
    assert refused(lambda: ensemble().label(PUBLIC, **settings).plan(**goal))


@pytest.mark.parametrize("goal", [{"epsilon": 2, "delta": 1e-5}, {"sigma": 48.8}])
def test_the_former_call_warns_and_gives_the_same_plan(goal):
    with pytest.warns(DeprecationWarning, match=r"\.label\(\.\.\.\)\.plan\("):
        former = ensemble().label(PUBLIC, **goal)
    assert former == ensemble().label(PUBLIC).plan(**goal)


def test_labels_are_planned_with_rho_too():
    plan = ensemble().label(PUBLIC, threshold=(12, 50)).plan(rho=0.1)
    assert 0.0999 < float(plan.cost.spend.rho) <= 0.1


def test_an_estimator_that_cannot_work_is_refused_before_the_charge():
    data = examples()

    def fails(features, number):
        raise RuntimeError("no such file")

    assert "no such file" in refused(lambda: ensemble(data, estimator=fails).label(PUBLIC).plan(sigma=5))
    assert "made-up" in refused(lambda: ensemble(data).label(PUBLIC[:, :1]).plan(sigma=5))
    for predict in (lambda queries: 5, lambda queries: np.full(len(queries), 9)):
        assert refused(
            lambda predict=predict: ensemble(data, estimator=lambda *_: predict).label(PUBLIC).plan(sigma=5)
        )


def test_declarations_that_do_not_fit_are_refused():
    data = examples()
    assert refused(lambda: tc.learn.Teachers(3, data=data, teachers=5, classes=[0, 1]))
    assert refused(lambda: tc.learn.Teachers(len, data=PUBLIC, teachers=5, classes=[0, 1]))
    assert refused(lambda: tc.learn.Teachers(len, data=data, teachers=1, classes=[0, 1]))
    for classes in ([0], [0, 0], [0.5, 1]):
        assert refused(lambda classes=classes: tc.learn.Teachers(len, data=data, teachers=5, classes=classes))
    assert refused(lambda: ensemble().label(PUBLIC[:0]).plan(sigma=5))
    assert "Teachers(KNeighborsClassifier" in repr(ensemble())
