-- The id of the message that a turn is: made once, so that a server that does not know whether the message was saved finds it,
-- and does not save it twice. NULL for the turn that an agent was created with: the id of the agent does the same. The turns
-- that are there have none either, so that building the index only reads the table.
ALTER TABLE turns ADD command uuid;

CREATE UNIQUE INDEX turns_command ON turns (command) WHERE command IS NOT NULL;
