"""The tables of the service's database, as numbered migrations; a published one never changes.

Times are ISO texts in UTC, documents are JSON texts, ticks and counts are whole numbers.
``dataset = ''`` in a grant stands for all datasets.
"""

from __future__ import annotations

from typing import Final

_FIRST = """
CREATE TABLE users (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, shown TEXT NOT NULL, password TEXT NOT NULL DEFAULT '',
    subject TEXT UNIQUE, created TEXT NOT NULL, disabled INTEGER NOT NULL DEFAULT 0,
    erased INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE grants (
    person TEXT NOT NULL REFERENCES users (id), dataset TEXT NOT NULL, role TEXT NOT NULL,
    granted_by TEXT NOT NULL, granted TEXT NOT NULL, PRIMARY KEY (person, dataset, role)
);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), label TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL, dataset TEXT NOT NULL DEFAULT '', created TEXT NOT NULL, expires TEXT NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0, parent TEXT NOT NULL DEFAULT ''
);
CREATE INDEX tokens_person ON tokens (person);
CREATE INDEX tokens_parent ON tokens (parent);
CREATE TABLE sessions (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), csrf TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT NOT NULL
);
CREATE TABLE links (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), expires TEXT NOT NULL,
    used INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_person ON sessions (person);
CREATE INDEX links_person ON links (person);
CREATE TABLE devices (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), created TEXT NOT NULL
);
CREATE INDEX devices_person ON devices (person);
CREATE TABLE attempts (
    subject TEXT PRIMARY KEY, failures INTEGER NOT NULL, free_at DOUBLE PRECISION NOT NULL,
    seen DOUBLE PRECISION NOT NULL
);
CREATE INDEX attempts_seen ON attempts (seen);
CREATE TABLE sign_ons (
    digest TEXT PRIMARY KEY, nonce TEXT NOT NULL, verifier TEXT NOT NULL, next TEXT NOT NULL,
    expires TEXT NOT NULL
);
CREATE TABLE datasets (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, policy INTEGER NOT NULL, created_by TEXT NOT NULL,
    created TEXT NOT NULL, paused TEXT NOT NULL DEFAULT ''
);
CREATE TABLE policies (
    dataset TEXT NOT NULL REFERENCES datasets (name), number INTEGER NOT NULL, document TEXT NOT NULL,
    facts TEXT NOT NULL, created_by TEXT NOT NULL, created TEXT NOT NULL, PRIMARY KEY (dataset, number)
);
CREATE TABLE accounts (
    name TEXT PRIMARY KEY, dataset TEXT NOT NULL, person TEXT NOT NULL, purpose TEXT NOT NULL,
    request TEXT NOT NULL DEFAULT '', plan TEXT NOT NULL DEFAULT '', created TEXT NOT NULL
);
CREATE TABLE requests (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, asked_by TEXT NOT NULL,
    document TEXT NOT NULL,
    state TEXT NOT NULL, decided_by TEXT NOT NULL DEFAULT '', decided TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '', created TEXT NOT NULL
);
CREATE TABLE queries (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, policy INTEGER NOT NULL, person TEXT NOT NULL,
    account TEXT NOT NULL,
    ask TEXT NOT NULL, plan TEXT NOT NULL, purpose TEXT NOT NULL, retry_key TEXT NOT NULL,
    state TEXT NOT NULL,
    created TEXT NOT NULL, admitted BIGINT, answer_at DOUBLE PRECISION, code TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '', release TEXT NOT NULL DEFAULT '', position INTEGER NOT NULL,
    asked TEXT NOT NULL DEFAULT '',
    UNIQUE (person, dataset, retry_key)
);
CREATE INDEX queries_waiting ON queries (state, dataset, position);
CREATE INDEX queries_person ON queries (person, position);
CREATE INDEX queries_position ON queries (position);
CREATE INDEX queries_plan ON queries (plan, dataset);
CREATE INDEX queries_asked ON queries (asked, dataset, policy);
CREATE TABLE releases (
    id TEXT PRIMARY KEY, query TEXT NOT NULL, dataset TEXT NOT NULL, person TEXT NOT NULL,
    account TEXT NOT NULL,
    plan TEXT NOT NULL, document TEXT NOT NULL, created TEXT NOT NULL, shown_from DOUBLE PRECISION NOT NULL,
    position INTEGER NOT NULL
);
CREATE INDEX releases_dataset ON releases (dataset, position);
CREATE INDEX releases_person ON releases (person, position);
CREATE INDEX releases_position ON releases (position);
CREATE INDEX releases_paid ON releases (plan, account);
CREATE TABLE publications (
    id TEXT PRIMARY KEY, release TEXT NOT NULL REFERENCES releases (id), title TEXT NOT NULL,
    about TEXT NOT NULL,
    published_by TEXT NOT NULL, created TEXT NOT NULL, withdrawn TEXT NOT NULL DEFAULT ''
);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, document TEXT NOT NULL, state TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT '', created TEXT NOT NULL
);
CREATE INDEX jobs_waiting ON jobs (state);
CREATE TABLE events (
    position INTEGER PRIMARY KEY, at TEXT NOT NULL, person TEXT NOT NULL, what TEXT NOT NULL,
    about TEXT NOT NULL,
    request TEXT NOT NULL
);
CREATE TABLE facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL)
"""

_REGISTRATIONS = """
CREATE TABLE registrations (
    release TEXT PRIMARY KEY REFERENCES releases (id), dataset TEXT NOT NULL, person TEXT NOT NULL,
    kind TEXT NOT NULL, digest TEXT NOT NULL, charge TEXT NOT NULL, note TEXT NOT NULL,
    created TEXT NOT NULL,
    UNIQUE (dataset, digest)
)
"""

_DAYS = """
CREATE TABLE days (
    dataset TEXT NOT NULL, version INTEGER NOT NULL, through TEXT NOT NULL,
    shown_from DOUBLE PRECISION NOT NULL, person TEXT NOT NULL, created TEXT NOT NULL,
    files TEXT NOT NULL DEFAULT '{}', PRIMARY KEY (dataset, version, through)
)
"""

_WORK = "ALTER TABLE queries ADD COLUMN work INTEGER NOT NULL DEFAULT 0"

_MADE_LINKS = """
CREATE TABLE made_links (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), made_by TEXT NOT NULL,
    made TEXT NOT NULL, used TEXT NOT NULL DEFAULT ''
);
CREATE INDEX made_links_person ON made_links (person)
"""

#: Each is applied once, in its own transaction.
MIGRATIONS: Final = (_FIRST, _REGISTRATIONS, _DAYS, _WORK, _MADE_LINKS)
