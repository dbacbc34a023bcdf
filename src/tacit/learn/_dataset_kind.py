"""Examples as a kind of dataset: Python alone declares them, because they hold arrays."""

from __future__ import annotations

from tacit.core import DatasetKind
from tacit.learn._questions import QUESTIONS

EXAMPLES = DatasetKind(name="examples", label="examples to learn from", questions=QUESTIONS)
