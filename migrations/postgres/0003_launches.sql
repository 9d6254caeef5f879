-- What all servers do together: tickets and login codes, launches, and files that their own server must remove.
-- Nothing here disturbs a program that knows only the tables before.

-- Tickets and login codes, which any server accepts. Only their digests: nobody who can read this table can use one.
-- Unlogged: they are valid for minutes, and clients request new ones after a crash of the database.
CREATE UNLOGGED TABLE credentials (
    kind text NOT NULL CHECK (kind IN ('ticket', 'login_code', 'opened_stream')),
    digest bytea NOT NULL,
    -- The only path that it opens, and the origin of the page that requested it.
    path bytea,
    origin bytea,
    -- By the clock of the database, in milliseconds.
    expires_at bigint NOT NULL,
    PRIMARY KEY (kind, digest)
);

CREATE INDEX credentials_expires_at ON credentials (kind, expires_at);

-- Agents that were purged while their home was lost. The home removes their files when it is back.
CREATE TABLE leftovers (
    node bigint NOT NULL,
    agent uuid NOT NULL,
    PRIMARY KEY (node, agent)
);

-- The agent types that a server runs. A program that does not know this column offers none.
ALTER TABLE nodes ADD types bytea[] NOT NULL DEFAULT '{}';

-- Agents that wait for a server to take them: their home is 0, which is the number of no node. So a program that does not
-- know this leaves them alone.
CREATE INDEX agents_unclaimed ON agents (id) WHERE home = 0;

-- How many launches all servers together may do now: a bucket that fills by the clock of the database. Unlogged: after a
-- crash of the database, it is full.
CREATE UNLOGGED TABLE launch_rate (
    one int PRIMARY KEY CHECK (one = 1),
    tokens double precision NOT NULL,
    -- Whether the newest launch got one.
    taken boolean NOT NULL,
    -- In milliseconds.
    filled_at bigint NOT NULL
);
