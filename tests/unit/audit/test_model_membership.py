"""Membership reports: the attack that is measured, beside what the claim allows to any attack."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc


def test_a_report_shows_the_attack_beside_the_bound():
    rng = np.random.default_rng(3)
    members, others = rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)
    found = tc.audit.membership(members, others, claimed=tc.Cost.gaussian(sigma=1, sensitivity=1))
    assert found.auc == pytest.approx(0.7602, abs=0.02)
    assert found.auc <= found.auc_allowed < 0.79  # the best attack on a Gaussian reaches its bound
    assert all(low <= share <= high for _, share, low, high in found.found)
    assert found.found[-1][2] <= found.allowed[-1]
    text = str(found)
    assert "members found" in text
    assert "no attack can exceed" in text
    assert found.plot() is not None
    assert found.to_dict()["members"] == 2000


def test_without_a_claim_there_is_no_bound():
    found = tc.audit.membership([3.0, 2.0], [1.0, 0.0])
    assert found.auc == 1
    assert found.allowed is None
    assert found.plot() is not None


def test_scores_must_be_finite():
    with pytest.raises(tc.TacitError):
        tc.audit.membership([np.nan], [1.0])
    with pytest.raises(tc.TacitError):
        tc.audit.membership([], [1.0])


def test_a_claim_may_be_a_plan_a_release_or_its_certificate():
    rows = pd.DataFrame({"age": [40.0] * 50})
    people = tc.protect(rows, unit=tc.Unit.row(), name="claims", budget=tc.Budget(epsilon=2))
    plan = people.agg(n=tc.count()).plan(epsilon=1)
    release = plan.release()
    found = [
        tc.audit.membership([1.0, 2.0], [0.0, 1.0], claimed=claimed)
        for claimed in (plan.cost, plan, release, release.certificate)
    ]
    assert len({one.auc_allowed for one in found}) == 1
    assert found[0].auc_allowed < 1
    with pytest.raises(tc.TacitError, match="claimed"):
        tc.audit.membership([1.0], [0.0], claimed=1.5)
