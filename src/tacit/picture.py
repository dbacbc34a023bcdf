"""A picture: a matplotlib figure (extra ``plot``) that a notebook shows by itself."""

from __future__ import annotations

from io import BytesIO
from typing import Any

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

    It is opaque with strong lines, so it stays legible on light and dark pages. A picture with one set of
    axes also has the methods of these axes: ``picture.set_ylim(0, 10)``.

    Examples
    --------
    >>> picture = Picture()
    >>> _ = picture.subplots().set_title("one set of axes")
    >>> picture.get_title()
    'one set of axes'
    """

    def __init__(self, width: float = 7.0, height: float = 4.2) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white", dpi=110)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()

    def __getattr__(self, name: str) -> Any:
        drawn = self.__dict__.get("_axstack")
        if name.startswith("_") or drawn is None or len(self.axes) != 1:
            raise AttributeError(f"a picture has no attribute {name!r}")
        return getattr(self.axes[0], name)
