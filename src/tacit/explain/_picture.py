"""The picture class of `explain`: a matplotlib figure (extra ``plot``) in the house style."""

from __future__ import annotations

from io import BytesIO

try:
    from matplotlib.figure import Figure
except ImportError as missing:  # pragma: no cover - the test environment has matplotlib
    from tacit.errors import TacitError
    from tacit.fixes import Do

    raise TacitError(
        "missing-extra",
        "pictures need matplotlib, which is not installed",
        why="the base installation does not include it, to stay small",
        fix=Do("install", package="tacit[plot]"),
    ) from missing

__all__ = ["Picture"]


class Picture(Figure):
    """A matplotlib figure that a notebook shows by itself; it needs no window system.

    It is opaque with strong lines, so it stays legible on light and dark pages.
    """

    def __init__(self, width: float = 7.0, height: float = 4.2) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white", dpi=110)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()
