"""What a cost means: every figure a user can check by hand."""

import json
import math
import subprocess
import sys

import pytest

import tacit as tc
from tacit.explain import (
    DEPLOYMENTS,
    ExplainedQuestion,
    rate_distortion,
    small_crowd,
    tradeoff,
    what_a_budget_buys,
)
from tacit.explain._odds import best_test
from tacit.fixes import Choose, Code, Set

PURE = tc.Cost.pure(0.5)
GAUSSIAN = tc.Cost.gaussian(sigma=4, sensitivity=1)


def test_the_room_is_also_its_function():
    import tacit.explain as room
    from tacit.explain import explain

    assert tc.explain is room
    assert tc.explain(PURE).sentence == explain(PURE).sentence == room.explain(PURE).sentence


def test_the_room_exports_exactly_what_it_says():
    from tacit import audit
    from tacit.audit import lab

    for module in (tc.explain, audit, lab):
        assert all(getattr(module, name) is not None for name in module.__all__)
        assert module.__all__ == sorted(
            module.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n)
        )


def test_importing_the_room_does_not_import_matplotlib():
    code = "import sys, tacit.explain, tacit.audit.lab; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_odds_sentence():
    assert tc.explain(PURE).sentence == (
        "An attacker who gave 50:50 odds that you are in the data can reach at most 62:38 (62.3 %)."
    )


def test_an_advantage_is_not_said_as_a_share_of_right_guesses():
    text = " ".join(str(tc.explain(PURE)).split())
    assert "is right at most 62.25 % of the time; a coin is right half of the time" in text
    assert "true alarms minus the rate of false alarms) is at most 24.50 %" in text
    assert "beats blind guessing by" not in text


def test_a_small_epsilon_hardly_moves_the_odds():  # WORKED_EXAMPLES 2
    text = str(tc.explain(tc.Cost.pure(0.01)))
    assert "1.0101 times as likely" in text  # 1.01005, rounded up


def test_bits():  # WORKED_EXAMPLES 3
    assert round(tc.explain(tc.Cost.pure(0.1)).bits, 4) == 0.1443


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 5])
@pytest.mark.parametrize("prior", [0.001, 0.1, 0.5, 0.99])
def test_posterior_odds_are_prior_odds_times_the_factor(epsilon, prior):  # WORKED_EXAMPLES 6
    belief = tc.explain(tc.Cost.pure(epsilon), priors=[prior]).beliefs[0]
    for after, sign in ((belief.at_most, 1), (belief.at_least, -1)):
        assert after / (1 - after) == pytest.approx(prior / (1 - prior) * math.exp(sign * epsilon), rel=1e-9)


def test_a_family_of_five():  # WORKED_EXAMPLES 25
    (family,) = tc.explain(tc.Cost.pure(0.1), families=[5]).families
    assert family.epsilon == pytest.approx(0.5)
    assert family.epsilon >= 0.5


def test_the_best_test_obeys_both_sides():
    for fpr, tpr in tc.explain(tc.Cost.pure(1)).tests:
        assert tpr == pytest.approx(min(math.e * fpr, 1 - (1 - fpr) / math.e))


def test_the_best_test_against_gaussian_noise_is_near_the_truth():
    """For N(0,1) against N(mu,1) the best test is known; ours is at or just above it."""
    from scipy.stats import norm

    for fpr in (0.001, 0.01, 0.05, 0.2, 0.5, 0.9):
        truth = norm.sf(norm.isf(fpr) - 0.25)
        assert truth - 1e-12 <= best_test(GAUSSIAN)(fpr) <= truth + 0.003


