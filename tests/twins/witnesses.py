"""The broken twins of the ledger's witness."""

from __future__ import annotations

from tacit.ledger.checks._witness import Witness


class CountsOnly(Witness):
    """Compares how many entries there are, and not whether the store contains the head in the file."""

    def unproven(self):
        return None

    def note(self, head, contains):
        super().note(head, lambda _: True)
