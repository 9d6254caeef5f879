-- What the program of a node knows, so that things that only older programs need are removed when no node that is alive or
-- away has such a program. A program that knows no such column knows less than this.
ALTER TABLE nodes ADD schema int NOT NULL DEFAULT 1;

-- How far nodes have shown a journal whose end a failover has lost. The numbers up to here are never given to anything else:
-- if the node of the agent is lost too, events that say so get them.
CREATE TABLE seen (
    agent bigint PRIMARY KEY REFERENCES agents ON DELETE CASCADE,
    head bigint NOT NULL
);
