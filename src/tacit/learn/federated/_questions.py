"""The questions of training together, each declared once, and clients as a kind of dataset."""

from __future__ import annotations

from tacit.core import DELTA, Argument, DatasetKind
from tacit.learn._questions import inner_question
from tacit.learn.federated._client_draft import draft_client_training
from tacit.learn.federated._hospital_round import draft_rounds
from tacit.parameters import Anything, Integer, RealNumber

CLIENT_TRAINING = inner_question(
    name="train", words="Train a model with clients", draft=draft_client_training, takes=frozenset({DELTA}),
    example="epsilon=2, delta=1e-6",
    arguments=(
        Argument("start", Anything("the weights before the first round"), needed=True),
        Argument("shapes", Anything("the shapes of their arrays"), needed=True),
        Argument("rounds", Integer(1), needed=True),
        Argument("rate", RealNumber(), needed=True, words="the probability that a client is in a round"),
        Argument("clip", Anything("how long an update can be"), needed=True),
        Argument("learning_rate", RealNumber(), needed=True),
        Argument("momentum", RealNumber(zero=True), needed=True),
        Argument("checkpoints", Integer(1), needed=True, words="in how many instalments"),
    ),
)  # fmt: skip
ROUNDS = inner_question(
    name="rounds", words="Answer the rounds of a study", draft=draft_rounds, takes=frozenset({DELTA}),
    example="epsilon=2, delta=1e-6",
    arguments=(
        Argument("study", Anything("the agreed study"), needed=True),
        Argument("hospital", Anything("which of its hospitals this is"), needed=True),
        Argument("wanted", Anything("which round comes next"), needed=True),
    ),
)  # fmt: skip

CLIENTS = DatasetKind(name="clients", label="clients of a trusted server", questions=(CLIENT_TRAINING,))
