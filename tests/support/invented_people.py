"""Invented people of a service, with roles and tokens, written into its database without passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service._operations import SCOPES
from tacit.service._times import later_text, new_id, new_secret, now_text
from tacit.service.access import digest_of_secret

if TYPE_CHECKING:
    from tacit.service._database import Database


class InventedPeople:
    """What a service for tests offers, in this process or in processes of its own; it has a database."""

    people: dict[str, str]

    @property
    def database(self) -> Database:
        """The service's database."""
        raise NotImplementedError

    def person(self, name: str, **roles: str) -> str:
        """Make a person with roles by dataset (``everywhere`` stands for all); return the id."""
        person = self.people[name] = new_id("u")
        with self.database.change() as change:
            change.run(
                "INSERT INTO users (id, name, shown, created) VALUES (?, ?, ?, ?)",
                person, name, name.title(), now_text(),
            )  # fmt: skip
            for dataset, named in roles.items():
                for role in named.split():
                    change.run(
                        "INSERT INTO grants (person, dataset, role, granted_by, granted)"
                        " VALUES (?, ?, ?, ?, ?)",
                        person, "" if dataset == "everywhere" else dataset, role, person, now_text(),
                    )  # fmt: skip
        return person

    def token(self, name: str, scopes: str = " ".join(SCOPES), dataset: str = "") -> str:
        """Make a token of a person."""
        secret = new_secret("tct_")
        with self.database.change() as change:
            change.run(
                "INSERT INTO tokens (id, person, label, digest, scopes, dataset, created, expires)"
                " VALUES (?, ?, 'test', ?, ?, ?, ?, ?)",
                new_id("t"), self.people[name], digest_of_secret(secret), scopes, dataset, now_text(),
                later_text(hours=1),
            )  # fmt: skip
        return secret
