"""Fitted numbers, the content of an estimator's release: what was learned, and the public settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import JSON, Content, plain_table
from tacit.learn._arrays import from_document, to_document
from tacit.show import GREY, MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, chosen, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tacit.core import AnswerTable

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
    described: ClassVar[str] = "a fitted model"
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

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the numbers of all arrays, and their texts, if some have texts."""
        for caption, column, has_numbers in (("numbers", "value", True), ("texts", "text", False)):
            listed = {
                name: np.asarray(array)
                for name, array in self.numbers.items()
                if (np.asarray(array).dtype.kind in "biuf") == has_numbers
            }
            lines = [
                (name, ", ".join(map(str, place)), value.item() if has_numbers else str(value))
                for name, array in listed.items()
                for place, value in np.ndenumerate(array)
            ]
            if lines:
                names, places, values = zip(*lines, strict=True)
                yield caption, plain_table({"array": names, "place": places}, {column: values})

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return each learned array: a point for each number, with its interval where there is one."""
        return chosen(what, {name: partial(self._figure, name) for name in self.numbers})

    def _figure(self, name: str) -> Figure:
        lines = np.atleast_2d(self.numbers[name])
        lines = lines.reshape(-1, lines.shape[-1])
        first = name == next(iter(self.numbers)) and {"low", "high"} <= set(self.numbers) and len(lines) == 1
        low, high = (numbers(self.numbers[end]) for end in ("low", "high")) if first else ((), ())
        places = range(lines.shape[-1])
        series = tuple(
            ChartSeries("points", places, numbers(line), low, high, colour=i) for i, line in enumerate(lines)
        )
        zero = ChartSeries("across", (), (0.0,), colour=GREY, dashed=True)
        chart = Chart((zero, *series[:MOST_SERIES]), ChartAxis("place in the array"), ChartAxis(name))
        return Figure(f"{self.estimator}, {name}", (chart,))
