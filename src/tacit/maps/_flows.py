"""Flows: how many trips go from each public zone to each other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.core import Draft, Forecast, Step, Task
from tacit.maps._flow_table import FlowTable, flow_table
from tacit.maps._map_draft import missing_source

if TYPE_CHECKING:
    from tacit.core import Goal
    from tacit.maps._trips import Trips
    from tacit.maps._zones import Zones


def draft_flows(trips: Trips, goal: Goal, zones: Zones) -> Draft[FlowTable]:
    """Draft the numbers of trips between all pairs of zones, with at most so many trips of each unit."""
    source, box, most = trips._source, trips.box, trips.most  # noqa: SLF001 - a part of the trips
    moved = most * (2 if trips.adjacency == "replace" else 1)
    noise = goal.noise(l1=moved, l2_squared=moved**2, adjacency=trips.adjacency)
    task = Task(
        document={
            "flows": zones.to_json(),
            "ends": source.roles,
            "box": None if box is None else box.to_json(),
            "rows": most,
        },
        open=lambda _: source,
        steps=(Step(noise, lambda opened, _: opened.matrix(zones, box)),),
        reading=lambda noisy, level: flow_table(zones.names, noisy[0], noise.half_width(level), float(level)),
        unavailable=lambda: missing_source(source),
    )
    counted = "1 trip of each" if most == 1 else f"{most} trips of each"
    return Draft(
        task=task, asked=f"trips between {len(zones):,} zones",
        forecast=[
            Forecast(
                "trips", "trips from origin to destination", noise.describe(),
                noise.half_width(goal.confidence),
            )
        ],
        facts=[
            ("zones", f"{len(zones):,} public zones, {len(zones) ** 2:,} pairs, all of them released"),
            ("limits", f"at most {counted} {trips.unit.noun} count{'s' if most == 1 else ''}"),
        ],
    )  # fmt: skip
