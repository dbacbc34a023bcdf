"""The colours of all figures: each is clearly visible on white and on dark paper."""

from typing import Final

PALETTE: Final = (
    "#12859b", "#d1690a", "#2b9459", "#d8453b", "#7d5fe0", "#7b8287", "#cf4079", "#a3790c",
)  # fmt: skip


def colour(place: int) -> str:
    """Return a colour of the palette; after the last one, the first follows."""
    return PALETTE[place % len(PALETTE)]
