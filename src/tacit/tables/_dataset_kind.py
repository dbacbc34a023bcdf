"""Tables as a kind of dataset, for services and commands; `protect` and `open_facts` declare them."""

from __future__ import annotations

from tacit.core import DatasetKind
from tacit.tables._questions import QUESTIONS

TABLES = DatasetKind(name="table", label="tables", questions=QUESTIONS)
