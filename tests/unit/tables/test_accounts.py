"""Who pays for a question: the dataset's own account, in this session and the next."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc
from support.asking import ledger_of, visits
from tacit import TacitError


def test_a_new_session_does_not_reset_the_budget(tmp_path):
    path = tmp_path / "hospital.ledger"
    for expected in (2.5, 2.5):
        data = visits(ledger=path, budget=tc.Budget(epsilon=3))
        value = data.agg(n=tc.count()).plan(epsilon=0.5).release().value
        assert float(data.remaining.epsilon) == expected
        again = data.agg(n=tc.count()).plan(epsilon=0.5).release().value
        assert value == again
        ledger_of(data).close()


def test_a_question_is_paid_from_the_dataset_s_own_budget_whoever_else_pays():
    """Another account of the ledger, however rich, cannot stand in for the dataset's."""
    ledger = tc.Ledger.memory()
    frame = pd.DataFrame({"pid": range(1000)})
    data = tc.protect(frame, unit="pid", name="visits", budget=tc.Budget(epsilon=1), ledger=ledger)
    ledger.create_account("other", unit="pid", budget=tc.Budget(epsilon=10**6))
    ledger.create_account("team", parent="visits", budget=tc.Budget(epsilon=0.6))
    for epsilon in (0.5, 50_000):
        with pytest.raises(TacitError) as refused:
            data.agg(n=tc.count()).plan(epsilon=epsilon).release(account="other")
        assert refused.value.code == "account-differs"
    assert ledger.account("other").spent.epsilon == ledger.account("visits").spent.epsilon == 0
    data.agg(n=tc.count()).plan(epsilon=0.5).release(account="team")
    assert ledger.account("team").spent.epsilon == ledger.account("visits").spent.epsilon == Fraction(1, 2)
    with pytest.raises(TacitError):  # stored by now, and still not for an account from elsewhere
        data.agg(n=tc.count()).plan(epsilon=0.5).release(account="other")


def shared(ledger, epsilon=2):
    return ledger.create_account("hospital", unit="pid", budget=tc.Budget(epsilon=epsilon))


def part(ledger, name, **how):
    frame = pd.DataFrame({"pid": range(1000), "icd": "C50"})
    how = {"budget": tc.Budget(epsilon=2), "parent": "hospital", **how}
    return tc.protect(frame, unit="pid", name=name, ledger=ledger, **how)


def test_several_datasets_share_the_budget_of_an_account_above_them(tmp_path):
    path = tmp_path / "hospital.ledger"
    with tc.Ledger.open(path) as ledger:
        shared(ledger)
        visits_, labs = part(ledger, "visits"), part(ledger, "labs")
        plan = visits_.agg(n=tc.count()).plan(epsilon=1.5)
        first = plan.release()
        assert (ledger.account("hospital").spent.epsilon, float(labs.remaining.epsilon)) == (1.5, 2)
        with pytest.raises(TacitError, match="hospital") as refused:
            labs.agg(n=tc.count()).plan(epsilon=1).release()
        assert refused.value.code == "budget-exceeded"
        second = labs.agg(n=tc.count()).plan(epsilon=0.5).release()
        ledger.create_account("team", parent="visits", budget=tc.Budget(epsilon=2))
        team = plan.release(account="team")
        assert team.value == first.value
        assert ledger.account("hospital").spent.epsilon == 2
        for release in (first, second, team):
            assert release.certificate.problems(ledger) == []
        assert first.certificate.fields["filter"] == ["visits", "hospital"]
        assert ledger.verify().ok
    with tc.Ledger.open(path) as ledger:  # a new session
        assert part(ledger, "visits").agg(n=tc.count()).plan(epsilon=1.5).release().value == first.value
        for payer in ("hospital", "labs"):
            with pytest.raises(TacitError) as refused:
                plan = part(ledger, "visits").agg(n=tc.count()).plan(epsilon=0.1)
                plan.release(account=payer)
            assert refused.value.code == "account-differs"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"parent": None}, "account-differs"),
        ({"parent": "nosuch"}, "unknown-account"),
        ({"parent": "other"}, "account-differs"),
        ({"adjacency": "replace"}, "account-differs"),
    ],
)
def test_a_dataset_keeps_its_parent_and_its_unit(how, code):
    ledger = tc.Ledger.memory()
    shared(ledger)
    ledger.create_account("other", unit="pid", budget=tc.Budget(epsilon=2))
    part(ledger, "visits")
    with pytest.raises(TacitError) as refused:
        part(ledger, "visits", **how)
    assert refused.value.code == code


