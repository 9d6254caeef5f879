-- The tables of Tokenrail on PostgreSQL. A migration is never changed once it has been released: add the next one.
-- Times are milliseconds since the epoch (UTC). What agents and clients say is `bytea`: `text` takes no NUL, and `jsonb`
-- changes what it was given. The views at the end show it to people.

-- Which database this is, and which programs may use it.
CREATE TABLE cluster (
    one int PRIMARY KEY CHECK (one = 1),
    id uuid NOT NULL,
    -- How many of these migrations have been applied.
    schema int NOT NULL,
    -- A program that knows fewer migrations than this must not use the database.
    compatible_from int NOT NULL
);

-- One conversation with one agent program. What changes with every append is in `heads`: this row has prompts and notes of
-- any length, and each token would write them again.
CREATE TABLE agents (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    type bytea NOT NULL,
    name bytea,
    -- The client's own id of the conversation.
    chat bytea,
    status text NOT NULL
        CHECK (status IN ('initializing', 'running', 'completed', 'failed', 'cancelled', 'interrupted')),
    prompt bytea NOT NULL,
    model bytea,
    cwd bytea NOT NULL,
    session_id bytea,
    created_at bigint NOT NULL,
    ended_at bigint,
    deleted_at bigint,
    -- Its history is to be removed as soon as it has stopped.
    to_purge boolean NOT NULL DEFAULT false,
    error_class text,
    error_code bytea,
    error_text bytea,
    error_retry_after_ms bigint,
    error_recoverable boolean,
    usage bytea,
    cost_usd double precision,
    metadata bytea,
    options bytea,
    cancel_on_disconnect boolean NOT NULL,
    -- Agents whose history is a copy: taken in from a file, or replayed from another agent. Nobody can talk with them.
    copy text CHECK (copy IN ('file', 'replay')),
    -- Of a replay: which agent, up to which of its numbers, and how fast. No foreign key: the other may be purged.
    replay_of uuid,
    replay_until bigint,
    replay_speed double precision,
    -- How users order the list of agents. Both may change at any time, also after the agent has ended.
    pinned boolean NOT NULL,
    archived boolean NOT NULL
);

-- By its hash: an entry of an index is much shorter than a client's id may be.
CREATE UNIQUE INDEX agents_chat ON agents (sha256(chat)) WHERE chat IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX agents_to_purge ON agents (id) WHERE to_purge;
-- Pinned agents are few, and a list of them must not read all agents.
CREATE INDEX agents_pinned ON agents (id) WHERE pinned;

-- Where each agent's journal stands, and who may append to it. Never an index on what an append changes: so all updates
-- stay in their page (HOT).
CREATE TABLE heads (
    agent bigint PRIMARY KEY REFERENCES agents ON DELETE CASCADE,
    -- The number of its newest event; 0 before the first.
    head bigint NOT NULL,
    -- The number of the oldest delta of any message that is open.
    open_from bigint,
    -- The newest turn that has started, and whether it runs.
    turn int NOT NULL,
    running boolean NOT NULL,
    -- How many bytes of that turn's output are in the journal.
    spool_offset bigint NOT NULL,
    updated_at bigint NOT NULL,
    -- Who may append, if anybody, and the number of this ownership. An append of another one changes nothing.
    owner bigint,
    epoch bigint NOT NULL
) WITH (fillfactor = 40);

CREATE INDEX heads_owner ON heads (owner) WHERE owner IS NOT NULL;

-- One user prompt and all that follows.
CREATE TABLE turns (
    -- In the order in which they were saved.
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
    number int NOT NULL,
    -- The turn that started the process in which this one runs.
    run int NOT NULL,
    prompt bytea NOT NULL,
    -- The types and sizes of its images: 'image/png 68,image/gif 9'. NULL if it has none. So a row of `prompt_images` that is
    -- lost is noticed, and lists need not read that table. The turn of a replay has no rows there.
    images text,
    state text NOT NULL CHECK (state IN ('queued', 'running', 'ended')),
    outcome text CHECK (outcome IN ('completed', 'failed', 'cancelled', 'interrupted')),
    -- Why it was asked to stop: written before its agent is, so that the next server finishes what this one began.
    stop text
        CHECK (stop IN ('cancelled', 'turn_timeout', 'idle_timeout', 'stream_timeout', 'after_result',
            'spool_bytes', 'message_bytes')),
    asked_at bigint NOT NULL,
    first_sequence bigint,
    last_sequence bigint,
    -- While the turn runs, heads.spool_offset counts.
    spool_offset bigint NOT NULL,
    compacted boolean NOT NULL DEFAULT false,
    -- What a list of turns shows of their ends, so that it need not read their events.
    ended_at bigint,
    -- Why the agent's last message stopped, in the agent's own words: said in one of the last 256 events of the turn.
    stop_reason bytea,
    -- The commit that HEAD named when the turn started, if the agent's folder was in a git repository.
    base_commit text,
    UNIQUE (agent, number),
    CHECK ((state = 'ended') = (outcome IS NOT NULL))
);

