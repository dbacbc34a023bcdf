"""The ledger's database schema in both dialects of SQL, and the queries that the SQL stores share.

The rule of the number. A program must refuse a ledger that it could misread. So `VERSION` grows by one with

- each new kind of entry (`KINDS` names the schema that introduced it), and with each new field of an old kind
  that changes what may be charged, drawn or handed out (schema 4: the rule of an account that adds up
  promises, and the promise of a charge);
- each change of a table.

A field that an older program may ignore without harm, such as a digest that only `verify` compares, needs no
new number. A ledger is brought up to date when it is opened. After that, older programs refuse it, and those
that are still running cannot write to it any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.ledger.checks._chain import START
from tacit.ledger.stores._store import AccountRow, BlockRow, EntryRow, ReleaseRow, RunRow, Tip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


#: Version of the schema; a store of a later version is refused, one of an earlier version is upgraded.
VERSION = 4

#: Each kind of entry, and the first schema whose programs understand it.
KINDS = {
    "open": 1, "charge": 1, "draw": 1, "view": 1, "claim": 1, "release": 1, "grow": 1, "refresh": 1,
    "version": 1, "unseal": 1,
    "run": 2,
    "record": 3, "gap": 3, "lost": 3, "freeze": 3, "unfreeze": 3, "expiry": 3,
}  # fmt: skip

#: How a SQLite file says that it is a ledger: "TACI" in its header.
SQLITE_APPLICATION = 0x54414349

_SQLITE_SECOND = """
CREATE TABLE ledger_releases (
  receipt INTEGER NOT NULL, part INTEGER NOT NULL, root INTEGER NOT NULL, version INTEGER NOT NULL,
  plan TEXT NOT NULL, payload BLOB NOT NULL, artifact TEXT NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY (receipt, part)
) STRICT;
CREATE UNIQUE INDEX releases_plan ON ledger_releases (root, version, plan) WHERE plan <> '' AND part = 0;
CREATE TABLE ledger_blocks (
  account INTEGER NOT NULL, block TEXT NOT NULL, state TEXT NOT NULL, seq INTEGER NOT NULL,
  seal TEXT NOT NULL, PRIMARY KEY (account, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_runs (receipt INTEGER PRIMARY KEY, secret BLOB NOT NULL) STRICT;
"""

SQLITE_SCHEMA = f"""
CREATE TABLE ledger_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_entries (
  seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, account INTEGER NOT NULL, levels TEXT NOT NULL,
  spend TEXT NOT NULL, plan TEXT NOT NULL, idem TEXT NOT NULL, body TEXT NOT NULL, mac BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX entries_idem ON ledger_entries (idem) WHERE idem <> '';
CREATE INDEX entries_plan ON ledger_entries (plan) WHERE plan <> '';
CREATE TABLE ledger_accounts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent INTEGER NOT NULL, facts TEXT NOT NULL,
  state TEXT NOT NULL, seq INTEGER NOT NULL DEFAULT 0, seal TEXT NOT NULL DEFAULT '',
  schema INTEGER NOT NULL DEFAULT {VERSION}
) STRICT;
{_SQLITE_SECOND.strip()}
CREATE TRIGGER entries_keep BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
PRAGMA application_id = {SQLITE_APPLICATION};
PRAGMA user_version = {VERSION};
"""

_SQLITE_FROM_1 = f"""
ALTER TABLE ledger_accounts ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger_accounts ADD COLUMN seal TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger_releases RENAME TO ledger_releases_1;
DROP INDEX releases_plan;
{_SQLITE_SECOND.strip()}
INSERT INTO ledger_releases SELECT receipt, 0, root, version, plan, payload, '', seq FROM ledger_releases_1;
DROP TABLE ledger_releases_1;
"""  # noqa: S608 - constants only

# a program of schema 2 that still has the file open writes rows of accounts without this column, and fails
_SQLITE_FROM_2 = f"""
ALTER TABLE ledger_accounts ADD COLUMN schema INTEGER NOT NULL DEFAULT 2;
PRAGMA user_version = {VERSION};
"""
# a program of schema 3 reads this number before each change, and refuses a later one
_SQLITE_FROM_3 = f"PRAGMA user_version = {VERSION};"

#: From each earlier version to this one; after version 1, the accounts' seals follow in the same transaction.
SQLITE_UPGRADE = {1: _SQLITE_FROM_1 + _SQLITE_FROM_2.lstrip(), 2: _SQLITE_FROM_2, 3: _SQLITE_FROM_3}

#: The first half of the advisory lock's name, "TACI"; the second half is the table's own number.
POSTGRES_LOCK = 0x54414349

_POSTGRES_SECOND = r"""
CREATE TABLE ledger_releases (
  receipt bigint NOT NULL, part bigint NOT NULL, root bigint NOT NULL, version bigint NOT NULL,
  plan text NOT NULL, payload bytea NOT NULL, artifact text NOT NULL, seq bigint NOT NULL,
  PRIMARY KEY (receipt, part)
);
CREATE UNIQUE INDEX ledger_releases_plan ON ledger_releases (root, version, plan)
  WHERE plan <> '' AND part = 0;
CREATE TABLE ledger_blocks (
  account bigint NOT NULL, block text NOT NULL, state text NOT NULL, seq bigint NOT NULL,
  seal text NOT NULL, PRIMARY KEY (account, block)
);
CREATE TABLE ledger_runs (receipt bigint PRIMARY KEY, secret bytea NOT NULL);
CREATE TABLE ledger_artifacts (sha256 text PRIMARY KEY, payload bytea NOT NULL);
"""

# The number in its name changes with the schema, so that an older client that still runs finds no function.
_POSTGRES_APPEND = r"""
CREATE FUNCTION ledger_append_4(batch text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  part text[] := string_to_array(batch, E'\x1d');  -- old end, keys, entries, accounts, releases, blocks, runs
  last record;
BEGIN
  PERFORM pg_advisory_xact_lock(LOCK, 'ledger_entries'::regclass::oid::int); SELECT e.seq || ' ' ||
  encode(e.mac, 'hex') AS tip, EXISTS (SELECT FROM ledger_meta WHERE name = 'sealed') AS sealed
    INTO last FROM (SELECT 1) one LEFT JOIN
    (SELECT seq, mac FROM ledger_entries ORDER BY seq DESC LIMIT 1) e ON true;
  IF last.sealed THEN
    RETURN 'sealed';
  ELSIF coalesce(last.tip, 'empty') <> part[1] THEN
    RETURN 'moved';
  ELSIF part[2] <> '' AND EXISTS (SELECT FROM string_to_table(part[2], E'\x1e') k
                                  JOIN ledger_entries e ON e.idem = k AND e.idem <> '') THEN
    RETURN 'moved';
  END IF;
  INSERT INTO ledger_entries
    SELECT f[1]::bigint, f[2], f[3]::bigint, f[4], f[5], f[6], f[7], f[8], decode(f[9], 'hex')
    FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[3], E'\x1e') r) rows;
  INSERT INTO ledger_accounts
    SELECT f[1]::bigint, f[2], f[3]::bigint, f[4], f[5], f[6]::bigint, f[7]
    FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[4], E'\x1e') r) rows
    ON CONFLICT (id) DO UPDATE
    SET facts = excluded.facts, state = excluded.state, seq = excluded.seq, seal = excluded.seal;
  IF part[5] <> '' THEN
    INSERT INTO ledger_releases
      SELECT f[1]::bigint, f[2]::bigint, f[3]::bigint, f[4]::bigint, f[5], decode(f[6], 'hex'), f[7],
        f[8]::bigint
      FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[5], E'\x1e') r) rows;
  END IF;
  IF part[6] <> '' THEN
    INSERT INTO ledger_blocks
      SELECT f[1]::bigint, f[2], f[3], f[4]::bigint, f[5]
      FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[6], E'\x1e') r) rows
      ON CONFLICT (account, block) DO UPDATE
      SET state = excluded.state, seq = excluded.seq, seal = excluded.seal;
  END IF;
  IF part[7] <> '' THEN
    INSERT INTO ledger_runs
      SELECT f[1]::bigint, decode(f[2], 'hex')
      FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[7], E'\x1e') r) rows
      ON CONFLICT (receipt) DO UPDATE SET secret = excluded.secret;
  END IF;
  RETURN 'done';
