-- The number of the ownership under which the journal is written. An append of another one is refused.
ALTER TABLE heads ADD COLUMN epoch INTEGER NOT NULL DEFAULT 1;
