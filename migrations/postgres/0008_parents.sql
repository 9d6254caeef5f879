-- The agent that has launched this one, and how deep the launch was: 1 if no agent has launched the parent. NULL if no agent has
-- launched this one. The parent may have been purged. An earlier program launches agents that have none. No row has a parent
-- when the index is built, so building it only reads the table.
ALTER TABLE agents ADD launched_by uuid;
ALTER TABLE agents ADD launch_depth integer;

CREATE INDEX agents_launched_by ON agents (launched_by) WHERE launched_by IS NOT NULL;
