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

-- The types and sizes of a turn's images: 'image/png 68,image/gif 9'. NULL if it has none. So a row of `prompt_images`
-- that is lost is noticed, and lists need not read that table. The turn of a replay has no rows there: it shows the
-- images of its original.
ALTER TABLE turns ADD COLUMN images TEXT;
