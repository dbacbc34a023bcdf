"""The attack on tables: random plans on neighbours from every source, and broken twins that it catches."""

from unittest import mock

import pytest

from support.attack_tables import attack


def check(found, plans):
    assert not found.violations, "\n".join(found.violations[:5])
    assert found.compared >= plans
    assert found.refused < found.plans / 3


def test_one_unit_moves_no_plan_by_more_than_it_declares(tmp_path):
    found = attack(20, 100, tmp_path, per_world=8)
    check(found, 100)
    assert len(found.kinds) >= 6
    # if mechanisms declared half of their sensitivity, most plans that a neighbour moves would be caught
    assert found.flagged_if_halved > found.moved / 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "source"),
    [
        # line ends inside cells end lines, so that one person forges others
        ({"tacit.engines.duckdb._connections.copy_with_coded_cells": lambda *_: False}, "csv"),
        # limits on rows are not kept
        (
            {
                "tacit.engines.duckdb._engine.limited_view": lambda name, rows, *_, **__: _every_row(
                    name, rows
                )
            },
            "arrow",
        ),
    ],
    ids=["line ends", "limits"],
)
def test_broken_twins_are_caught(tmp_path, broken, source):
    [(place, twin)] = broken.items()
    with mock.patch(place, twin):
        found = attack(7, 500, tmp_path, per_world=4, source=source, to_the_first=True)
    assert found.violations


def _every_row(name, rows):
    return f'CREATE OR REPLACE TEMP VIEW "{name} first {rows}" AS SELECT * FROM "{name}"'


@pytest.mark.long
def test_ten_thousand_plans(tmp_path):
    found = attack(1, 10_000, tmp_path)
    print(found.report())
    check(found, 10_000)
    assert found.flagged_if_halved > found.compared / 2
