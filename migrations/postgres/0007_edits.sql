-- The number of the newest edit of an agent, and that of the last one before the newest failover. A server that does not know
-- whether an edit is there, or whether a failover has lost it, compares its number, and leaves later edits alone. Nothing here
-- disturbs a program that knows only the tables before: its edits have no numbers.
ALTER TABLE agents ADD edits bigint NOT NULL DEFAULT 0;
ALTER TABLE agents ADD edits_before bigint NOT NULL DEFAULT 0;