def test_the_parent_and_the_record_are_declared_in_the_config(tmp_path):
    (tmp_path / "v.csv").write_text("pid,icd\n1,C50\n")
    with tc.Ledger.open(tmp_path / "a.ledger") as ledger:
        shared(ledger)
    text = (
        'ledger = "a.ledger"\n[datasets.visits]\nsource = "v.csv"\nunit = "pid"\nbudget = {epsilon = 1}\n'
        'parent = "hospital"\nrecord = "shape"\n'
    )
    (tmp_path / "tacit.toml").write_text(text)
    data = tc.tables.load_config(tmp_path / "tacit.toml")["visits"]
    data.where("icd = 'C50'").agg(n=tc.count()).plan(epsilon=1).release()
    ledger = ledger_of(data)
    assert ledger.account("hospital").spent.epsilon == 1
    assert ledger.history()[-2].asked == "count, where icd = ?, of visits"
    ledger.close()


CANARY = "zq7xcanary"


def questions(data):
    """Ask for a canary in every place of a question, fluently and in SQL."""
    yield data.where(f"icd = '{CANARY}'").agg(n=tc.count())
    yield data.where(f"icd IN ('C50', '{CANARY}') OR icd LIKE '%{CANARY}%'").agg(n=tc.count())
    yield data.with_columns(**{f"is_{CANARY}": f"icd = '{CANARY}'"}).where(f"is_{CANARY}").agg(n=tc.count())
    yield data.group_by(hit=tc.col("icd") == CANARY, keys=[True, False]).agg(n=tc.count())
    yield data.agg(**{CANARY: tc.count()})
    yield data.per_unit(**{CANARY: tc.count()}).where(f"{CANARY} > 1").agg(n=tc.count())
    yield data.sql(f"SELECT COUNT(*) FROM visits WHERE icd = '{CANARY}'")
    yield data.sql(f"SELECT COUNT(*) AS {CANARY} FROM visits WHERE icd <> '{CANARY}'")
    yield data.sql(f"SELECT SUM(CASE WHEN icd = '{CANARY}' THEN 1 ELSE 0 END) AS n FROM visits")
    yield data.sql(
        f"WITH {CANARY} AS (SELECT pid, icd = '{CANARY}' AS hit FROM visits) "
        f"SELECT COUNT(*) FROM {CANARY} WHERE hit"
    )


def test_no_constant_of_a_question_is_found_in_the_ledger_of_a_dataset_that_keeps_shapes(tmp_path):
    counts = {}
    for record in ("words", "shape"):
        folder = tmp_path / record
        folder.mkdir()
        with tc.Ledger.open(folder / "a.ledger") as ledger:
            shared(ledger, 99)
            data = part(ledger, "visits", budget=tc.Budget(epsilon=99), record=record)
            for i, question in enumerate(questions(data)):
                question.plan(epsilon=1 + i / 100).release(who="ana", key=f"k{i}")
            counts[record] = sum(CANARY in line for line in ledger.export())
            told = [entry.asked for entry in ledger.history() if entry.asked]
            assert len(told) == 10
            assert ledger.verify().ok
            kept = b"".join(file.read_bytes() for file in folder.iterdir())  # the write-ahead log, too
        kept += b"".join(file.read_bytes() for file in folder.iterdir())
        assert (CANARY.encode() in kept) is (record == "words")
    assert counts == {"words": 10, "shape": 0}
    assert told[0] == "count, where icd = ?, of visits"
    assert told[2] == "count, where column 1, with column 1 = icd = ?, of visits"


def test_a_session_with_an_older_declaration_does_not_write_words_once_shapes_are_kept():
    ledger = tc.Ledger.memory()
    shared(ledger)
    old = part(ledger, "visits")
    part(ledger, "visits", record="shape")
    old.where(f"icd = '{CANARY}'").agg(n=tc.count()).plan(epsilon=1).release()
    assert CANARY not in "".join(ledger.export())
    with pytest.raises(TacitError) as refused:
        part(ledger, "visits")
    assert refused.value.code == "account-differs"
    assert "shape" in str(refused.value.fix)


def test_members_of_a_consortium_each_keep_what_they_declare():
    ledgers = [tc.Ledger.memory(), tc.Ledger.memory()]
    for ledger in ledgers:
        shared(ledger)
    north, south = part(ledgers[0], "north"), part(ledgers[1], "south", record="shape")
    tc.consortium([north, south], disjoint=True).where(f"icd = '{CANARY}'").agg(n=tc.count()).plan(
        epsilon=1
    ).release()
    assert [CANARY in "".join(ledger.export()) for ledger in ledgers] == [True, False]