END $$;
""".replace("LOCK", str(POSTGRES_LOCK))

# `ledger_append_4` compares and appends: it writes nothing unless the log ends where the client says.
POSTGRES_SCHEMA = (
    r"""
CREATE TABLE ledger_meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE ledger_entries (
  seq bigint PRIMARY KEY, kind text NOT NULL, account bigint NOT NULL, levels text NOT NULL,
  spend text NOT NULL, plan text NOT NULL, idem text NOT NULL, body text NOT NULL, mac bytea NOT NULL
);
CREATE UNIQUE INDEX ledger_entries_idem ON ledger_entries (idem) WHERE idem <> '';
CREATE INDEX ledger_entries_plan ON ledger_entries (plan) WHERE plan <> '';
CREATE TABLE ledger_accounts (
  id bigint PRIMARY KEY, name text NOT NULL UNIQUE, parent bigint NOT NULL, facts text NOT NULL,
  state text NOT NULL, seq bigint NOT NULL DEFAULT 0, seal text NOT NULL DEFAULT ''
);
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql
  AS $$ BEGIN RAISE EXCEPTION 'append only'; END $$;
CREATE TRIGGER ledger_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
"""
    + _POSTGRES_SECOND
    + _POSTGRES_APPEND
)

_POSTGRES_FIRST_AWAY = r"""
ALTER TABLE ledger_accounts ADD COLUMN seq bigint NOT NULL DEFAULT 0;
ALTER TABLE ledger_accounts ADD COLUMN seal text NOT NULL DEFAULT '';
ALTER TABLE ledger_releases RENAME TO ledger_releases_1;
ALTER INDEX ledger_releases_pkey RENAME TO ledger_releases_1_pkey;
DROP INDEX ledger_releases_plan;
DROP FUNCTION ledger_append(text);
"""
_POSTGRES_FIRST_COPIED = r"""
INSERT INTO ledger_releases SELECT receipt, 0, root, version, plan, payload, '', seq FROM ledger_releases_1;
DROP TABLE ledger_releases_1;
"""
_POSTGRES_NUMBER = f"UPDATE ledger_meta SET value = '{VERSION}' WHERE name = 'version';"  # noqa: S608

#: From each earlier version to this one, like `SQLITE_UPGRADE`.
POSTGRES_UPGRADE = {
    1: _POSTGRES_FIRST_AWAY + _POSTGRES_SECOND + _POSTGRES_FIRST_COPIED + _POSTGRES_APPEND + _POSTGRES_NUMBER,
    2: "DROP FUNCTION ledger_append_2(text);" + _POSTGRES_APPEND + _POSTGRES_NUMBER,
    3: "DROP FUNCTION ledger_append_3(text);" + _POSTGRES_APPEND + _POSTGRES_NUMBER,
}


_ENTRY = "SELECT seq, kind, account, levels, spend, plan, idem, body, mac FROM ledger_entries"
_ACCOUNT = "SELECT id, name, parent, facts, state, seq, seal FROM ledger_accounts"
_RELEASE = "SELECT receipt, part, root, version, plan, payload, artifact, seq FROM ledger_releases"
_BLOCK = "SELECT account, block, state, seq, seal FROM ledger_blocks"


class SqlReader:
    """Read from a store with SQL; ``query`` runs one statement and returns an iterator over its rows."""

    def __init__(self, query: Callable[[str, tuple[object, ...]], Iterator[tuple[object, ...]]]) -> None:
        self._query = query

    def tip(self) -> Tip:
        """Return the log's end."""
        return self.end()[0]

    def end(self) -> tuple[Tip, str]:
        """Return the log's end and the body of the last entry."""
        row = next(
            self._query("SELECT seq, mac, body FROM ledger_entries ORDER BY seq DESC LIMIT 1", ()), None
        )
        return (Tip(0, START), "") if row is None else (Tip(row[0], row[1]), str(row[2]))  # type: ignore[arg-type]

    def account_named(self, name: str) -> AccountRow | None:
        """Find an account by its name."""
        return next(self._accounts("WHERE name = ?", name), None)

    def account(self, id_: int) -> AccountRow | None:
        """Find an account by its number."""
        return next(self._accounts("WHERE id = ?", id_), None)

    def accounts(self) -> list[AccountRow]:
        """Return all accounts in the order in which they were opened."""
        return list(self._accounts("ORDER BY id"))

    def names_after(self, id_: int) -> list[tuple[int, str]]:
        """Return number and name of every account that was opened after this one, in order."""
        rows = self._query("SELECT id, name FROM ledger_accounts WHERE id > ? ORDER BY id", (id_,))
        return [(int(str(number)), str(name)) for number, name in rows]

    def openings(self, after: int, end: int) -> list[EntryRow]:
        """Return the entries after one number, up to another, that opened an account."""
        return list(self._entries("WHERE seq > ? AND seq <= ? AND kind = 'open' ORDER BY seq", after, end))

    def _accounts(self, rest: str, *values: object) -> Iterator[AccountRow]:
        return (AccountRow(*row) for row in self._query(f"{_ACCOUNT} {rest}", values))  # type: ignore[arg-type]

    def entry(self, number: int) -> EntryRow | None:
        """Find an entry by its number."""
        return next(self._entries("WHERE seq = ?", number), None)

    def entry_with_key(self, key: str) -> EntryRow | None:
        """Find the entry that carries a key."""
        return next(self._entries("WHERE idem = ? AND idem <> ''", key), None)

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan."""
        return list(self._entries("WHERE plan = ? AND plan <> '' ORDER BY seq", plan))

    def entries_between(self, after: int, end: int, account: int, max_rows: int) -> list[EntryRow]:
        """Return at most ``max_rows`` entries after a number up to another, of one account if it is not 0."""
        where = "WHERE seq > ? AND seq <= ?"
        values: list[object] = [after, end]
        if account:
            where += " AND (account = ? OR ',' || levels || ',' LIKE ?)"
            values += [account, f"%,{account},%"]
        return list(self._entries(f"{where} ORDER BY seq LIMIT ?", *values, max_rows))

    def entries(self) -> Iterator[EntryRow]:
        """Return the whole log in order."""
        return self._entries("ORDER BY seq")

    def _entries(self, rest: str, *values: object) -> Iterator[EntryRow]:
        return (EntryRow(*row) for row in self._query(f"{_ENTRY} {rest}", values))  # type: ignore[arg-type]

    def release_of_plan(self, root: int, version: int, plan: str) -> ReleaseRow | None:
        """Find the stored release of a plan."""
        where = "WHERE root = ? AND version = ? AND plan = ? AND plan <> '' AND part = 0"
        return next(self._releases(where, root, version, plan), None)

    def release_of_receipt(self, receipt: int, part: int = 0) -> ReleaseRow | None:
        """Find the stored release of a receipt, or one instalment of a run."""
        return next(self._releases("WHERE receipt = ? AND part = ?", receipt, part), None)

    def releases(self) -> Iterator[ReleaseRow]:
        """Return all stored releases."""
        return self._releases("ORDER BY receipt, part")

    def _releases(self, rest: str, *values: object) -> Iterator[ReleaseRow]:
        return (ReleaseRow(*row) for row in self._query(f"{_RELEASE} {rest}", values))  # type: ignore[arg-type]

    def block(self, account: int, name: str) -> BlockRow | None:
        """Find a block of an account's partition."""
        return next(self._blocks("WHERE account = ? AND block = ?", account, name), None)

    def blocks(self, account: int) -> Iterator[BlockRow]:
        """Return the blocks of an account's partition that were charged; 0 stands for all accounts."""
        if not account:
            return self._blocks("ORDER BY account, block")
        return self._blocks("WHERE account = ? ORDER BY block", account)

    def _blocks(self, rest: str, *values: object) -> Iterator[BlockRow]:
        return (BlockRow(*row) for row in self._query(f"{_BLOCK} {rest}", values))  # type: ignore[arg-type]

    def bodies_with(self, account: int, text: str, after: int, end: int) -> Iterator[str]:
        """Return the bodies of some entries that charged an account and contain a text."""
        sql = (
            "SELECT body FROM ledger_entries WHERE seq > ? AND seq <= ? AND ',' || levels || ',' LIKE ? "
            "AND body LIKE ? ESCAPE '!'"
        )
        for special in "!%_":
            text = text.replace(special, "!" + special)
        rows = self._query(sql, (after, end, f"%,{account},%", f"%{text}%"))
        return (str(body) for (body,) in rows)

    def runs_with_secrets(self) -> list[int]:
        """Return the numbers of the runs whose secret is stored."""
        rows = self._query("SELECT receipt FROM ledger_runs ORDER BY receipt", ())
        return [int(str(receipt)) for (receipt,) in rows]

    def run_secret(self, receipt: int) -> RunRow | None:
        """Find the secret of a run."""
        rows = self._query("SELECT receipt, secret FROM ledger_runs WHERE receipt = ?", (receipt,))
        return next((RunRow(*row) for row in rows), None)  # type: ignore[arg-type]

    def changed_since(self, account: int, after: int, end: int) -> bool:
        """Whether an entry after one number, up to another, changed an account."""
        sql = (
            "SELECT 1 FROM ledger_entries WHERE seq > ? AND seq <= ? AND kind NOT IN ('claim', 'release') "
            "AND (account = ? OR ',' || levels || ',' LIKE ?) LIMIT 1"
        )
        return next(self._query(sql, (after, end, account, f"%,{account},%")), None) is not None

    def check(self) -> list[str]:
        """Return what the store itself finds wrong; a store that can check its pages overrides this."""
        return []
