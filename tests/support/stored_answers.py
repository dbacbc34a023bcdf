"""Answers of a slow engine, stored so that other engines are compared with them every day.

A file holds the version of the engine, and for each question the digest of all that decides its answer
and the digest of the answer that the engine gave. It holds no verdict: a test computes the answer of another
engine and compares it. A question whose digest is not in the file, because its statement, the data or the
version of the engine changed, is asked anew. The long tests ask all questions anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StoredAnswers", "digest"]

FOLDER = Path(__file__).parents[1] / "data"


def digest(*parts: object) -> str:
    """Return 96 bits of the SHA-256 of values that JSON can write."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


class StoredAnswers:
    """The answers that one engine gave, by the digest of all that decides them."""

    def __init__(self, name: str, engine: str) -> None:
        self._file, self._engine = FOLDER / name, engine
        lines = self._file.read_text(encoding="ascii").splitlines() if self._file.exists() else [""]
        known = lines[1:] if lines[0] == engine else []  # another version of the engine is asked anew
        self.answers: dict[str, str] = dict(line.split() for line in known)  # type: ignore[misc]

    def store(self, answers: Mapping[str, str]) -> None:
        """Write the file anew."""
        lines = [self._engine, *sorted(f"{asked} {answer}" for asked, answer in answers.items())]
        self._file.write_text("\n".join(lines) + "\n", encoding="ascii")
