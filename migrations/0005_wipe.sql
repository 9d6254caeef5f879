-- Something was purged, and what SQLite has left of it between its rows is still to be wiped: see `wipe.rs`.
ALTER TABLE commits ADD COLUMN to_wipe INTEGER NOT NULL DEFAULT 0 CHECK (to_wipe IN (0, 1));
