"""The tests of `make quick`, for every save: some of every room, in two minutes and without PyTorch.

A file in one of `FOLDERS` is quick unless `SLOW` names it, or it begins by importing a package that the extra
`test-quick` does not install. `SLOW` names files that take about a second of one core or more. Where a few
tests take most of that time, `SLOW_TESTS` names these tests instead. `pytest --quick --durations=20` shows
which tests have become slow.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

__all__ = ["QuickTier", "is_quick", "is_quick_test"]

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/tacit", "tests/contract", "tests/unit")
#: Quick files of other folders.
FILES = frozenset(
    {
        "tests/e2e/test_budget_plan_command.py",
        "tests/e2e/test_command.py",
        "tests/e2e/test_documentation.py",
        "tests/e2e/test_limits_command.py",
        "tests/e2e/test_words.py",
        "tests/statistical/test_broken_twins.py",
        "tests/statistical/test_graph_attack.py",
        "tests/statistical/test_noise_attack.py",
        "tests/statistical/test_noise_independence.py",
        "tests/statistical/test_power_forecast.py",
        "tests/statistical/test_quantile_accuracy.py",
    }
)
#: Slow files, by folder and without `test_`; a star stands for all.
SLOW = {
    "src/tacit/audit/lab": "__init__ _heat_map",
    "src/tacit/learn": "*",
    "src/tacit/mechanisms/training": "_sampled_steps",
    "tests/contract": (
        "bad_arguments composite_owners database_tables engine_groups engine_plans engines frames "
        "hostile_cells learning_questions question_neighbours unique_keys values"
    ),
    "tests/unit": "worked_examples wrong_calls",
    "tests/unit/accounting": (
        "categorical_response filters_orders grouped_samples nested_samples noise_shares numeric_bounds "
        "numeric_methods rare_losses renyi_curves response_blanket rules sampled_laplace selection "
        "shuffled_curve shuffled_lattice small_samples snapped_sums"
    ),
    "tests/unit/audit": "lab one_run plan_audit",
    "tests/unit/cli": "start",
    "tests/unit/core": "budget_schedule content_kinds outside_field",
    "tests/unit/engines": "written_files",
    "tests/unit/genomes": "components",
    "tests/unit/graphs": "neighbours projection questions",
    "tests/unit/inference": "caution regression_integers regression_readings survival",
    "tests/unit/learn": (
        "federated_attacks federated_protocol hostile_fits parameter_search shape_estimators "
        "shape_neighbours teachers"
    ),
    "tests/unit/ledger": "blocks damaged_files tampering",
    "tests/unit/maps": "adaptive_questions trips",
    "tests/unit/mechanisms": (
        "banded_steps integer_mechanisms ladder_noise ladder_on_graphs moment_sets noise_laws rows "
        "splitting_tree star_ladder"
    ),
    "tests/unit/noise": "intervals parameters repeatable_noise rounded_laws",
    "tests/unit/service": "pages",
    "tests/unit/service/access": "delays people secrets sign_in single_sign_on",
    "tests/unit/service/curation": "datasets pages refused_pages registration requests",
    "tests/unit/service/runner": (
        "admission failures further_questions other_kinds outcomes outside_kind queries releases streams "
        "timing"
    ),
    "tests/unit/service/plans": "hostile_asks kinds ledger_operations sandbox",
    "tests/unit/strategies": "factorisation octaves",
    "tests/unit/streams": "alarms bound_marks killed_streams streams worked_streams",
    "tests/unit/surveys": "heavy_hitters mixed_reports",
    "tests/unit/show": "every_kind",
    "tests/unit/synth": "models steps",
    "tests/unit/tables": (
        "accounts analyst_questions blocks consortium crosstabs dates display forged_documents "
        "forged_workloads found_bounds hierarchies intervals joined_neighbours levels minimum_people "
        "missing_groups neighbours ranges sampling sources sql_neighbours sql_rewrites sql_tables "
        "unit_pairs words workload_neighbours"
    ),
}
#: Slow tests in quick files.
SLOW_TESTS = (
    "test_a_change_is_estimated_person_by_person",
    "test_a_comparison_that_is_never_true_is_refused_and_its_fix_answers",
    "test_a_cost_without_an_epsilon_shows_itself_too",
    "test_a_failure_has_all_headers_and_says_nothing",
    "test_a_model_of_fifty_megabytes_is_stored_once_and_read_back",
    "test_a_node_that_leaves_moves_the_integers_by_no_more_than_the_sensitivity",
    "test_a_question_is_in_a_batch_with_one_of_another_field_on_the_same_account",
    "test_a_question_is_planned_from_its_risk",
    "test_a_release_of_very_many_groups_shows_what_a_release_of_few_shows",
    "test_a_risk_beside_a_total_and_a_total_in_rho_that_is_not_taken_are_refused",
    "test_a_role_on_another_dataset_reaches_nothing_of_this_one",
    "test_a_run_that_need_not_import_everything_shows_what_the_installed_command_shows",
    "test_addition_commutes_and_associates",
    "test_all_rows_are_those_of_the_engine_and_equal_texts_are_one",
    "test_areas_are_answered_in_either_way_of_writing_longitudes",
    "test_branches_are_a_set",
    "test_bulk_bits_are_balanced_and_never_repeat_across_calls",
    "test_check_estimator_passes",
    "test_demo_never_writes_into_a_folder_that_is_there",
    "test_demo_runs_without_a_terminal_and_leaves_what_it_made",
    "test_each_flipped_byte_of_a_block_is_named",
    "test_epsilon_and_delta_are_inverse_to_each_other",
    "test_events_in_far_columns_and_sums_are_found",
    "test_every_aggregate_of_every_hostile_name_is_that_of_a_plain_name",
    "test_every_edit_of_a_consortium_s_certificate_is_found",
    "test_every_explanation_shows_itself_everywhere",
    "test_every_subset_is_drawn_with_its_probability",
    "test_every_tail_agrees_with_a_slow_inversion",
    "test_groups_by_parts_have_the_integers_of_all_groups_at_once",
    "test_h3_cells_at_poles_and_the_180th_meridian_lose_no_point",
    "test_hostile_names_stay_text",
    "test_hostile_statement",
    "test_intervals_cover_as_often_as_stated",
    "test_keys_of_a_public_table",
    "test_many_columns_up_to_three_way_are_planned_in_five_seconds",
    "test_more_is_never_less",
    "test_multiplication_is_repeated_addition",
    "test_no_plain_fix_of_the_library_contains_python",
    "test_no_problem_contains_python_whatever_the_library_advises",
    "test_no_replacement_changes_the_sum_by_more",
    "test_no_unit_moves_the_sums_further_than_the_sensitivity",
    "test_no_value_of_a_field_makes_the_service_fail",
    "test_odd_keys_are_found_by_their_ranks",
    "test_odd_values_stay_within_the_bounds",
    "test_one_person_moves_every_score_by_at_most_the_sensitivity",
    "test_one_person_moves_no_more_than_the_noise_covers",
    "test_one_row_changes_all_nine_integers_by_one_weight_at_most",
    "test_one_unit_changes_what_is_kept_and_cut_by_no_more_than_is_declared",
    "test_one_unit_moves_no_mechanism_of_a_batch_by_more_than_its_sensitivity",
    "test_one_unit_moves_the_counts_no_further_than_stated",
    "test_permute_and_flip_charged_as_bounded_range_is_caught_over_many_runs",
    "test_permute_and_flip_charged_as_pure_passes_alone_and_over_many_runs",
    "test_random_plans_are_alike",
    "test_random_targets_are_met_from_below_within_a_thousandth",
    "test_rectangles_lie_under_the_weights_and_boxes_over_them",
    "test_shuffled_reports_cover_any_two_values",
    "test_the_bound_is_wrong_no_more_often_than_stated",
    "test_the_certificate_of_a_consortium_verifies",
    "test_the_cost_of_a_mechanism_is_worked_out_again",
    "test_the_name_of_a_table_never_meets_a_name_inside_a_statement",
    "test_the_rho_cap_is_certified_from_below_and_tight",
    "test_tiny_samples_are_never_read_as_nothing",
    "test_two_operators_cover_the_mechanisms_they_speak_of",
    "test_what_a_ledger_charges_adds_up",
    "test_what_is_shown_has_the_same_law_as_key_by_key",
    "test_which_points_are_kept_does_not_depend_on_others",
)
#: Slow cases of tests: how their names begin.
SLOW_CASES = (
    "test_a_broken_twin_is_caught[paid per group]",
    "test_a_broken_twin_is_caught[sparse vector",
    "test_console_lines_run[docs/",
    "test_python_blocks_run[docs/",
)
#: Tests in quick files that need a package which the extra does not install.
UNINSTALLED_TESTS = (
    "test_an_assistant_by_the_official_client",
    "test_every_public_name_is_in_the_reference",
    "test_what_a_room_exports_is_sorted_and_there[learn]",
)


def packages(extra: str) -> set[str]:
    """Return what an extra installs by name, as it is imported where that is the same word."""
    found = set()
    for line in EXTRAS[extra]:
        if own := re.fullmatch(r"tacit\[(.*)\]", line):
            found = found.union(*map(packages, own[1].split(",")))
        else:
            found.add(re.match(r"[\w-]+", line)[0].replace("-", "_"))
    return found


EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
UNINSTALLED = packages("test") - packages("test-quick")
_IMPORTS_MORE = re.compile(
    rf"^(?: *>>> )?(?:from |import |[^ #].*importorskip\(.)(?:{'|'.join(sorted(UNINSTALLED))})\b",
    re.MULTILINE,
)
_ON_SERVER = re.compile(r"[\[-](?:postgres|spark)[]-]")


def is_quick(path: Path) -> bool:
    """Say whether a file belongs to the tier."""
    place = path.relative_to(ROOT).as_posix()
    slow = SLOW.get(place.rpartition("/")[0], "").split()
    slow += ["*" for folder in path.relative_to(ROOT).parents if SLOW.get(folder.as_posix()) == "*"]
    start = "" if place.startswith("src/") else "test_"
    listed = place in FILES or (place.startswith(FOLDERS) and path.name.startswith(start))
    if not listed or "*" in slow or path.stem.removeprefix(start) in slow:
        return False
    return not _IMPORTS_MORE.search(path.read_text(encoding="utf-8"))


def is_quick_test(name: str) -> bool:
    """Say whether a test in a quick file belongs to the tier: it is not named above and needs no server."""
    named = {name, name.partition("[")[0]}.intersection(SLOW_TESTS + UNINSTALLED_TESTS)
    return not (named or name.startswith(SLOW_CASES) or _ON_SERVER.search(name))


class QuickTier:
    """The plugin behind `--quick`."""

    @pytest.hookimpl
    def pytest_ignore_collect(self, collection_path):
        """Do not read files that are not in the tier."""
        return True if collection_path.suffix == ".py" and not is_quick(collection_path) else None

    @pytest.hookimpl
    def pytest_collection_modifyitems(self, config, items):
        """Drop the tests that are not in the tier."""
        quick, others = [], []
        for item in items:
            needs = {"postgres_server", "spark"}.intersection(getattr(item, "fixturenames", ()))
            long = item.get_closest_marker("long")
            (quick if is_quick_test(item.name) and not needs and not long else others).append(item)
        items[:] = quick
        config.hook.pytest_deselected(items=others)
