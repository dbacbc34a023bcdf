"""Random lives of a ledger against an exact model that shares none of its code."""

import tempfile
from fractions import Fraction
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Ledger

COSTS = [Cost.pure(e) for e in (Fraction(1, 3), 0.1, 0.25, Fraction(1, 7), 1)] + [
    Cost.zcdp(0.01),
    Cost.zcdp(0.2),
]
CAPS = [Fraction(1, 2), Fraction(1), Fraction(3)]
KEYS = ["k1", "k2", "k3"]
PLANS = ["p1", "p2", "p3"]


class Line:
    """The model's account: sums of fractions, and None once a sum has no finite value."""

    def __init__(self, measure, cap, parent):
        self.measure, self.cap, self.parent = measure, cap, parent
        self.spent = Fraction(0)

    def admits(self, cost):
        more = getattr(cost.spend, self.measure)
        return more is not None and self.spent + more <= self.cap


class LedgerLife(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.lines = {}
        self.keys = {}
        self.releases = {}
        self.paid = set()
        self.draws = 0
        self.entries = 0

    def open(self):
        return Ledger.memory()

    @initialize()
    def start(self):
        self.ledger = self.open()

    def teardown(self):
        self.ledger.close()

    def path(self, name):
        while name is not None:
            yield name
            name = self.lines[name].parent

    @rule(measure=st.sampled_from(["epsilon", "rho"]), cap=st.sampled_from(CAPS), data=st.data())
    def create(self, measure, cap, data):
        parent = data.draw(st.sampled_from([None, *self.lines])) if self.lines else None
        name = f"account {len(self.lines)}"
        unit = "patient_id" if parent is None else None
        self.ledger.create_account(name, unit=unit, budget=Budget(**{measure: cap}), parent=parent)
        self.lines[name] = Line(measure, cap, parent)
        self.entries += 1

    @precondition(lambda self: self.lines)
    @rule(cost=st.sampled_from(COSTS), key=st.sampled_from([None, None, *KEYS]), data=st.data())
    def charge(self, cost, key, data):
        name = data.draw(st.sampled_from(list(self.lines)))
        try:
            receipt = self.ledger.charge(name, cost, key=key)
        except TacitError as error:
            code = error.code
            if code == "key-reused":
                assert self.keys[name, key][0] != cost
            else:
                assert code == "budget-exceeded"
                assert (name, key) not in self.keys
                assert not all(self.lines[level].admits(cost) for level in self.path(name))
            return
        assert receipt.key == key
        if (name, key) in self.keys:
            assert self.keys[name, key] == (cost, receipt.id)
            return
        self.pay(cost, list(self.path(name)))
        if key is not None:
            self.keys[name, key] = (cost, receipt.id)

    def pay(self, cost, names):
        for level in names:
            assert self.lines[level].admits(cost)
            self.lines[level].spent += getattr(cost.spend, self.lines[level].measure)
        self.entries += 1

    @precondition(lambda self: self.lines)
    @rule(plan=st.sampled_from(PLANS), fails=st.booleans(), data=st.data())
    def draw_release(self, plan, fails, data):
        name = data.draw(st.sampled_from(list(self.lines)))
        cost = COSTS[PLANS.index(plan)]
        *below, root = self.path(name)
        stored = self.releases.get((root, plan))
        owing = [level for level in below if (level, plan) not in self.paid] if stored else [*below, root]
        payload = f"draw {self.draws}".encode()

        def compute(_):
            assert stored is None
            self.draws += 1
            return 1 // 0 if fails else payload

        shown = self.ledger.paid_release(name, plan)
        assert (None if shown is None else shown.payload) == (None if owing else stored)
        said = data.draw(st.sampled_from(COSTS)) if stored else cost  # what is stored has its own price
        affordable = all(self.lines[level].admits(cost) for level in owing)
        try:
            release = self.ledger.draw(name, said, plan=plan, compute=compute)
        except TacitError as error:
            code = error.code
            assert code == ("release-failed" if affordable else "budget-exceeded")
            if affordable:
                assert stored is None
                self.settle(cost, plan, owing)
            return
        assert affordable
        assert release.payload == (stored or payload)
        assert release.fresh == (stored is None)
        if owing:
            self.settle(cost, plan, owing)
        if stored is None:
            self.releases[root, plan] = payload
            self.entries += 1

    def settle(self, cost, plan, owing):
        self.pay(cost, owing)
        self.paid |= {(level, plan) for level in owing}

    @precondition(lambda self: self.lines)
    @rule(cap=st.sampled_from(CAPS), data=st.data())
    def grow(self, cap, data):
        name = data.draw(st.sampled_from(list(self.lines)))
        line = self.lines[name]
        try:
            self.ledger.grow(name, Budget(**{line.measure: cap}), statement="more", who="curator")
        except TacitError:
            assert cap < line.cap
            return
        assert cap >= line.cap
        line.cap = cap
        self.entries += 1

    @precondition(lambda self: self.lines)
    @rule(data=st.data())
    def refresh(self, data):
        name = data.draw(st.sampled_from(list(self.lines)))
        self.ledger.refresh(name, statement="new people", who="curator")
        self.lines[name].spent = Fraction(0)
        self.entries += 1

    @rule()
    def verify(self):
        report = self.ledger.verify(witness=self.ledger.head)
        assert report.complete, report
        assert report.entries == self.entries

    @invariant()
    def totals_are_the_models(self):
        for name, line in self.lines.items():
            account = self.ledger.account(name)
            assert getattr(account.filter, line.measure) == line.spent
            assert getattr(account.budget, line.measure) == line.cap
            assert line.spent <= line.cap


class LedgerLifeOnDisk(LedgerLife):
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        return Ledger.open(Path(self.folder.name) / "a.ledger")

    @rule()
    def reopen(self):
        self.ledger.close()
        self.ledger = Ledger.open(Path(self.folder.name) / "a.ledger")

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


TestLedgerLife = LedgerLife.TestCase
TestLedgerLife.settings = settings(max_examples=60, stateful_step_count=40)
TestLedgerLifeOnDisk = LedgerLifeOnDisk.TestCase
TestLedgerLifeOnDisk.settings = settings(max_examples=15, stateful_step_count=30)