CREATE INDEX turns_open ON turns (agent) WHERE state <> 'ended';
CREATE INDEX turns_to_compact ON turns (agent) WHERE state = 'ended' AND NOT compacted;
CREATE INDEX turns_first ON turns (agent, first_sequence);

-- Every event, in batches of consecutive numbers. No foreign key: it would lock the agent's row in each append.
CREATE TABLE journal (
    agent bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    turn int NOT NULL,
    -- 1: packed, 2: tight (zstd), 3: packed and quickly compressed (zstd).
    codec smallint NOT NULL,
    -- CRC-32 of the other columns.
    checksum bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (agent, first_seq),
    CHECK (first_seq <= last_seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

-- It is compressed already.
ALTER TABLE journal ALTER payload SET STORAGE EXTERNAL;

-- One row for each event that is not a delta: what people and tools read. No foreign key, as in `journal`.
CREATE TABLE agent_messages (
    agent bigint NOT NULL,
    sequence_number bigint NOT NULL,
    id uuid NOT NULL,
    -- Of a complete message: the number of its first delta.
    first_sequence bigint,
    type text NOT NULL CHECK (type IN ('assistant', 'user', 'system', 'error', 'tool', 'response')),
    role text,
    content bytea NOT NULL,
    raw bytea,
    metadata bytea NOT NULL,
    created_at bigint NOT NULL,
    -- CRC-32 of the other columns but for `id` and `role`.
    checksum bigint NOT NULL,
    PRIMARY KEY (agent, sequence_number),
    -- An id is made of its agent's. A message is completed once.
    UNIQUE (agent, id)
);

-- The images of prompts. A turn has its images from the moment in which it is queued.
CREATE TABLE prompt_images (
    agent bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
    turn int NOT NULL,
    -- 0, 1, 2 … within the turn.
    position int NOT NULL,
    media_type text NOT NULL CHECK (media_type IN ('image/png', 'image/jpeg', 'image/gif', 'image/webp')),
    data bytea NOT NULL,
    -- CRC-32 of the other columns but for `agent`.
    checksum bigint NOT NULL,
    PRIMARY KEY (agent, turn, position)
);

ALTER TABLE prompt_images ALTER data SET STORAGE EXTERNAL;

-- Agents whose history was deleted: their ids are never used again.
CREATE TABLE tombstones (
    id uuid PRIMARY KEY,
    purged_at bigint NOT NULL
);

-- Clients' keys, and what they were used for.
CREATE TABLE idempotency (
    scope bytea NOT NULL,
    key bytea NOT NULL,
    body bytea NOT NULL,
    agent bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
    turn int NOT NULL,
    queued int NOT NULL,
    used_at bigint NOT NULL,
    PRIMARY KEY (scope, key)
);

CREATE INDEX idempotency_used_at ON idempotency (used_at);
CREATE INDEX idempotency_agent ON idempotency (agent);

-- For people: the bytes as text; escaped if they are not UTF-8 or contain a NUL.
CREATE FUNCTION readable(said bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN convert_from(said, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN encode(said, 'escape');
END
$$;

CREATE VIEW readable_agents AS
SELECT agents.key, agents.id, readable(agents.type) AS type, readable(agents.name) AS name, agents.status,
    readable(agents.prompt) AS prompt, readable(agents.model) AS model, readable(agents.cwd) AS cwd,
    heads.head, heads.turn, heads.running, heads.owner, heads.epoch,
    to_timestamp(agents.created_at / 1000.0) AS created_at, to_timestamp(heads.updated_at / 1000.0) AS updated_at,
    to_timestamp(agents.ended_at / 1000.0) AS ended_at, to_timestamp(agents.deleted_at / 1000.0) AS deleted_at,
    agents.error_class, readable(agents.error_text) AS error_text, agents.cost_usd
FROM agents
JOIN heads ON heads.agent = agents.key;

CREATE VIEW readable_turns AS
SELECT agents.id AS agent_id, turns.number, turns.run, readable(turns.prompt) AS prompt, turns.state, turns.outcome,
    turns.stop, to_timestamp(turns.asked_at / 1000.0) AS asked_at, to_timestamp(turns.ended_at / 1000.0) AS ended_at,
    turns.first_sequence, turns.last_sequence, readable(turns.stop_reason) AS stop_reason
FROM turns
JOIN agents ON agents.key = turns.agent;

CREATE VIEW readable_messages AS
SELECT agents.id AS agent_id, agent_messages.sequence_number, agent_messages.id, agent_messages.type,
    agent_messages.role, readable(agent_messages.content) AS content, readable(agent_messages.raw) AS raw,
    readable(agent_messages.metadata) AS metadata, to_timestamp(agent_messages.created_at / 1000.0) AS created_at
FROM agent_messages
JOIN agents ON agents.key = agent_messages.agent;
