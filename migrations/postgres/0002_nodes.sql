-- Several servers share the database: nodes, each with a data folder of its own. Nothing here disturbs a program that
-- knows only the tables before.

-- The servers that have joined. A row is never removed, so that no number is given to two nodes.
CREATE TABLE nodes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The identity of its data folder.
    folder uuid NOT NULL UNIQUE,
    name text NOT NULL,
    version text NOT NULL,
    -- How often it has joined, and how often it has beaten since then. No time stands here: no two clocks are compared.
    incarnation bigint NOT NULL,
    beat bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('alive', 'away', 'lost', 'gone'))
) WITH (fillfactor = 40);

-- The digest of the access token: it is the same on all nodes, because clients send it to any of them.
ALTER TABLE cluster ADD token_sha256 bytea;

-- The node that has the agent's folder and its runs. NULL if the agent was made by a program that knows no nodes: the
-- next node that joins becomes its home. Then `heads.owner` is such a program too, whichever number it is. No foreign key:
-- it would lock the row of the node, which beats, whenever an agent is created.
ALTER TABLE agents ADD home bigint;

CREATE INDEX agents_homeless ON agents (key) WHERE home IS NULL;

-- When the row was changed last. In microseconds, so that many changes have different times.
ALTER TABLE agents ADD touched bigint NOT NULL DEFAULT 0;
ALTER TABLE tombstones ADD touched bigint NOT NULL DEFAULT 0;

CREATE INDEX agents_touched ON agents (touched);
CREATE INDEX tombstones_touched ON tombstones (touched);

CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.touched := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    RETURN NEW;
END
$$;

CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON agents FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TRIGGER touch BEFORE INSERT ON tombstones FOR EACH ROW EXECUTE FUNCTION touch();

-- What a node has to carry out for others: turns that wait, and turns that are to be stopped.
CREATE INDEX turns_queued ON turns (agent) WHERE state = 'queued';
CREATE INDEX turns_stopped ON turns (agent) WHERE state <> 'ended' AND stop IS NOT NULL;

-- Which agents are followed at which nodes. Only of agents that are cancelled when nobody follows them.
CREATE TABLE watchers (
    agent bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
    node bigint NOT NULL,
    PRIMARY KEY (agent, node)
);

CREATE INDEX watchers_node ON watchers (node);

-- What only the node of an agent can do, such as to pass on an answer to a permission request, and what became of it.
CREATE TABLE inbox (
    id uuid PRIMARY KEY,
    -- In the order in which they were put.
    number bigint GENERATED ALWAYS AS IDENTITY,
    node bigint NOT NULL,
    agent uuid NOT NULL,
    body bytea NOT NULL,
    reply bytea,
    -- By the clock of the database, in milliseconds.
    made_at bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
);

CREATE INDEX inbox_open ON inbox (node, number) WHERE reply IS NULL;
CREATE INDEX inbox_made_at ON inbox (made_at);

CREATE VIEW readable_nodes AS
SELECT nodes.id, nodes.folder, nodes.name, nodes.version, nodes.state, nodes.incarnation, nodes.beat,
    (SELECT count(*) FROM heads WHERE owner = nodes.id) AS agents_owned
FROM nodes;
