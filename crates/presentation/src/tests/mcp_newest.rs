//! What clients of the newest version of the Model Context Protocol see, which know no `initialize`.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::harness::{Answer, Harness};
use super::mcp;

const VERSION: &str = "2026-07-28";

/// What a request says about itself.
pub(super) fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// Parameters with what the request says about itself.
pub(super) fn about(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = meta(capabilities);
    params
}

pub(super) async fn post(harness: &Harness, headers: &[(&str, &str)], message: &Value) -> Answer {
    let mut request = TestRequest::post().uri("/mcp").insert_header(("content-type", "application/json"));
    for header in headers {
        request = request.append_header(*header);
    }
    harness.call(request.set_payload(message.to_string())).await
}

/// Sends a request as a client must, and returns the response.
pub(super) async fn ask(harness: &Harness, method: &str, params: &Value) -> Value {
    let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or("none");
    let headers = [("mcp-protocol-version", VERSION), ("mcp-method", method), ("mcp-name", name)];
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let answer = post(harness, &headers, &message).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let response = answer.json();
    assert_eq!(response["id"], 7, "{response}");
    response
}

#[actix_web::test]
async fn a_client_needs_no_handshake() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let uri = format!("tokenrail://agents/{id}/transcript");
    let complete = json!({"ref": {"type": "ref/prompt", "name": "delegate"},
        "argument": {"name": "agent_type", "value": ""}});
    let fixed = (json!(300_000), json!("public"));
    let stale = (json!(0), json!("private"));
    let never = (Value::Null, Value::Null);
    for (method, params, field, cache) in [
        ("server/discover", json!({}), "supportedVersions", &fixed),
        ("tools/list", json!({}), "tools", &fixed),
        ("prompts/list", json!({}), "prompts", &fixed),
        ("resources/templates/list", json!({}), "resourceTemplates", &fixed),
        ("resources/list", json!({}), "resources", &stale),
        ("resources/read", json!({"uri": uri}), "contents", &stale),
        ("prompts/get", json!({"name": "catch_up", "arguments": {"agent_id": id}}), "messages", &never),
        ("completion/complete", complete, "completion", &never),
        ("tools/call", json!({"name": "list_agents"}), "content", &never),
    ] {
        let response = ask(&harness, method, &about(params.clone(), &json!({}))).await;
        let result = &response["result"];
        assert!(!result[field].is_null(), "{method}: {response}");
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tokenrail", "{method}");
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&cache.0, &cache.1), "{method}");
        if method != "server/discover" {
            let earlier = &mcp::ask(&harness, method, &params).await["result"];
            assert_eq!((&earlier["resultType"], &earlier["_meta"]), (&Value::Null, &Value::Null), "{method}");
            assert_eq!(earlier["ttlMs"], Value::Null, "{method}");
            assert_eq!(earlier[field], result[field], "the same for a client of an earlier version");
        }
    }
    let discovered = ask(&harness, "server/discover", &about(json!({}), &json!({}))).await;
    let versions = json!(["2026-07-28", "2025-11-25", "2025-06-18"]);
    assert_eq!(discovered["result"]["supportedVersions"], versions);
    let capabilities =
        json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "completions": {}});
    assert_eq!(discovered["result"]["capabilities"], capabilities);
}

#[actix_web::test]
async fn the_methods_of_the_handshake_are_gone() {
    let harness = Harness::new();
    let params = about(json!({"protocolVersion": VERSION}), &json!({}));
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"] {
        let headers = [("mcp-protocol-version", VERSION), ("mcp-method", method)];
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = post(&harness, &headers, &message).await;
        let error = answer.json();
        assert_eq!((answer.status.as_u16(), &error["error"]["code"]), (404, &json!(-32601)), "{method}");
        assert_eq!(error["id"], 7);
    }
    let earlier = mcp::ask(&harness, "server/discover", &json!({})).await;
    assert_eq!(earlier["error"]["code"], -32601, "earlier versions do not have it");
    let agreed = mcp::ask(&harness, "initialize", &json!({"protocolVersion": VERSION})).await;
    assert_eq!(agreed["result"]["protocolVersion"], "2025-11-25", "the newest version with a handshake");
}

