//! Agents of a program that knows no nodes.

use tokenrail_domain::NodeId;
use tokenrail_ports::Epoch;
use tokenrail_ports::testing::samples::notice;

use super::*;
use crate::postgres::database::steps::RELEASED;

const FIRST_TABLES: &str = include_str!("../../../../../../migrations/postgres/0001_initial.sql");

/// An agent as a program writes it that knows no nodes. Its owner is that program's number for itself.
fn old_agent(n: u8, owner: &str) -> String {
    let id = launch(n).0.id;
    let state = if owner == "NULL" { "'ended', 'completed'" } else { "'queued', NULL" };
    format!(
        "WITH agent AS (
            INSERT INTO agents (id, type, status, prompt, cwd, created_at, cancel_on_disconnect, pinned, archived)
            VALUES ('{id}', 'demo', 'initializing', 'go', '/', 1, false, false, false)
            RETURNING key
        ), turn AS (
            INSERT INTO turns (agent, number, run, prompt, state, outcome, asked_at, spool_offset)
            SELECT key, 1, 1, 'go', {state}, 1, 0 FROM agent
        )
        INSERT INTO heads (agent, head, turn, running, spool_offset, updated_at, owner, epoch)
        SELECT key, 0, 1, false, 0, 1, {owner}, 1 FROM agent;"
    )
}

const OWNERS: &str = "
    SELECT string_agg(format('%s %s %s', home, owner, epoch), ', ' ORDER BY id)
    FROM agents
    JOIN heads ON heads.agent = agents.key";

#[tokio::test]
async fn the_first_node_adopts_the_agents_of_a_program_that_knew_no_nodes() {
    for first in [1, 2] {
        let database = tokenrail_test_postgres::database();
        database.sql(&format!(
            "SET ROLE tokenrail; {FIRST_TABLES}
            INSERT INTO cluster VALUES (1, gen_random_uuid(), 1, 1); {} {}",
            old_agent(1, "1"),
            old_agent(2, "NULL")
        ));
        let store = PostgresStore::open(config(&database)).await.unwrap();
        let newest = format!("{}|1", RELEASED.schema());
        assert_eq!(database.sql("SELECT schema, compatible_from FROM cluster"), newest);
        if first == 2 {
            // The number 1 was given to a server whose join failed.
            database.sql("SELECT nextval(pg_get_serial_sequence('nodes', 'id'))");
        }
        assert_eq!(store.join().await.unwrap(), NodeId(first));
        let epoch = store.claim(launch(1).0.id).await.unwrap().unwrap();
        assert!(Epoch(1) < epoch);
        let owners = format!("{first} {first} {}, {first}  1", epoch.0);
        assert_eq!(database.sql(OWNERS), owners);
        assert_eq!(store.with_open_turns(9).await.unwrap().len(), 1);

        let other = other_node(&database).await;
        assert_eq!(database.sql(OWNERS), owners, "they have a home");
        assert_eq!(other.with_open_turns(9).await.unwrap(), []);
        assert_eq!(other.claim(launch(1).0.id).await.unwrap(), None);
    }
}

/// The older program was started once more: its number for itself is that of another node.
#[tokio::test]
async fn an_agent_of_an_older_program_does_not_belong_to_the_node_with_its_number() {
    let (one, database) = fresh().await;
    let (mine, mut scribe) = running(&one, 1).await;
    let mark = one.touched(None, 9).await.unwrap().mark;
    let old = format!("SET ROLE tokenrail; {}", old_agent(2, "1"));
    database.sql(&old);
    let touched = one.touched(Some(mark), 9).await.unwrap().agents;
    assert!(touched.iter().any(|(agent, _)| *agent == launch(2).0.id), "also by an older program");
    let other = other_node(&database).await;
    assert_eq!(database.sql(OWNERS), "1 1 1, 2 2 2");
    assert_eq!(other.claim(launch(2).0.id).await.unwrap(), Some(Epoch(2)));
    one.append(scribe.say(vec![notice("goes on")])).await.unwrap();
    assert_eq!(everything(&other, &mine).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_join_at_once_are_different_nodes_and_adopt_each_agent_once() {
    let database = tokenrail_test_postgres::database();
    drop(PostgresStore::open(config(&database)).await.unwrap());
    for n in 1..20 {
        database.sql(&format!("SET ROLE tokenrail; {}", old_agent(n, "1")));
    }
    let joining = (1..7).map(|folder| joined(config_of(&database, folder)));
    let stores = futures_util::future::join_all(joining).await;
    assert_eq!(database.sql("SELECT count(*), count(DISTINCT id) FROM nodes"), "6|6");
    let adopted = "SELECT count(*) FROM agents JOIN heads ON heads.agent = agents.key
        WHERE owner = home AND 1 < epoch AND home IN (SELECT id FROM nodes)";
    assert_eq!(database.sql(adopted), "19");
    let mut found = 0;
    for store in &stores {
        found += store.with_open_turns(9).await.unwrap().len();
    }
    assert_eq!(found, 19);
    assert_eq!(database.sql("SELECT count(DISTINCT home) FROM agents"), "1", "they stay together");
}
