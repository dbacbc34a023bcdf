"""The attack lab: what each attack must show, and that nobody can attack with nonsense."""

import dataclasses
import json

import numpy as np
import pytest

from tacit import TacitError
from tacit.audit import lab
from tacit.fixes import Code, Set

QUICK = {"epsilons": [1], "trials": 500}


def test_the_people_are_always_the_same():
    first, second = lab.synthetic_people(300), lab.synthetic_people(300)
    assert list(first.rows()) == list(second.rows())
    assert list(lab.synthetic_people(1000).rows())[:300] == list(first.rows())


def test_people_cannot_be_changed():
    people = lab.synthetic_people(10)
    with pytest.raises(ValueError, match="read-only"):
        people.age[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        people.age = np.zeros(10)


def test_the_hash_spreads_evenly():
    shares = np.bincount((lab.hashed_uniform(np.arange(100_000), stream=3) * 10).astype(int), minlength=10)
    assert abs(shares - 10_000).max() < 500


def test_streams_of_the_hash_differ():
    one, two = (lab.hashed_uniform(np.arange(10_000), stream) for stream in (1, 2))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.05


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 50])
def test_mondrian_keeps_its_promise(k):
    people = lab.synthetic_people(1000)
    groups = lab.k_anonymise(people.known(), k)
    assert groups.sizes.min() >= k
    assert groups.sizes.sum() == 1000


def test_published_ranges_hold_their_people():
    people = lab.synthetic_people(500)
    groups = lab.k_anonymise(people.known(), 5)
    table = np.column_stack(list(people.known().values()))
    assert (table >= groups.low[groups.label]).all()
    assert (table <= groups.high[groups.label]).all()


def test_mondrian_leaves_no_class_that_could_be_cut():
    people = lab.synthetic_people(2000)
    groups = lab.k_anonymise(people.known("age"), 5)
    for cls in np.flatnonzero(groups.sizes >= 10):
        ages = np.sort(people.age[groups.label == cls])
        cuts = np.flatnonzero(np.diff(ages)) + 1
        middle = (len(ages) - 1) // 2
        assert not any(5 <= cut <= len(ages) - 5 and abs(cut - middle) <= 1 for cut in cuts)


def test_three_people_of_one_postcode_are_exposed_with_certainty():  # WORKED_EXAMPLES 31
    attack = lab.homogeneity_attack(
        k=3, people=lab.village(), known=["postcode"], epsilons=[0.5], trials=1000
    )
    assert attack.example == ("postcode 1003", 3, True)
    assert attack.right == 1.0
    assert attack.sure == pytest.approx(1 / 3)


def test_a_fifth_of_a_census_is_in_homogeneous_classes():
    attack = lab.homogeneity_attack(k=5, **QUICK)
    assert 0.15 < attack.sure < 0.30
    assert attack.right == 1.0


def test_larger_classes_expose_fewer_but_not_none():
    shares = [lab.homogeneity_attack(k=k, **QUICK).sure for k in (3, 5, 10)]
    assert shares[0] > shares[1] > shares[2] > 0


def test_without_a_homogeneous_class_nobody_is_exposed():
    people = lab.village()
    attack = lab.homogeneity_attack(k=9, people=people, **QUICK)
    assert attack.sure == 0
    assert attack.example is None
    assert "Example" not in str(attack)


def test_two_anonymous_tables_reidentify():  # WORKED_EXAMPLES 32
    attack = lab.linking_attack(k=5, **QUICK)
    assert attack.alone > 0.5
    assert attack.pinned_both > 10 * max(attack.pinned_first, attack.pinned_second)
    assert attack.right == 1.0


def test_two_exact_counts_expose_whoever_can_be_described():
    attack = lab.differencing_attack(**QUICK)
    assert attack.exposed > 0.9
    assert attack.right == 1.0
    _, everyone, without, has = attack.example
    assert everyone - without == has == 1


def test_the_differencing_attack_runs_with_numpy_2_0_0(monkeypatch):
    """That version alone returns the inverse of rows as a column."""
    unique = np.unique

    def of_that_version(values, axis=None, **wanted):
        found = unique(values, axis=axis, **wanted)
        return found if axis is None else (found[0], found[1].reshape(-1, 1), *found[2:])

    monkeypatch.setattr(np, "unique", of_that_version)
    assert lab.differencing_attack(**QUICK).right == 1


