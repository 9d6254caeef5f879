//! Purges of long histories.

use tokenrail_domain::TurnOutcome;
use tokenrail_ports::testing::samples::notice;

use super::*;

/// Notes in which transaction each row is deleted.
const NOTE_DELETIONS: &str = "
    CREATE TABLE deletions (xid bigint NOT NULL);
    CREATE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO deletions VALUES (txid_current());
        RETURN OLD;
    END $$;
    CREATE TRIGGER note BEFORE DELETE ON journal FOR EACH ROW EXECUTE FUNCTION note_deletion();
    GRANT ALL ON deletions TO public";

/// Batches that differ in nothing but their numbers: nobody reads them.
const ADD_BATCHES: &str = "
    INSERT INTO journal (agent, first_seq, last_seq, turn, codec, checksum, payload)
    SELECT agent, n, n, 1, 0, 0, '' FROM heads, generate_series(1000, 3499) AS n";

#[tokio::test]
async fn a_long_history_is_purged_in_short_transactions() {
    let (store, database) = fresh().await;
    let (agent, mut scribe) = running(&store, 1).await;
    store.append(scribe.say(vec![notice("n")])).await.unwrap();
    store.append(scribe.end(TurnOutcome::Completed)).await.unwrap();
    database.sql(ADD_BATCHES);
    database.sql(NOTE_DELETIONS);
    assert!(store.purge(agent.id, agent.created_at).await.unwrap());
    assert_eq!(database.sql("SELECT count(*) FROM journal"), "0");
    assert_eq!(database.sql("SELECT count(*) FROM agent_messages"), "0");
    let most =
        database.sql("SELECT max(n) FROM (SELECT count(*) AS n FROM deletions GROUP BY xid) AS counts");
    assert_eq!(most, "1000", "rows in one transaction");
}
