-- Tells a row that a disk has changed from the one that was written: CRC-32 of its other columns. NULL in rows of
-- versions before.
ALTER TABLE journal ADD COLUMN checksum INTEGER;
ALTER TABLE agent_messages ADD COLUMN checksum INTEGER;
