//! What the database keeps, and in how many bytes.

use serde_json::json;

use crate::harness::{PATIENCE, TestServer};

#[tokio::test]
async fn a_long_answer_is_a_few_rows_and_a_small_journal() {
    let server = TestServer::start();
    let id = server.launch_to_completion(&json!({ "mode": "stream", "deltas": 20_000 })).await;
    let raw_bytes: usize = {
        let mut bytes = 0;
        let mut since = 0;
        loop {
            let page = server.get(&format!("/api/agents/{id}/events?since={since}&raw=true")).await;
            let page = page.as_array().unwrap();
            let Some(last) = page.last() else { break bytes };
            since = last["sequenceNumber"].as_u64().unwrap();
            bytes += page.iter().filter_map(|event| event["raw"].as_str()).map(str::len).sum::<usize>();
        }
    };
    let journal_bytes = || -> usize {
        let sql = "SELECT sum(length(payload)) FROM journal";
        server.database().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap().try_into().unwrap()
    };
    let started = tokio::time::Instant::now();
    while raw_bytes * 12 / 100 <= journal_bytes() {
        let (kept, raw) = (journal_bytes(), raw_bytes);
        assert!(started.elapsed() < PATIENCE, "{kept} bytes are kept of {raw}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let sql = "SELECT count(*) FROM agent_messages";
    let rows: i64 = server.database().query_row(sql, [], |row| row.get(0)).unwrap();
    assert!((3..=12).contains(&rows), "{rows} rows for one answer");
    assert_eq!(
        server.events(&id).await.len(),
        20_000 + usize::try_from(rows).unwrap(),
        "every token is still there"
    );
}
