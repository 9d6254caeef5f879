-- The agent that has launched this one, and how deep the launch was: 1 if no agent has launched the parent. NULL if no agent has
-- launched this one. The parent may have been purged.
ALTER TABLE agents ADD COLUMN launched_by TEXT CHECK (length(launched_by) = 36);
ALTER TABLE agents ADD COLUMN launch_depth INTEGER CHECK ((launch_depth IS NULL) = (launched_by IS NULL));

-- Few agents have a parent, and the children of one must be found without reading all agents.
CREATE INDEX agents_launched_by ON agents (launched_by) WHERE launched_by IS NOT NULL;
