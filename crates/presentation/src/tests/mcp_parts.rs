//! Long texts, which a client of the Model Context Protocol reads in parts.

use serde_json::{Value, json};

use super::harness::Harness;
use super::mcp::{launch, tool, tool_error, wait};

/// The text of an entry, read in parts of at most `bytes`.
async fn in_parts(harness: &Harness, id: &str, seq: &Value, bytes: usize) -> Vec<String> {
    let (mut offset, mut parts) = (json!(0), Vec::new());
    loop {
        let arguments = json!({"agent_id": id, "seq": seq, "offset": offset, "max_bytes": bytes});
        let part = tool(harness, "read_entry", &arguments).await;
        parts.push(part["text"].as_str().unwrap().to_owned());
        offset = part["next_offset"].clone();
        if part["more"] == false {
            assert_eq!(
                (&offset, parts.concat().len()),
                (&part["total_bytes"], part["total_bytes"].as_u64().unwrap() as usize)
            );
            return parts;
        }
    }
}

#[actix_web::test]
async fn a_text_that_is_longer_than_a_page_is_cut_and_read_in_parts() {
    let harness = Harness::new();
    let prompt = format!("say {}", "🦀é".repeat(500));
    let id = launch(&harness, &prompt).await;
    let end = wait(&harness, &id, 0).await["next_since"].clone();
    let page = tool(&harness, "read_agent", &json!({"agent_id": id, "max_bytes": 1000})).await;
    let entry = &page["entries"][0];
    assert_eq!((&entry["kind"], &entry["truncated"]), (&json!("prompt"), &json!(true)));
    let cut = entry["text"].as_str().unwrap();
    assert!(prompt.starts_with(cut) && (990..=1000).contains(&cut.len()), "{}", cut.len());
    assert_eq!((page["entries"].as_array().unwrap().len(), &page["more"]), (1, &json!(true)));

    for bytes in [1000, 1001, 1002, 1003, 200_000] {
        let parts = in_parts(&harness, &id, &entry["seq"], bytes).await;
        assert_eq!(parts.concat(), prompt, "{bytes}");
        assert!(parts.iter().all(|part| part.len() <= bytes));
    }
    let rest = tool(&harness, "read_agent", &json!({"agent_id": id, "since": page["next_since"]})).await;
    assert_eq!(rest["entries"][0]["text"], "🦀é".repeat(500), "a piece of a text is not cut");
    let piece = &rest["entries"][0]["seq"];
    assert_eq!(in_parts(&harness, &id, piece, 200_000).await, ["🦀é".repeat(500)]);

    let part = |seq: &Value, offset: u64| json!({"agent_id": id, "seq": seq, "offset": offset});
    for (wrong, expected) in [
        (part(&entry["seq"], 5), "offset: "),
        (part(&entry["seq"], 1 << 40), "offset: "),
        (part(&end, 0), "seq: "),
        (part(&json!(0), 0), "seq: "),
        (part(&json!(1_u64 << 40), 0), "seq: "),
        (json!({"agent_id": id, "seq": "x"}), "seq: "),
        (json!({"agent_id": "x", "seq": 1}), "no such agent"),
    ] {
        let error = tool_error(&harness, "read_entry", &wrong).await;
        assert!(error.starts_with(expected), "{wrong}: {error}");
    }
}
