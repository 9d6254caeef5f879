//! The OpenAPI document.

use super::harness::Harness;

#[actix_web::test]
async fn the_document_describes_every_route_and_its_problems() {
    let harness = Harness::new();
    let document = harness.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let calls: Vec<_> = paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    let expected = [
        "get /ag-ui",
        "post /ag-ui",
        "get /ag-ui/threads/{id}",
        "post /ag-ui/threads/{id}/cancel",
        "post /ag-ui/{type}",
        "get /api/agent-types",
        "get /api/agents",
        "post /api/agents",
        "get /api/agents/active",
        "post /api/agents/import",
        "delete /api/agents/{id}",
        "get /api/agents/{id}",
        "patch /api/agents/{id}",
        "post /api/agents/{id}/cancel",
        "get /api/agents/{id}/changes",
        "get /api/agents/{id}/changes/patch",
        "get /api/agents/{id}/events",
        "get /api/agents/{id}/export",
        "get /api/agents/{id}/messages",
        "post /api/agents/{id}/messages",
        "post /api/agents/{id}/permissions/{requestId}",
        "post /api/agents/{id}/replay",
        "get /api/agents/{id}/status",
        "get /api/agents/{id}/turns",
        "delete /api/agents/{id}/turns/{n}",
        "get /api/agents/{id}/turns/{n}",
        "get /api/agents/{id}/turns/{n}/images/{k}",
        "get /api/chat",
        "post /api/chat",
        "get /api/chat/{id}/messages",
        "post /api/chat/{id}/stop",
        "get /api/chat/{id}/stream",
        "get /api/nodes",
        "delete /api/nodes/{id}",
        "get /api/questions",
        "get /api/server",
        "delete /api/session",
        "post /api/session",
        "post /api/session/codes",
        "post /api/tickets",
        "get /healthz",
        "post /mcp",
        "get /metrics",
        "post /openai/v1/chat/completions",
        "delete /openai/v1/chat/completions/{id}",
        "get /openai/v1/chat/completions/{id}",
        "get /openai/v1/models",
        "get /openai/v1/models/{id}",
        "post /openai/v1/responses",
        "delete /openai/v1/responses/{id}",
        "get /openai/v1/responses/{id}",
        "post /openai/v1/responses/{id}/cancel",
        "get /openai/v1/responses/{id}/input_items",
        "get /problems/{code}",
        "get /readyz",
        "get /socket.io/",
        "post /socket.io/",
        // The vocabulary that exists only in tests.
        "get /telegraph/{id}",
        "get /ws",
    ];
    for path in paths.keys().filter(|path| !path.starts_with("/telegraph/")) {
        let first = path.split('/').nth(1).unwrap();
        assert!(crate::OWN_PATHS.contains(&first), "OWN_PATHS lacks {first}");
    }
    let (below_v1, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.contains(" /v1/"));
    assert_eq!(calls, expected);
    let expected = [
        "get /v1/agents",
        "post /v1/agents",
        "delete /v1/agents/{id}",
        "get /v1/agents/{id}",
        "patch /v1/agents/{id}",
        "get /v1/agents/{id}/blocks",
        "get /v1/agents/{id}/core-memory/blocks",
        "get /v1/agents/{id}/folders",
        "get /v1/agents/{id}/mcp-servers",
        "get /v1/agents/{id}/messages",
        "post /v1/agents/{id}/messages",
        "post /v1/agents/{id}/messages/async",
        "post /v1/agents/{id}/messages/cancel",
        "post /v1/agents/{id}/messages/stream",
        "get /v1/agents/{id}/repositories",
        "get /v1/agents/{id}/secrets",
        "get /v1/agents/{id}/tools",
        "get /v1/conversations",
        "post /v1/conversations",
        "delete /v1/conversations/{id}",
        "get /v1/conversations/{id}",
        "patch /v1/conversations/{id}",
        "post /v1/conversations/{id}/cancel",
        "get /v1/conversations/{id}/messages",
        "post /v1/conversations/{id}/messages",
        "post /v1/conversations/{id}/stream",
        "get /v1/health",
        "get /v1/models",
        "get /v1/runs",
        "get /v1/runs/{id}",
        "post /v1/runs/{id}/cancel",
        "get /v1/runs/{id}/messages",
        "post /v1/runs/{id}/stream",
        "get /v1/runs/{id}/usage",
        "get /v1/stream/agents/{id}/events",
    ];
    assert_eq!(below_v1, expected);
    let refused = &document["paths"]["/v1/runs/{id}/stream"]["post"]["responses"]["409"]["content"];
    assert_eq!(refused["application/json"]["schema"]["$ref"], "#/components/schemas/LettaProblem");
    let mut ids: Vec<_> = paths
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "each operation has a name of its own: {ids:?}");
    for item in paths.values().flat_map(|item| item.as_object().unwrap().values()) {
        for status in ["400", "401", "403", "415", "421", "429", "431"] {
            let problem = &item["responses"][status]["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(problem, "#/components/schemas/Problem", "{}", item["operationId"]);
        }
    }
    let references = harness.get("/openapi.json").await.text;
    for reference in references.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name} is not described");
    }
}

#[actix_web::test]
async fn the_document_allows_each_path_that_a_ticket_can_have() {
    let harness = Harness::new();
    let document = harness.get("/openapi.json").await.json();
    let path = &document["components"]["schemas"]["TicketRequest"]["properties"]["path"];
    let pattern = path["pattern"].as_str().unwrap();
    let alternatives = pattern.strip_prefix("^(").and_then(|rest| rest.strip_suffix(")$")).unwrap();
    let id = harness.launch_to_end("hi").await;
    let allowed = alternatives.replace("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", &id);
    let paths = ["/ws".to_owned(), "/api/chat".to_owned(), format!("/api/agents/{id}/events")];
    assert_eq!(allowed.split('|').collect::<Vec<_>>(), paths);
    for path in paths {
        let made = harness.post("/api/tickets", &format!(r#"{{"path":"{path}"}}"#)).await;
        assert_eq!(made.status, 201, "{path}");
    }
}
