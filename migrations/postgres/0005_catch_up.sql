-- After a failover of the database that has lost the newest commits, each node saves again what was acknowledged to it. Until
-- all nodes have done so, nobody may conclude anything from what is missing. Nothing here disturbs a program that knows only
-- the tables before: it never says that it is done, so the others wait for the whole time.

-- The timeline of the newest server that was used, and when the failover to it was noticed: by the clock of the database, in
-- milliseconds. Both are 0 if they are not known.
ALTER TABLE cluster ADD timeline bigint NOT NULL DEFAULT 0;
ALTER TABLE cluster ADD timeline_since bigint NOT NULL DEFAULT 0;

-- The newest timeline on which the node has saved everything again, and the one on which it has said how far it had shown
-- journals whose ends are missing (`seen`).
ALTER TABLE nodes ADD healed bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD told bigint NOT NULL DEFAULT 0;
