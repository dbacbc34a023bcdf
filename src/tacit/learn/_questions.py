"""The questions about examples, each declared once, and examples as a kind of dataset.

No document holds a model, so no plan can be rebuilt. Python alone declares examples, because they hold
arrays.
"""

from __future__ import annotations

from functools import partial

from tacit.core import ANY_TOTAL, DELTA, Argument, DatasetKind, QuestionKind, WireForm
from tacit.learn.estimators._fits import draft_fit
from tacit.learn.estimators._prepaid import draft_prepaid
from tacit.learn.estimators._search import draft_search
from tacit.learn.evaluation._evaluation import draft_evaluation
from tacit.learn.evaluation._scorer import draft_score
from tacit.learn.teachers._labelling import draft_labels
from tacit.learn.training._draft import draft_training
from tacit.parameters import Anything, Choice, Integer, RealNumber

#: A question that functions of this room ask. It holds code or models, which no document can hold.
inner_question = partial(QuestionKind, served=False, inner=True, wire=WireForm.none())
_PROMISE = frozenset({DELTA})
_EXAMPLE = "epsilon=2, delta=1e-6"
_DIGEST = Argument("digest", Anything("what identifies data that was not declared"), default="")

FIT = inner_question(
    name="fit", words="Fit an estimator", draft=draft_fit, takes=_PROMISE,
    example=_EXAMPLE,
    arguments=(Argument("estimator", Anything("a private estimator"), needed=True), _DIGEST),
)  # fmt: skip
SEARCH = inner_question(
    name="search", words="Search for parameters of an estimator", draft=draft_search, takes=_PROMISE,
    example=_EXAMPLE,
    arguments=(
        Argument("candidates", Anything("private estimators"), needed=True),
        Argument("score", Choice(("accuracy", "neg_mean_squared_error")), needed=True),
        Argument("runs", RealNumber(), needed=True, words="how many tries on average"),
        _DIGEST,
    ),
)  # fmt: skip
PREPAID = inner_question(
    name="prepaid", words="Pay for several fits", draft=draft_prepaid, takes=_PROMISE,
    example=_EXAMPLE,
    arguments=(
        Argument("said", Anything("the number and the noise of the fits"), needed=True),
        Argument("fit", Anything("the next fit")),
    ),
)  # fmt: skip
SCORE = inner_question(
    name="score", words="Score a model", draft=draft_score, takes=frozenset(),
    arguments=(
        Argument("measure", Choice(("accuracy", "neg_mean_squared_error")), needed=True),
        _DIGEST,
        Argument("scores", Anything("the score of each row"), needed=True),
    ),
)  # fmt: skip
EVALUATE = inner_question(
    name="evaluate", words="Evaluate a model on held-out units", draft=draft_evaluation, takes=_PROMISE,
    example=_EXAMPLE,
    arguments=(
        Argument("model", Anything("a model that predicts probabilities"), needed=True),
        Argument("classes", Anything("all classes"), needed=True),
        Argument("bins", Anything("the edges of the bins of the score"), needed=True),
        Argument("smaller_class", Integer(1), words="about how many units the smaller class has"),
        Argument("block", Integer(1), default=1, words="how many rows the model scores at once"),
    ),
)  # fmt: skip
LABEL = inner_question(
    name="label", words="Label public queries by the votes of teachers", draft=draft_labels, takes=ANY_TOTAL,
    example=_EXAMPLE,
    arguments=(
        Argument("teachers", Anything("an ensemble of teachers"), needed=True),
        Argument("queries", Anything("public features"), needed=True),
        Argument("answers", Integer(1), needed=True, words="how many queries are answered at most"),
        Argument("check", Anything("which queries are answered")),
        Argument("facts", Anything("the public facts of the question"), needed=True),
        _DIGEST,
        Argument("sigma", RealNumber(), words="the noise on each number of votes"),
    ),
)  # fmt: skip
TRAIN = inner_question(
    name="train", words="Train a model", draft=draft_training, takes=_PROMISE,
    example=_EXAMPLE,
    arguments=(
        Argument("setup", Anything("model, loss, optimizer and settings"), needed=True),
        Argument("document", Anything("what identifies them"), needed=True),
        Argument("wish", Anything("which kind of noise, and how it is charged"), needed=True),
    ),
)  # fmt: skip

QUESTIONS = (FIT, SEARCH, PREPAID, SCORE, EVALUATE, LABEL, TRAIN)
EXAMPLES = DatasetKind(name="examples", label="examples to learn from", questions=QUESTIONS)
