-- What must be true of every database. Each row that comes out is a fault: which rule, which agent, what is wrong.

-- An import adds turns before their events, so until it is finished, its agent breaks the rules about results.
WITH complete AS (SELECT * FROM agents WHERE NOT (copy IS 'file' AND to_purge = 1))

SELECT 'every agent has a row in heads', agents.id, 'missing'
FROM agents
LEFT JOIN heads ON heads.agent = agents.key
WHERE heads.agent IS NULL

UNION ALL
SELECT 'the stored head equals the latest sequence number in the journal', agents.id,
    'head ' || heads.head || ', newest ' || coalesce(max(journal.last_seq), 0)
FROM agents
JOIN heads ON heads.agent = agents.key
LEFT JOIN journal ON journal.agent = agents.key
GROUP BY agents.key
HAVING heads.head <> coalesce(max(journal.last_seq), 0)

UNION ALL
SELECT 'sequence numbers have no gaps and no duplicates', agents.id,
    'batch ' || batches.first_seq || ' follows ' || batches.before
FROM (
    SELECT agent, first_seq, lag(last_seq, 1, 0) OVER (PARTITION BY agent ORDER BY first_seq) AS before
    FROM journal
) AS batches
JOIN agents ON agents.key = batches.agent
WHERE batches.first_seq <> batches.before + 1

UNION ALL
SELECT 'every batch belongs to a turn', agents.id, 'batch ' || journal.first_seq || ', turn ' || journal.turn
FROM journal
JOIN agents ON agents.key = journal.agent
LEFT JOIN turns ON turns.agent = journal.agent AND turns.number = journal.turn
WHERE turns.key IS NULL OR turns.state = 'queued'

UNION ALL
SELECT 'every image belongs to a turn', agents.id,
    'image ' || prompt_images.position || ', turn ' || prompt_images.turn
FROM prompt_images
JOIN agents ON agents.key = prompt_images.agent
LEFT JOIN turns ON turns.agent = prompt_images.agent AND turns.number = prompt_images.turn
WHERE turns.key IS NULL

UNION ALL
SELECT 'a turn has the images that it lists', agents.id, 'turn ' || turns.number
FROM turns
JOIN agents ON agents.key = turns.agent
WHERE agents.replay_of IS NULL AND (
    -- Images that were lost before an import are marked.
    SELECT group_concat(key || ' ' || value, ',' ORDER BY key)
    FROM json_each('["' || replace(turns.images, ',', '","') || '"]')
    WHERE value NOT LIKE '% lost'
) IS NOT (
    SELECT group_concat(position || ' ' || media_type || ' ' || octet_length(data), ',' ORDER BY position)
    FROM prompt_images
    WHERE agent = turns.agent AND turn = turns.number
)

UNION ALL
SELECT 'no event follows the result of a turn', agents.id,
    'batch ' || journal.first_seq || ', turn ' || turns.number || ' ended at ' || turns.last_sequence
FROM turns
JOIN agents ON agents.key = turns.agent
JOIN journal ON journal.agent = turns.agent AND journal.turn = turns.number
WHERE turns.state = 'ended' AND turns.last_sequence < journal.last_seq

UNION ALL
SELECT 'an ended turn has one result, its last event', agents.id,
    'turn ' || turns.number || ' has ' || count(agent_messages.id)
FROM turns
JOIN complete AS agents ON agents.key = turns.agent
LEFT JOIN agent_messages
    ON agent_messages.agent_id = agents.id AND agent_messages.type = 'response'
    AND agent_messages.sequence_number = turns.last_sequence
WHERE turns.state = 'ended'
GROUP BY turns.key
HAVING count(agent_messages.id) <> 1

UNION ALL
SELECT 'there are as many results as ended turns', agents.id,
    (SELECT count(*) FROM agent_messages WHERE agent_id = agents.id AND type = 'response') || ' results'
FROM complete AS agents
WHERE (SELECT count(*) FROM agent_messages WHERE agent_id = agents.id AND type = 'response')
    <> (SELECT count(*) FROM turns
        WHERE agent = agents.key AND state = 'ended')

UNION ALL
SELECT 'every message has a sequence number up to the head', agents.id, 'message ' || agent_messages.sequence_number
FROM agent_messages
JOIN agents ON agents.id = agent_messages.agent_id
JOIN heads ON heads.agent = agents.key
WHERE agent_messages.sequence_number < 1 OR heads.head < agent_messages.sequence_number
    OR agent_messages.sequence_number < agent_messages.first_sequence

UNION ALL
SELECT 'an agent has a running turn if and only if its status is running, and that turn is its latest', agents.id,
    agents.status || ', running turns: '
    || (SELECT count(*) FROM turns WHERE agent = agents.key AND state = 'running')
FROM agents
JOIN heads ON heads.agent = agents.key
WHERE (agents.status = 'running') <> heads.running
    OR heads.running <> (SELECT count(*) FROM turns WHERE agent = agents.key AND state = 'running')
    OR heads.running <> (SELECT count(*) FROM turns
        WHERE agent = agents.key AND state = 'running' AND number = heads.turn)

UNION ALL
SELECT 'an agent that has not started has a queued turn', agents.id, 'missing'
FROM agents
WHERE agents.status = 'initializing'
    AND NOT EXISTS (SELECT 1 FROM turns WHERE agent = agents.key AND state = 'queued')

UNION ALL
SELECT 'a purged id is never reused', agents.id, 'reused'
FROM agents
JOIN tombstones ON tombstones.id = agents.id

UNION ALL
SELECT 'no message is incomplete unless a turn is running', agents.id, 'open from ' || heads.open_from
FROM agents
JOIN heads ON heads.agent = agents.key
WHERE heads.open_from IS NOT NULL AND heads.running = 0

UNION ALL
SELECT 'the status of an ended agent matches its latest result', agents.id,
    agents.status || ', but turn ' || turns.number || ' ' || turns.outcome
FROM complete AS agents
JOIN turns ON turns.agent = agents.key
WHERE agents.status NOT IN ('initializing', 'running')
    AND turns.last_sequence = (SELECT max(last_sequence) FROM turns WHERE agent = agents.key)
    AND turns.outcome <> agents.status

UNION ALL
SELECT 'a turn begins after the previous turn has ended', agents.id,
    'turn ' || spans.number || ' begins at ' || spans.first_sequence || ', ended at ' || spans.before
FROM (
    SELECT agent, number, first_sequence,
        lag(last_sequence, 1, 0) OVER (PARTITION BY agent ORDER BY first_sequence, number) AS before
    FROM turns
    WHERE first_sequence IS NOT NULL
) AS spans
JOIN complete AS agents ON agents.key = spans.agent
WHERE spans.before IS NULL OR spans.first_sequence <> spans.before + 1

UNION ALL
SELECT 'turn numbers have no gaps', agents.id,
    count(turns.key) || ' turns, newest ' || max(turns.number)
FROM complete AS agents
JOIN turns ON turns.agent = agents.key
GROUP BY agents.key
HAVING count(turns.key) <> max(turns.number)
