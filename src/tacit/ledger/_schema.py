"""The ledger's database schema: its tables in SQLite's and in PostgreSQL's dialect."""

from __future__ import annotations

__all__ = ["POSTGRES_LOCK", "POSTGRES_SCHEMA", "SQLITE_APPLICATION", "SQLITE_SCHEMA", "VERSION"]

#: Version of the schema; a store of a later version is refused.
VERSION = 1

#: How a SQLite file says that it is a ledger: "TACI" in its header.
SQLITE_APPLICATION = 0x54414349

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
  state TEXT NOT NULL
) STRICT;
CREATE TABLE ledger_releases (
  receipt INTEGER PRIMARY KEY, root INTEGER NOT NULL, version INTEGER NOT NULL, plan TEXT NOT NULL,
  payload BLOB NOT NULL, seq INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX releases_plan ON ledger_releases (root, version, plan) WHERE plan <> '';
CREATE TRIGGER entries_keep BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
PRAGMA application_id = {SQLITE_APPLICATION};
PRAGMA user_version = {VERSION};
"""

#: The first half of the advisory lock's name, "TACI"; the second half is the table's own number.
POSTGRES_LOCK = 0x54414349

# `ledger_append` compares and appends: it writes nothing unless the log ends where the client says.
POSTGRES_SCHEMA = r"""
CREATE TABLE ledger_meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE ledger_entries (
  seq bigint PRIMARY KEY, kind text NOT NULL, account bigint NOT NULL, levels text NOT NULL,
  spend text NOT NULL, plan text NOT NULL, idem text NOT NULL, body text NOT NULL, mac bytea NOT NULL
);
CREATE UNIQUE INDEX ledger_entries_idem ON ledger_entries (idem) WHERE idem <> '';
CREATE INDEX ledger_entries_plan ON ledger_entries (plan) WHERE plan <> '';
CREATE TABLE ledger_accounts (
  id bigint PRIMARY KEY, name text NOT NULL UNIQUE, parent bigint NOT NULL, facts text NOT NULL,
  state text NOT NULL
);
CREATE TABLE ledger_releases (
  receipt bigint PRIMARY KEY, root bigint NOT NULL, version bigint NOT NULL, plan text NOT NULL,
  payload bytea NOT NULL, seq bigint NOT NULL
);
CREATE UNIQUE INDEX ledger_releases_plan ON ledger_releases (root, version, plan) WHERE plan <> '';
CREATE FUNCTION ledger_append(batch text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  part text[] := string_to_array(batch, E'\x1d');  -- old end, keys, entries, accounts, releases
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
    SELECT f[1]::bigint, f[2], f[3]::bigint, f[4], f[5]
    FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[4], E'\x1e') r) rows
    ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, state = excluded.state;
  IF part[5] <> '' THEN
    INSERT INTO ledger_releases
      SELECT f[1]::bigint, f[2]::bigint, f[3]::bigint, f[4], decode(f[5], 'hex'), f[6]::bigint
      FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[5], E'\x1e') r) rows;
  END IF;
  RETURN 'done';
END $$;
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql
  AS $$ BEGIN RAISE EXCEPTION 'append only'; END $$;
CREATE TRIGGER ledger_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
""".replace("LOCK", str(POSTGRES_LOCK))