def test_reconstruction_brings_back_five_hundred_people():
    attack = lab.reconstruction_attack(500, epsilons=[1], trials=100)
    assert attack.recovered[1] > 0.9
    assert attack.recovered[5] > 0.9
    assert attack.recovered[10] > 0.9


def test_too_few_questions_do_not_reconstruct():
    exact = lab.reconstruction_attack(100, questions=100, roundings=[1, 50], epsilons=[1], trials=100)
    assert exact.recovered[50] < 0.8


def test_fresh_noise_is_averaged_away_and_a_stored_answer_is_not():
    attack = lab.averaging_attack(0.5, repeats=[1, 10, 300], trials=1000)
    assert attack.redrawn[-1].advantage > 0.9
    assert attack.redrawn[-1].epsilon == 150
    assert len({point.advantage for point in attack.stored}) == 1
    assert attack.stored[-1].epsilon == 0.5
    [table] = attack.report().tables
    kept = attack.stored[0]
    assert table.rows[0][3] == f"{kept.advantage:.3f} ({kept.low:.3f} to {kept.high:.3f})"


def test_membership_is_certain_from_the_exact_count():
    attack = lab.membership_attack(**QUICK)
    assert attack.with_target - attack.without_target == 1


def test_exact_allele_frequencies_reveal_membership_as_the_formula_says():
    attack = lab.genome_membership(200, snps=[200, 2000], epsilons=[1], trials=100)
    for snps, expected in {200: 0.260, 2000: 0.935}.items():
        assert attack.theory[snps] == pytest.approx(expected, abs=1e-3)
        assert attack.exact[snps] == pytest.approx(expected, abs=0.08)


def test_a_public_number_of_people_doubles_the_shift_in_the_bound():
    removed, replaced = (
        lab.genome_membership(100, snps=[200], epsilons=[0.1, 1], trials=100, adjacency=adjacency)
        for adjacency in ("add/remove", "replace")
    )
    assert removed.rho == replaced.rho == pytest.approx((0.000177, 0.01497), rel=1e-2)
    assert [each.bound for each in removed.insider] == pytest.approx([0.052, 0.0705], abs=5e-4)
    assert [each.bound for each in replaced.insider] == pytest.approx([0.054, 0.097], abs=5e-4)
    assert all(
        after.bound > before.bound for before, after in zip(removed.curve, replaced.curve, strict=True)
    )


def test_nobody_adds_more_to_the_sums_of_alleles_than_the_limit():
    from tacit.audit.lab._genomes import MarkerSample

    cohort = MarkerSample.of(300, 100)
    rows = cohort.centred(np.concatenate([cohort.members, np.full((1, 100), 2, dtype=np.int8)]))
    assert (rows**2).sum(axis=1).max() <= cohort.norm_squared
    assert (rows[-1] ** 2).sum() > 0.9 * cohort.norm_squared  # clipped, not dropped


def test_a_beacon_gives_its_members_away():
    attack = lab.beacon(questions=[100, 5000], epsilons=[1], trials=500)
    assert attack.random[100] < 0.3
    assert attack.random[5000] > 0.97
    assert attack.rarest == {10: 1.0}


def test_a_few_dozen_markers_single_out_one_person_of_a_million():  # WORKED_EXAMPLES 38
    attack = lab.singling_out(**QUICK)
    assert attack.one == {"0.5": (11, 17), "0.05 to 0.5": (14, 23)}
    assert attack.everybody == {"0.5": (17, 31), "0.05 to 0.5": (22, 41)}
    for formula, counted in attack.alone.values():
        assert counted == pytest.approx(formula, abs=0.05)


def test_the_share_of_unique_people_is_that_of_the_binomial_sum():
    from math import comb

    from tacit.audit.lab._genomes import spread, unique_share

    by_hand = sum(comb(10, h) / 2**10 * (1 - 0.5**h * 0.25 ** (10 - h)) ** 999 for h in range(11))
    assert unique_share(spread(10, (0.5, 0.5)), 1000) == pytest.approx(by_hand, abs=2e-3)


def test_a_smoothed_map_gives_its_sites_away_and_a_noisy_one_does_not():
    attack = lab.heat_map(20, rounds=120, **QUICK)
    assert attack.found > 0.85
    assert attack.found_in_tacit[1.0] < 0.2
    assert attack.undone > 0.9
    assert 0 < attack.hidden < 1
    assert "maps" not in attack.to_dict()


