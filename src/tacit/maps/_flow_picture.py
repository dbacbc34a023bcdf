"""The matrix of flows as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tacit.core import Certificate
    from tacit.maps._flow_table import FlowTable
    from tacit.picture import Picture

_FEW = 30  # zones whose names fit


def plot_flows(table: FlowTable, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
    """Draw origins as rows and destinations as columns; a dot marks pairs whose interval contains 0."""
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(6.2, 5.2)
        plot_flows(table, picture.subplots(), certificate)
        return picture
    axes: Any = ax
    trips, zones = table.matrix(), table.zones
    drawn = axes.imshow(trips, cmap="YlGnBu", vmin=0, vmax=max(float(trips.max()), 1))
    low: Any = np.array(table["trips"].low, dtype=np.float64).reshape(trips.shape)
    if len(zones) <= _FEW:
        row, column = np.nonzero(low <= 0)
        axes.scatter(column, row, s=6, color="0.5")
        axes.set_xticks(range(len(zones)), zones, rotation=60, ha="right", fontsize=8)
        axes.set_yticks(range(len(zones)), zones, fontsize=8)
    axes.set_xlabel("destination")
    axes.set_ylabel("origin")
    axes.figure.colorbar(drawn, ax=axes, label="trips (noisy)", shrink=0.85)
    who: Any = certificate.fields.get("dataset")
    name = who.get("name", "") if isinstance(who, dict) else ""
    dots = "; a dot: the interval contains 0" if len(zones) <= _FEW else ""
    half = trips[0, 0] - low[0, 0]
    error = f"each pair +/- {half:,.3g} at {table.confidence * 100:g} %"
    axes.set_title(f"trips{' of ' + name if name else ''}\n{error}{dots}", fontsize=9, loc="left")
    return ax