#[actix_web::test]
async fn a_request_must_say_what_it_is_and_its_headers_must_say_the_same() {
    let harness = Harness::new();
    let version = ("mcp-protocol-version", VERSION);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "list_agents");
    let good = about(json!({"name": "list_agents"}), &json!({}));
    let without = |key: &str| {
        let mut params = good.clone();
        params["_meta"].as_object_mut().unwrap().remove(&format!("io.modelcontextprotocol/{key}"));
        params
    };
    let with = |key: &str, value: Value| {
        let mut params = good.clone();
        params["_meta"][format!("io.modelcontextprotocol/{key}")] = value;
        params
    };
    let encoded = ("mcp-name", "=?base64?bGlzdF9hZ2VudHM=?=");
    let cases = [
        (vec![version, method, name], good.clone(), 200, 0),
        (vec![version, method, ("mcp-name", " list_agents ")], good.clone(), 200, 0),
        (vec![version, method, encoded], good.clone(), 200, 0),
        (vec![version, method, name], without("clientInfo"), 200, 0),
        (vec![version, method, name], json!({"name": "list_agents"}), 400, -32602),
        (vec![version, method, name], json!({"name": "list_agents", "_meta": 1}), 400, -32602),
        (vec![version, method, name], without("protocolVersion"), 400, -32602),
        (vec![version, method, name], with("protocolVersion", json!(1)), 400, -32602),
        (vec![version, method, name], without("clientCapabilities"), 400, -32602),
        (vec![version, method, name], with("clientCapabilities", json!([])), 400, -32602),
        (vec![version, method, name], with("protocolVersion", json!("2025-11-25")), 400, -32020),
        (vec![("mcp-protocol-version", "2025-11-25"), method, name], good.clone(), 400, -32020),
        (vec![method, name], good.clone(), 400, -32020),
        (vec![version, name], good.clone(), 400, -32020),
        (vec![version, method], good.clone(), 400, -32020),
        (vec![version, ("mcp-method", "TOOLS/CALL"), name], good.clone(), 400, -32020),
        (vec![version, method, ("mcp-name", "read_agent")], good.clone(), 400, -32020),
        (vec![version, method, name, name], good.clone(), 400, -32020),
        (vec![version, method, ("mcp-name", "=?base64?bGlzdF9hZ2VudHM?=")], good.clone(), 400, -32020),
    ];
    for (headers, params, status, code) in cases {
        let message = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": params});
        let answer = post(&harness, &headers, &message).await;
        let response = answer.json();
        let found = response["error"]["code"].as_i64().unwrap_or(0);
        assert_eq!((answer.status.as_u16(), found), (status, code), "{headers:?} {params}: {response}");
        assert_eq!(response["id"], "x");
    }
}

#[actix_web::test]
async fn the_name_in_the_header_is_the_parameter_that_the_method_has() {
    let harness = Harness::new();
    let id = harness.launch_to_end("say a").await;
    let uri = format!("tokenrail://agents/{id}/transcript");
    for (method, own, other) in [
        ("resources/read", uri.as_str(), "harmless"),
        ("tools/call", "list_agents", uri.as_str()),
        ("prompts/get", "delegate", uri.as_str()),
    ] {
        let is_uri = method == "resources/read";
        let (name, uri) = if is_uri { (other, own) } else { (own, other) };
        let params = about(json!({"name": name, "uri": uri, "arguments": {"task": "x"}}), &json!({}));
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        for (said, status) in [(own, 200), (other, 400)] {
            let headers = [("mcp-protocol-version", VERSION), ("mcp-method", method), ("mcp-name", said)];
            let answer = post(&harness, &headers, &message).await;
            assert_eq!(answer.status, status, "{method} {said}: {answer:?}");
            assert_eq!(answer.json()["error"]["code"] == -32020, status == 400, "{method}: {answer:?}");
        }
    }
}

#[actix_web::test]
async fn a_client_of_an_unknown_version_is_told_the_known_ones() {
    let harness = Harness::new();
    let mut params = about(json!({}), &json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let headers = [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")];
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params});
    let answer = post(&harness, &headers, &message).await;
    let error = answer.json();
    assert_eq!((answer.status.as_u16(), &error["error"]["code"]), (400, &json!(-32022)), "{error}");
    let data = &error["error"]["data"];
    assert_eq!(data["supported"], json!(["2026-07-28", "2025-11-25", "2025-06-18"]));
    assert_eq!((&data["requested"], &error["id"]), (&json!("2099-01-01"), &json!(7)));
}

#[actix_web::test]
async fn what_a_method_refuses_has_the_numbers_of_the_version() {
    let harness = Harness::new();
    for (method, params) in [
        ("resources/read", json!({"uri": "tokenrail://agents/x/transcript"})),
        ("tools/call", json!({"name": "rm"})),
        ("prompts/get", json!({"name": "rm"})),
        ("resources/list", json!({"cursor": "x"})),
    ] {
        let error = ask(&harness, method, &about(params, &json!({}))).await;
        assert_eq!(error["error"]["code"], -32602, "{method}: {error}");
    }
    let uri = "tokenrail://agents/x/transcript";
    let missing = ask(&harness, "resources/read", &about(json!({"uri": uri}), &json!({}))).await;
    assert_eq!(missing["error"]["data"]["uri"], uri, "{missing}");
    let earlier = mcp::ask(&harness, "resources/read", &json!({"uri": uri})).await;
    assert_eq!(earlier["error"]["data"], json!({"code": "not_found", "retryable": false}));
    // A tool's own refusals are results, as ever.
    let call = json!({"name": "read_agent", "arguments": {"agent_id": "x"}});
    let refused = ask(&harness, "tools/call", &about(call, &json!({}))).await;
    assert_eq!(
        (&refused["result"]["isError"], &refused["result"]["resultType"]),
        (&json!(true), &json!("complete"))
    );
}

#[actix_web::test]
async fn an_id_has_a_maximum_length() {
    let harness = Harness::new();
    for (length, status) in [(1_022, 200), (1_023, 400)] {
        let message = json!({"jsonrpc": "2.0", "id": "x".repeat(length), "method": "ping"});
        let answer = post(&harness, &[], &message).await;
        assert_eq!(answer.status, status, "{length}");
        assert_eq!(answer.json()["error"].is_null(), status == 200, "{length}");
    }
}