def test_a_friendship_shows_in_exact_counts_and_in_noise_that_the_data_scales():  # WORKED_EXAMPLES 14
    attack = lab.friendship(epsilons=[0.5], trials=5000)
    assert attack.after[0] - attack.before[0] == 1
    assert attack.after[1] - attack.before[1] == attack.common > 0
    assert attack.edges[0].within_bound
    assert attack.triangles[0].within_bound
    assert not attack.scaled_by_data[0].within_bound


def test_pictures_of_patients_come_back_out_of_exact_and_clipped_updates_and_not_out_of_noisy_ones():
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    attack = lab.update_inversion(
        [1, 8, 32], pictures=digits.data / 16, classes=digits.target, epsilons=[8], runs=10, trials=100
    )
    for shares in (attack.exact, attack.clipped):
        assert [shares["honest"][size] for size in (1, 8, 32)] == pytest.approx([1, 0.9, 0.3], abs=0.1)
        assert [shares["trap"][size] for size in (1, 8, 32)] == pytest.approx([1, 0.97, 0.88], abs=0.06)
    assert all(share == 0 for shares in attack.private[8.0].values() for share in shares.values())


def test_the_bound_on_updates_is_that_of_the_normal_law():
    from scipy.special import ndtr

    attack = lab.update_membership([8], hidden=8, epsilons=[1, 8], runs=2, trials=100)
    for one in attack.insiders:
        assert one.bound == pytest.approx(ndtr(1 / (2**0.5 * one.sigma)), abs=1e-12)
        assert one.success.bound == pytest.approx(2 * ndtr(1 / (2 * one.sigma)) - 1, abs=1e-9)
        ten = attack.over_rounds[one.success.epsilon][10]
        assert ten == pytest.approx(ndtr(10**0.5 / (2**0.5 * one.sigma)), abs=1e-12)
    assert attack.exact[8] > 0.75


def test_gradients_of_the_network_are_the_slopes_of_its_loss():
    from tacit.audit.lab._updates import ScanNetwork, Scans

    scans = Scans.of(None, None)
    some = scans.pick(3, 5)
    network = ScanNetwork.honest(scans, 8, 7)

    def losses(first):
        moved = dataclasses.replace(network, first=first)
        after = np.maximum(some.pictures @ moved.first.T + moved.first_bias, 0)
        scores = after @ moved.second.T
        return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(3), some.classes]

    gradients = network.gradients(some)[:, : 8 * 64].reshape(3, 8, 64)
    for unit, pixel in ((0, 20), (5, 33)):
        step = np.zeros((8, 64))
        step[unit, pixel] = 1e-6
        slope = (losses(network.first + step) - losses(network.first - step)) / 2e-6
        assert gradients[:, unit, pixel] == pytest.approx(slope, abs=1e-7)


def test_no_patient_adds_more_to_an_update_than_the_clipping_length():
    from tacit.audit.lab._updates import GRID, ScanNetwork, Scans, on_grid

    scans = Scans.of(None, None)
    steps = on_grid(ScanNetwork.trap(scans, 64, 9).gradients(scans.pick(50, 3)))
    lengths = (steps.astype(object) ** 2).sum(axis=1)
    assert max(lengths) <= GRID**2
    assert max(lengths) > 0.999 * GRID**2


