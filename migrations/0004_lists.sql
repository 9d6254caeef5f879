-- What a list of turns shows of their ends, so that it need not read their events.
ALTER TABLE turns ADD COLUMN ended_at INTEGER;
-- Why the agent's last message stopped, in the agent's own words: said in one of the last 256 events of the turn.
ALTER TABLE turns ADD COLUMN stop_reason TEXT;

UPDATE turns
SET ended_at = (
        SELECT CAST(round(unixepoch(result.created_at, 'subsec') * 1000) AS INTEGER)
        FROM agent_messages AS result
        WHERE result.agent_id = (SELECT id FROM agents WHERE key = turns.agent)
            AND result.sequence_number = turns.last_sequence
    ),
    stop_reason = (
        SELECT substr(json_extract(said.metadata, '$.stopReason'), 1, 64)
        FROM agent_messages AS said
        WHERE said.agent_id = (SELECT id FROM agents WHERE key = turns.agent)
            AND said.sequence_number BETWEEN max(turns.first_sequence, turns.last_sequence - 255) AND turns.last_sequence
            AND said.type = 'system'
            AND CASE WHEN json_valid(said.metadata)
                THEN json_extract(said.metadata, '$.eventType') = 'message_delta'
                    AND json_extract(said.metadata, '$.stopReason') IS NOT NULL
                ELSE 0 END
        ORDER BY said.sequence_number DESC
        LIMIT 1
    )
WHERE state = 'ended';
