"""Fitted numbers, the content of an estimator's release: what was learned, and the public settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import JSON, Content
from tacit.learn._arrays import from_document, to_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from tacit.core import Certificate
    from tacit.picture import Picture

_SHOWN = 8  # lines of a table that the text shows


@dataclass(frozen=True, eq=False, repr=False)
class FittedNumbers(Content):
    """What an estimator learned: arrays by name, computed from noisy numbers and public facts alone.

    Parameters
    ----------
    estimator
        The kind of estimator, such as ``"logistic regression"``.
    numbers
        The arrays, such as ``coef`` and ``intercept``; ``low`` and ``high`` where there are intervals.
    settings
        The public settings of the fit.

    Examples
    --------
    >>> fitted = FittedNumbers("ridge", {"coef": np.array([0.5])}, {"penalty": "1"})
    >>> FittedNumbers.from_json(fitted.to_json()).numbers["coef"].tolist()
    [0.5]
    """

    kind: ClassVar[str] = "fitted-numbers"
    estimator: str
    numbers: Mapping[str, NDArray[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, JSON]:
        """Return the arrays, with their types, and the settings."""
        return {
            "estimator": self.estimator,
            "numbers": {name: to_document(array) for name, array in self.numbers.items()},
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the content back."""
        numbers = {str(name): from_document(one) for name, one in document["numbers"].items()}
        return cls(str(document["estimator"]), numbers, dict(document["settings"]))

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the arrays in a few lines each."""
        lines = [self.estimator]
        for name, array in self.numbers.items():
            shape = " x ".join(f"{n:,}" for n in array.shape)
            few = np.array2string(array, precision=4, threshold=_SHOWN, edgeitems=3, max_line_width=90)
            lines.append(
                f"  {name} ({shape}): " + few.replace("\n", "\n    ") if shape else f"  {name}: {few}"
            )
        return "\n".join([*lines, *marks])

    def __repr__(self) -> str:
        return self.text()

    def plot(self, what: str | None, ax: Axes | None, certificate: Certificate) -> Axes | Picture:
        """Draw the coefficients, with their intervals where there are any."""
        from tacit.learn._fitted_picture import draw_numbers

        return draw_numbers(self, what, ax, certificate)