@pytest.mark.parametrize("cost", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
def test_blind_guessing_is_never_beaten_by_more_than_the_advantage(cost):
    power = best_test(cost)
    for step in range(1, 20):
        fpr = step / 20
        assert fpr <= power(fpr) <= fpr + float(cost.advantage) + 1e-12


def test_with_a_delta_the_exception_is_named():
    meaning = tc.explain(GAUSSIAN, delta=1e-6)
    assert not meaning.pure
    assert meaning.beliefs == ()
    assert meaning.bits is None
    assert meaning.sentence.startswith("Except with probability 1e-06, the odds move by at most a factor of ")
    for limit in meaning.limits:
        assert float(GAUSSIAN.loss_exceeds(limit.loss)) <= limit.probability
        assert float(GAUSSIAN.loss_exceeds(limit.loss - 1e-4)) > limit.probability


def test_the_exception_is_not_delta():
    """At the epsilon read at delta, the odds move further with a larger probability than delta."""
    meaning = tc.explain(GAUSSIAN, delta=1e-6)
    assert float(GAUSSIAN.loss_exceeds(meaning.epsilon)) > 1e-6
    assert meaning.limits[-1].loss > meaning.epsilon


def test_a_mechanism_that_leaks_everything_sometimes_is_called_by_its_name():  # WORKED_EXAMPLES 7
    meaning = tc.explain(tc.Cost.approximate(0.5, 0.05), delta=0.06)
    assert [limit.loss is None for limit in meaning.limits] == [False, True, True]
    assert "no limit" in str(meaning)
    assert meaning.sentence.startswith("Except with probability 0.06,")
    assert not meaning.pure


def test_budgets_and_mechanisms_are_explained_too():
    assert tc.explain(tc.Budget(epsilon=0.5)).sentence == tc.explain(PURE).sentence
    assert tc.explain(tc.mechanisms.DiscreteLaplace(epsilon=0.5, sensitivity=1)).epsilon == 0.5
    rho = tc.explain(tc.Budget(rho=0.1), delta=1e-6)
    assert rho.epsilon == float(tc.Cost.zcdp(0.1).epsilon(delta=1e-6))
    both = tc.explain(tc.Budget(epsilon=1, delta=1e-9), delta=1e-6)
    assert both.epsilon <= 1


def test_many_pure_queries_are_far_better_than_their_epsilon_but_for_rare_cases():
    many = 100 * tc.Cost.discrete_laplace(scale=10, sensitivity=1)
    meaning = tc.explain(many)
    assert meaning.pure
    assert meaning.epsilon == pytest.approx(10)
    assert [limit.probability for limit in meaning.limits] == [1e-2, 1e-4, 1e-6]
    for limit in meaning.limits:
        assert limit.loss < 6
        assert many.loss_exceeds(limit.loss) <= limit.probability
    assert tc.explain(PURE).limits == ()


def test_revealing_nothing_can_be_explained():
    meaning = tc.explain(tc.Cost.zero(), budget=tc.Budget(epsilon=1))
    assert meaning.sentence.endswith("at most 50:50.")
    assert meaning.fits >= 2**39


def _stays(folder, rows):
    (folder / "v.csv").write_text("patient_id,stay\n1,3\n2,5\n3,8\n")
    return tc.protect(
        folder / "v.csv",
        unit="patient_id",
        bounds={"stay": (0, 30)},
        limits=tc.Limits(rows=rows),
        budget=tc.Budget(epsilon=3),
    )


def test_plans_releases_and_certificates_are_explained_too(tmp_path):
    visits = _stays(tmp_path, rows=2)
    plan = visits.agg(n=tc.count(), stay=tc.mean("stay")).plan(epsilon=0.5)
    meaning = tc.explain(plan)
    assert meaning.sentence == tc.explain(PURE).sentence
    assert [one.column for one in meaning.forecasts] == ["n", "stay"]
    assert "count()" in str(meaning)
    json.dumps(meaning.to_dict(), allow_nan=False)
    release = plan.release()
    assert tc.explain(release).sentence == tc.explain(release.certificate).sentence == meaning.sentence


def test_a_release_of_parts_says_why_it_gives_less_than_its_epsilon(tmp_path):
    visits = _stays(tmp_path, rows=4)
    plan = visits.agg(n=tc.count(), stay=tc.mean("stay")).plan(epsilon=1)
    meaning = tc.explain(plan.release().certificate)
    text = " ".join(str(meaning).split())
    assert "is at most 24.21 %" in text
    assert "Epsilon 1 alone would allow an advantage of 46.22 %" in text
    assert "here it is less because the noise is known" in text
    assert meaning.counts == (("number of rows", plan.forecast[0].error),)  # its own error, +/- 24
    assert "number of rows +/- 24" in text
    assert "what it buys" not in text
    page = meaning.html_report()
    assert "For comparison: any release with the epsilon" in page
    assert '"question": null' in page
    asked = tc.explain(plan.release(), question=ExplainedQuestion("count"))
    assert "what it buys: count" in str(asked)


def test_why_an_advantage_is_less_is_said_only_where_it_is():
    assert "alone" not in str(tc.explain(PURE))
    assert "alone" not in str(tc.explain(GAUSSIAN))
    assert "For comparison" not in tc.explain(PURE).html_report()
    several = " ".join(str(tc.explain(tc.Cost.pure(0.25) + 3 * tc.Cost.pure(0.5))).split())
    assert "made of 1 part of epsilon 1/4 and 3 parts of epsilon 1/2." in several
    known = " ".join(str(tc.explain(2 * tc.Cost.discrete_laplace(scale=2, sensitivity=1))).split())
    assert "the noise is known" in known


@pytest.mark.parametrize(
    "mechanisms",
    [
        None,
        7,
        ["x"],
        [{"statistic": "rows", "law": "laplace", "scale": "0"}],
        [{"statistic": "rows", "law": "laplace", "scale": "-1"}],
    ],
)
def test_the_counts_of_a_certificate_by_another_hand_are_left_out(mechanisms):
    empty = dict.fromkeys(("dataset", "filter", "plan", "software", "ledger"))
    fields = {**empty, "schema": "tacit/certificate/1", "cost": PURE.to_json(), "mechanisms": mechanisms}
    assert tc.explain(tc.Certificate(fields)).counts == ()


def test_how_often_a_budget_pays():
    assert tc.explain(PURE, budget=tc.Budget(epsilon=3)).fits == 6
    assert tc.explain(tc.Cost.pure(0.1), budget=tc.Budget(epsilon=1)).fits == 10
    assert tc.explain(PURE, budget=tc.Budget(epsilon=0.4)).fits == 0
    assert tc.explain(GAUSSIAN, budget=tc.Budget(epsilon=3)).fits == 0
    assert tc.explain(GAUSSIAN, budget=tc.Budget(rho=1)).fits == 32  # rho = 1/32 each


def test_every_explanation_shows_itself_everywhere():
    from rich.console import Console

    for cost in (PURE, GAUSSIAN, tc.Cost.zcdp(0.5), tc.Cost.approximate(1, 1e-8)):
        meaning = tc.explain(cost)
        assert "groups and families" in str(meaning)
        assert "<table" in meaning._repr_html_()
        json.dumps(meaning.to_dict(), allow_nan=False)
        assert meaning.plot()._repr_png_().startswith(b"\x89PNG")
        console = Console(width=100)
        with console.capture() as said:
            console.print(meaning)
        assert "groups and families" in said.get()
        page = meaning.html_report()
        assert "http://" not in page.replace("http://www.w3.org", "")
        assert "https://" not in page
        assert "@" not in page.split("<style>")[0] + page.split("</style>")[1]


@pytest.mark.parametrize("delta", [0.5, 0.005, 2e-6])
def test_a_cost_without_an_epsilon_shows_itself_too(delta):
    meaning = tc.explain(tc.Cost.approximate(0.5, delta))
    assert str(meaning).startswith("What this cost means (no epsilon holds at delta 1e-06)")
    assert meaning.plot()._repr_png_().startswith(b"\x89PNG")
    facts = meaning.html_report().split('type="application/json">')[1].split("</script>")[0]
    losses = json.loads(facts)["losses"]
    assert losses[-1][0] > 0.5
    assert delta <= losses[-1][1] <= 1.01 * delta
    assert (meaning.odds_limit[0] == math.inf) == (delta == 0.5)


def test_saved_pages_are_complete(tmp_path):
    tc.explain(PURE).save_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tc.explain(3),
        lambda: tc.explain("epsilon"),
        lambda: tc.explain(PURE, priors=[0]),
        lambda: tc.explain(PURE, priors=[1]),
        lambda: tc.explain(PURE, families=[0]),
        lambda: tc.explain(GAUSSIAN, delta=0),
        lambda: tc.explain(GAUSSIAN, delta=1),
        lambda: ExplainedQuestion("median"),
        lambda: ExplainedQuestion("mean", bounds=(0, 1)),
        lambda: ExplainedQuestion("sum", n=3),
        lambda: ExplainedQuestion("sum", n=3, bounds=(1, 1)),
        lambda: ExplainedQuestion("sum", n=3, bounds=(1, float("inf"))),
        lambda: ExplainedQuestion("sum", n=3, bounds=5),
        lambda: tradeoff("count", error=0),
        lambda: tradeoff("count", error=1, confidence=1),
        lambda: rate_distortion([]),
        lambda: small_crowd(epsilon=0),
        lambda: what_a_budget_buys({}, epsilon=1),
        lambda: what_a_budget_buys({"a": ExplainedQuestion("count")}, epsilon=1),
        lambda: what_a_budget_buys({"a": ExplainedQuestion("count", 5)}, epsilon=1, weights={"b": 2}),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(tc.TacitError) as refusal:
        wrong()
    assert refusal.value.code == "bad-parameter"
    assert str(refusal.value.fix)


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        (lambda: tc.explain(3), Code("tc.explain(tc.Cost.pure(0.5))")),
        (lambda: tc.explain(PURE, priors=[1]), Set(priors=(0.1, 0.5))),
        (lambda: tc.explain(GAUSSIAN, delta=1), Set(delta=1e-6)),
        (lambda: tradeoff("count", error=1, confidence=1), Set(confidence=0.95)),
        (lambda: ExplainedQuestion("median"), Choose(("count", "sum", "mean"), given="median")),
        (lambda: ExplainedQuestion("mean", bounds=(0, 1)), Set(n=1000)),
        (lambda: ExplainedQuestion("sum", n=3), Set(bounds=(0, 100))),
        (lambda: rate_distortion([]), Code("epsilons=(0.1, 1)")),
        (
            lambda: what_a_budget_buys({"a": ExplainedQuestion("count", 5)}, epsilon=1, weights={"b": 2}),
            Choose(("a",), given="b"),
        ),
    ],
)
def test_fixes_are_data(wrong, fix):
    with pytest.raises(tc.TacitError) as refusal:
        wrong()
    assert refusal.value.fix == fix


def test_published_figures_agree_with_our_own_arithmetic():
    by_name = {one.name: one for one in DEPLOYMENTS}
    census = by_name["US Census 2020: redistricting, persons"]
    assert float(tc.Cost.zcdp(census.rho).epsilon(delta=census.delta)) == pytest.approx(
        census.epsilon, abs=0.03
    )  # rho is published to 0.01
    one_report = by_name["Google: Chrome RAPPOR, one report"].epsilon
    f, p, q, h = 1 / 2, 1 / 2, 3 / 4, 2
    yes, no = f * (p + q) / 2 + (1 - f) * q, f * (p + q) / 2 + (1 - f) * p
    assert one_report == pytest.approx(h * math.log(yes * (1 - no) / (no * (1 - yes))), abs=1e-4)
    assert by_name["Google: Chrome RAPPOR, all reports"].epsilon == pytest.approx(4 * math.log(3), abs=1e-4)
    assert all(one.unit and one.source and (one.epsilon or one.rho) for one in DEPLOYMENTS)
