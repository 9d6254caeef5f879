-- How users order the list of agents. Both may change at any time, also after the agent has ended.
ALTER TABLE agents ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1));
-- Left out of lists, until the agent gets a message or asks for permission.
ALTER TABLE agents ADD COLUMN archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1));

-- Pinned agents are few, and a list of them must not read all agents.
CREATE INDEX agents_pinned ON agents (id) WHERE pinned = 1;