@pytest.mark.parametrize(
    "attack",
    [
        lambda: lab.homogeneity_attack(k=5, **QUICK),
        lambda: lab.linking_attack(k=5, **QUICK),
        lambda: lab.differencing_attack(**QUICK),
        lambda: lab.reconstruction_attack(50, epsilons=[1], trials=100),
        lambda: lab.averaging_attack(0.5, repeats=[1, 5], trials=200),
        lambda: lab.membership_attack(**QUICK),
        lambda: lab.genome_membership(50, snps=[50, 200], epsilons=[1], trials=100),
        lambda: lab.beacon(100, questions=[50], epsilons=[1], trials=100),
        lambda: lab.singling_out([100], simulated=100, **QUICK),
        lambda: lab.heat_map(20, rounds=10, **QUICK),
        lambda: lab.friendship(30, **QUICK),
        lambda: lab.update_inversion([1, 4], hidden=16, runs=2, **QUICK),
        lambda: lab.update_membership([4, 8], hidden=8, runs=2, **QUICK),
    ],
    ids=[
        "homogeneity",
        "linking",
        "differencing",
        "reconstruction",
        "averaging",
        "membership",
        "genome membership",
        "beacon",
        "singling out",
        "heat map",
        "friendship",
        "update inversion",
        "update membership",
    ],
)
def test_every_result_shows_itself_everywhere(attack):
    from rich.console import Console

    result = attack()
    text = str(result)
    assert repr(result) == text
    assert "bound" in text
    assert "attack" in text.splitlines()[0].lower()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, dataclasses.fields(result)[0].name, 3)
    html = result._repr_html_()
    assert html.startswith("<div")
    assert "<table" in html
    console = Console(width=120)
    with console.capture() as said:
        console.print(result)
    assert "bound" in said.get()
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.unprotected
    picture = result.plot()
    assert picture._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: lab.synthetic_people(0),
        lambda: lab.synthetic_people(10**7),
        lambda: lab.k_anonymise({}, 3),
        lambda: lab.k_anonymise({"age": np.arange(5)}, 0),
        lambda: lab.k_anonymise({"age": np.arange(5)}, 6),
        lambda: lab.homogeneity_attack(k=0),
        lambda: lab.homogeneity_attack(epsilons=[]),
        lambda: lab.homogeneity_attack(epsilons=[-1]),
        lambda: lab.homogeneity_attack(epsilons=[float("nan")]),
        lambda: lab.membership_attack(trials=1),
        lambda: lab.membership_attack(target=10**6),
        lambda: lab.membership_attack(target=int(np.argmin(lab.synthetic_people().condition))),
        lambda: lab.averaging_attack(0.1, repeats=[]),
        lambda: lab.averaging_attack(0.1, repeats=[10**9]),
        lambda: lab.averaging_attack(0),
        lambda: lab.reconstruction_attack(0),
        lambda: lab.reconstruction_attack(100, questions=50),
        lambda: lab.reconstruction_attack(100_000),
        lambda: lab.People(*[np.zeros(3)] * 5, np.zeros(4)),
        lambda: lab.genome_membership(5),
        lambda: lab.genome_membership(5000, snps=[10_000]),
        lambda: lab.genome_membership(100, snps=[]),
        lambda: lab.genome_membership(100, adjacency="both"),
        lambda: lab.beacon(questions=[10**6]),
        lambda: lab.beacon(questions=[]),
        lambda: lab.beacon(0),
        lambda: lab.singling_out([5]),
        lambda: lab.singling_out(simulated=10**6),
        lambda: lab.heat_map(5000),
        lambda: lab.heat_map(kernel=0),
        lambda: lab.heat_map(kernel=float("nan")),
        lambda: lab.friendship(10**6),
        lambda: lab.friendship(2),
        lambda: lab.update_inversion([100]),
        lambda: lab.update_inversion([]),
        lambda: lab.update_inversion(hidden=2),
        lambda: lab.update_inversion(pictures=np.zeros((10, 4)), classes=np.zeros(10)),
        lambda: lab.update_inversion(pictures=np.full((400, 4), 2.0), classes=np.zeros(400)),
        lambda: lab.update_membership([1000]),
        lambda: lab.update_membership(runs=10**6),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(TacitError) as refusal:
        wrong()
    assert refusal.value.code == "bad-parameter"
    assert str(refusal.value.fix)


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        (lambda: lab.synthetic_people(10**7), Set(n=5000)),
        (lambda: lab.k_anonymise({"age": np.arange(5)}, 6), Set(k=5)),
        (lambda: lab.homogeneity_attack(epsilons=[]), Code("epsilons=(0.1, 1)")),
        (lambda: lab.membership_attack(trials=1), Set(trials=20_000)),
        (lambda: lab.membership_attack(target=10**6), Set(target=None)),
        (lambda: lab.averaging_attack(0.1, repeats=[]), Set(repeats=(1, 10, 100))),
        (lambda: lab.reconstruction_attack(100_000), Set(people=500, questions=1000)),
    ],
)
def test_fixes_are_data(wrong, fix):
    with pytest.raises(TacitError) as refusal:
        wrong()
    assert refusal.value.fix == fix
