-- The images of prompts. A turn has its images from the moment in which it is queued.
CREATE TABLE prompt_images (
    key INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    -- 0, 1, 2 … within the turn.
    position INTEGER NOT NULL,
    media_type TEXT NOT NULL CHECK (media_type IN ('image/png', 'image/jpeg', 'image/gif', 'image/webp')),
    data BLOB NOT NULL,
    -- CRC-32 of the other columns but for `key` and `agent`.
    checksum INTEGER NOT NULL,
    UNIQUE (agent, turn, position)
) STRICT;
