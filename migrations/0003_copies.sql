-- Agents whose history is a copy: taken in from a file, or replayed from another agent. Nobody can talk with them.
ALTER TABLE agents ADD COLUMN copy TEXT CHECK (copy IN ('file', 'replay'));
-- Of a replay: which agent, up to which of its numbers, and how fast. No foreign key: the other may be purged.
ALTER TABLE agents ADD COLUMN replay_of TEXT;
ALTER TABLE agents ADD COLUMN replay_until INTEGER;
ALTER TABLE agents ADD COLUMN replay_speed REAL;
