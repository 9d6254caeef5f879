-- The tables of Tokenrail. A migration is never changed once it has been released: add the next one.
-- Times are milliseconds since the epoch (UTC), but for agent_messages.created_at, which people read.

-- One conversation with one agent program. What changes with every append stands in `heads`: this row holds
-- prompts and notes of any length, and rewriting it for every token would write them again.
CREATE TABLE agents (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    name TEXT,
    -- The client's own id of the conversation.
    chat TEXT,
    status TEXT NOT NULL
        CHECK (status IN ('initializing', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
    prompt TEXT NOT NULL,
    model TEXT,
    cwd TEXT NOT NULL,
    session_id TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    deleted_at INTEGER,
    -- Its history is to be removed as soon as it has stopped.
    to_purge INTEGER NOT NULL DEFAULT 0 CHECK (to_purge IN (0, 1)),
    error_class TEXT,
    error_code TEXT,
    error_text TEXT,
    error_retry_after_ms INTEGER,
    error_recoverable INTEGER,
    usage TEXT,
    cost_usd REAL,
    metadata TEXT,
    options TEXT,
    cancel_on_disconnect INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX agents_chat ON agents (chat) WHERE chat IS NOT NULL AND deleted_at IS NULL;

-- Where each agent's journal stands.
CREATE TABLE heads (
    agent INTEGER PRIMARY KEY REFERENCES agents (key) ON DELETE CASCADE,
    -- The number of its newest event; 0 before the first.
    head INTEGER NOT NULL,
    -- The number of the oldest delta of any message that is open.
    open_from INTEGER,
    -- The newest turn that has started, and whether it runs.
    turn INTEGER NOT NULL,
    running INTEGER NOT NULL CHECK (running IN (0, 1)),
    -- How many bytes of that turn's output are in the journal.
    spool_offset INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- One user prompt and all that follows.
CREATE TABLE turns (
    key INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    -- The turn that started the process in which this one runs.
    run INTEGER NOT NULL,
    prompt TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'ended')),
    outcome TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled', 'interrupted')),
    -- Why it was asked to stop: written before its agent is, so that the next server finishes what this one began.
    stop TEXT
        CHECK (stop IN ('cancelled', 'turn_timeout', 'idle_timeout', 'stream_timeout', 'after_result',
            'spool_bytes', 'message_bytes')),
    asked_at INTEGER NOT NULL,
    first_sequence INTEGER,
    last_sequence INTEGER,
    -- While the turn runs, heads.spool_offset counts.
    spool_offset INTEGER NOT NULL,
    compacted INTEGER NOT NULL DEFAULT 0 CHECK (compacted IN (0, 1)),
    UNIQUE (agent, number),
    CHECK ((state = 'ended') = (outcome IS NOT NULL))
) STRICT;

CREATE INDEX turns_open ON turns (agent) WHERE state <> 'ended';
CREATE INDEX turns_to_compact ON turns (agent) WHERE state = 'ended' AND compacted = 0;

-- Every event, in batches of consecutive numbers.
CREATE TABLE journal (
    -- The payloads are in a table that is found by an index, and not in a table WITHOUT ROWID: SQLite compares keys
    -- there with the whole row, so that each insert would read several payloads.
    key INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    -- 1: packed, 2: tight (zstd).
    codec INTEGER NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE (agent, first_seq),
    CHECK (first_seq <= last_seq)
) STRICT;

-- One row for each event that is not a delta: what people and tools read.
CREATE TABLE agent_messages (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    -- Of a complete message: the number of its first delta.
    first_sequence INTEGER,
    type TEXT NOT NULL CHECK (type IN ('assistant', 'user', 'system', 'error', 'tool', 'response')),
    role TEXT,
    content TEXT NOT NULL,
    -- Text; a blob where the agent printed what is not UTF-8.
    raw ANY,
    metadata TEXT NOT NULL,
    -- ISO 8601, UTC, with milliseconds.
    created_at TEXT NOT NULL,
    UNIQUE (agent_id, sequence_number)
) STRICT;

-- Agents whose history was deleted: their ids are never used again.
CREATE TABLE tombstones (
    id TEXT PRIMARY KEY,
    purged_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Clients' keys, and what they were used for.
CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    agent INTEGER NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_used_at ON idempotency (used_at);
CREATE INDEX idempotency_agent ON idempotency (agent);

-- The number of the newest transaction: after a COMMIT that failed, it tells whether all of it was done.
CREATE TABLE commits (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL
) STRICT;

INSERT INTO commits (one, number) VALUES (1, 0);
