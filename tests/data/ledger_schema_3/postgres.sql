-- The PostgreSQL schema of version 3, as the last build of that schema made it.

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

CREATE FUNCTION ledger_append_3(batch text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  part text[] := string_to_array(batch, E'\x1d');  -- old end, keys, entries, accounts, releases, blocks, runs
  last record;
BEGIN
  PERFORM pg_advisory_xact_lock(1413563209, 'ledger_entries'::regclass::oid::int); SELECT e.seq || ' ' ||
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
