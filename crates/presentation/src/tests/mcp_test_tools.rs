//! What the conformance suite of the Model Context Protocol calls. It is there only for tests.

use serde_json::{Value, json};

use super::harness::Harness;
use super::mcp::ask;

fn shown() -> Harness {
    Harness::with(|config, _| config.test_routes = true)
}

#[actix_web::test]
async fn the_names_of_the_conformance_suite_are_there_only_for_tests() {
    let (hidden, shown) = (Harness::new(), shown());
    for (method, params, code) in [
        ("tools/call", json!({"name": "test_simple_text"}), -32602),
        ("tools/call", json!({"name": "test_multiple_content_types"}), -32602),
        ("resources/read", json!({"uri": "test://static-binary"}), -32002),
        ("prompts/get", json!({"name": "test_prompt_with_image"}), -32602),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
                   "argument": {"name": "arg1", "value": "par"}}),
            -32602,
        ),
    ] {
        assert_eq!(ask(&hidden, method, &params).await["error"]["code"], code, "{method} {params}");
        let response = ask(&shown, method, &params).await;
        assert!(response["result"].is_object(), "{method} {params}: {response}");
    }
    for (method, list, real, tests) in [("tools/list", "tools", 9, 7), ("prompts/list", "prompts", 2, 4)] {
        for (harness, count) in [(&hidden, real), (&shown, real + tests)] {
            let listed = ask(harness, method, &json!({})).await;
            assert_eq!(listed["result"][list].as_array().unwrap().len(), count, "{method}");
        }
    }
}

#[actix_web::test]
async fn content_of_every_kind_is_written_as_the_protocol_wants_it() {
    let harness = shown();
    let content = async |tool: &str| {
        let response = ask(&harness, "tools/call", &json!({"name": tool})).await;
        response["result"]["content"].clone()
    };
    let mixed = content("test_multiple_content_types").await;
    let kinds: Vec<&Value> = mixed.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "image", "resource"]);
    assert_eq!(mixed[1]["mimeType"], "image/png");
    let png = mixed[1]["data"].as_str().unwrap();
    assert!(png.starts_with("iVBORw0KGgo") && png.ends_with("AAAElFTkSuQmCC"), "a file in base64: {png}");
    let sound = content("test_audio_content").await;
    assert_eq!((&sound[0]["type"], &sound[0]["mimeType"]), (&json!("audio"), &json!("audio/wav")));
    let text = "This is an embedded resource content.";
    let resource = json!({"uri": "test://embedded-resource", "mimeType": "text/plain", "text": text});
    assert_eq!(content("test_embedded_resource").await, json!([{"type": "resource", "resource": resource}]));

    let read = ask(&harness, "resources/read", &json!({"uri": "test://static-binary"})).await;
    let file = json!({"uri": "test://static-binary", "mimeType": "image/png", "blob": png});
    assert_eq!(read["result"]["contents"], json!([file]));
}
