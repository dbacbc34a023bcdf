"""Why the drawer stops a dataset: curators and auditors read the cause, everybody else one sentence.

Which cause it was depends on the data, and on how long and in how much memory an answer was computed.
"""

from __future__ import annotations

from typing import Final

LATE: Final = (
    "An answer was not ready at its time, so this dataset has stopped taking questions. Raise the lag of its "
    "policy, or lower its width, and resume it. Each time this happens, analysts learn that one answer took "
    "longer than the lag."
)
FAILED: Final = (
    "An answer failed while it was computed, or was not ready when it had to be stored, so this dataset has "
    "stopped taking questions. Raise the lag of its policy, or ask the operator for more memory, and resume "
    "it. Each time this happens, analysts learn that one answer failed."
)
ENDED: Final = (
    "The process of this dataset ended while it computed an answer, perhaps for lack of memory, so the "
    "dataset has stopped taking questions. Ask the operator, then resume it."
)
UNOPENED: Final = (
    "The data could not be opened or prepared, so this dataset takes no questions. Ask the operator whether "
    "the source is there and fits into the memory that the service may take, then resume it."
)
_SHOWN = "The service has stopped questions to this dataset. Ask its curator."


def pause_shown(paused: str, *, oversees: bool = False) -> str:
    """Return why a dataset is paused, as a person may read it; what a curator wrote is for everybody.

    Examples
    --------
    >>> pause_shown(LATE) == pause_shown(ENDED), pause_shown("We move."), pause_shown("")
    (True, 'We move.', '')
    """
    return _SHOWN if paused in {LATE, FAILED, ENDED, UNOPENED} and not oversees else paused
