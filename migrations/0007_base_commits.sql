-- The commit that HEAD named when the turn started, if the agent's folder was in a git repository.
ALTER TABLE turns ADD COLUMN base_commit TEXT;
