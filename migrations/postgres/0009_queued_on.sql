-- The timeline of the server on which a turn was queued first, also if a failover has lost it since and it was queued once
-- more. What was queued on an older timeline than the newest may have begun, and the failover may have lost that. NULL if the
-- server does not say its timeline, or if the turn was queued by a program that knows only the tables before: then `seen`
-- says it of the whole agent. Nothing here disturbs such a program.
ALTER TABLE turns ADD queued_on bigint;
