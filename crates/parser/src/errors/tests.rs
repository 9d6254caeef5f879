//! The class of every error text that was recorded or that a program is known to print.

use tokenrail_domain::ErrorClass::{
    self, Authentication, InvalidRequest, Network, Overloaded, RateLimit, Timeout, Unknown,
};

use super::told;

const RECORDED: [(&str, ErrorClass); 56] = [
    // Claude Code.
    (
        "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.",
        Overloaded,
    ),
    (
        r#"API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
        Overloaded,
    ),
    ("API Error: 500 Internal server error. This is a server-side issue, usually temporary", Overloaded),
    ("API Error: 502 Bad Gateway. This is a server-side issue, usually temporary", Overloaded),
    ("API Error: 502 <html><head><title>502 Bad Gateway</title></head></html>", Overloaded),
    ("API Error: Request rejected (429) · You have hit your usage limit.", RateLimit),
    (r#"API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#, RateLimit),
    (r#"API Error: 413 {"type":"error","error":{"type":"request_too_large","message":"m"}}"#, InvalidRequest),
    (r#"API Error: 404 {"type":"error","error":{"type":"not_found_error","message":"m"}}"#, InvalidRequest),
    (r#"API Error: 403 {"type":"error","error":{"type":"permission_error","message":"m"}}"#, Authentication),
    ("API Error: 400 messages.0.content: Input should be a valid list", InvalidRequest),
    ("API Error: Claude's response exceeded the 32000 output token maximum.", InvalidRequest),
    (
        "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy",
        InvalidRequest,
    ),
    ("API Error: Opus 5.5's safeguards flagged this message", InvalidRequest),
    ("API Error: Unable to connect to API (ECONNRESET)", Network),
    ("API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)", Network),
    ("API Error: Connection error.", Network),
    ("API Error: Connection dropped (ECONNRESET).", Network),
    ("Request timed out", Timeout),
    ("Request timed out. If the API is slow to answer, or a proxy or gateway holds responses", Timeout),
    ("Request too large (max 32MB).", InvalidRequest),
    ("Prompt is too long", InvalidRequest),
    ("Credit balance is too low", InvalidRequest),
    ("Invalid API key · Please run /login", Authentication),
    ("Invalid API key · Fix external API key", Authentication),
    ("There's an issue with the selected model (m). It may not exist", InvalidRequest),
    ("Error: --resume requires a valid session ID", InvalidRequest),
    ("No conversation found with session ID: 1", InvalidRequest),
    // Codex.
    ("exceeded retry limit, last status: 429 Too Many Requests", RateLimit),
    ("exceeded retry limit, last status: 429 Too Many Requests, request id: 1", RateLimit),
    ("Rate limit reached. Please try again in 11s.", RateLimit),
    ("We’re currently experiencing high demand, which may cause temporary errors.", Overloaded),
    (
        "unexpected status 404 Not Found: model: no-such-model, url: http://127.0.0.1/v1/responses",
        InvalidRequest,
    ),
    ("unexpected status 403 Forbidden: Your API key does not have permission", Authentication),
    ("unexpected status 401 Unauthorized: invalid x-api-key", Authentication),
    ("stream disconnected before completion: idle timeout waiting for SSE", Timeout),
    ("stream disconnected before completion: stream closed before response.completed", Network),
    (
        "stream disconnected before completion: Transport error: network error: error decoding response body",
        Network,
    ),
    (
        "Reconnecting... 1/2 (unexpected status 404 Not Found: model: m, url: http://127.0.0.1)",
        InvalidRequest,
    ),
    // Gemini CLI.
    ("[API Error: Unterminated string in JSON at position 65]", Network),
    ("[API Error: This request would exceed the rate limit for your organization.]", RateLimit),
    ("The model returned an empty response with no text or thoughts.", Network),
    ("Attempt 1 failed with status 502. Retrying with backoff... _ApiError: {", Overloaded),
    (r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m"}}"#, RateLimit),
    // opencode.
    ("Connection reset by server", Network),
    ("<html><head><title>502 Bad Gateway</title></head></html>", Overloaded),
    // Agents that use ACP.
    ("Internal error: This request would exceed the rate limit for your organization.", RateLimit),
    ("Internal error: invalid x-api-key", Authentication),
    ("Internal error: messages.0.content: Input should be a valid list", InvalidRequest),
    ("Internal error: No previous sessions found for this project.", InvalidRequest),
    ("Internal error: API Error: 400 messages.0.content: Input should be a valid list", InvalidRequest),
    ("Internal error: OpenCode service failure", Unknown),
    // Model APIs.
    ("Your input exceeds the context window", InvalidRequest),
    ("Engine is overloaded", Overloaded),
    ("an error was encountered while running the model", Unknown),
    ("Internal server error", Overloaded),
];

const KNOWN: [(&str, ErrorClass); 33] = [
    ("last status: 503 Service Unavailable", Overloaded),
    ("last status: 401 Unauthorized", Authentication),
    ("last status: 504 Gateway Timeout", Timeout),
    ("Status: 429", RateLimit),
    ("status=429", RateLimit),
    ("Request failed with status code 529", Overloaded),
    ("status code: 400", InvalidRequest),
    ("429 status code (no body)", RateLimit),
    ("Error code: 429 - m", RateLimit),
    ("HTTP 503", Overloaded),
    ("HTTP/1.1 502 Bad Gateway", Overloaded),
    ("request failed: HTTP/2 429", RateLimit),
    ("HTTP/2.0 503", Overloaded),
    ("HTTP/3 401", Authentication),
    ("request failed: status_code=429", RateLimit),
    ("request failed: statusCode: 429", RateLimit),
    (r#"request failed with "statusCode":429"#, RateLimit),
    ("[429 Too Many Requests] m", RateLimit),
    ("Too Many Requests", RateLimit),
    ("Request rejected (503)", Overloaded),
    ("API Error (401 m)", Authentication),
    ("503 Service Unavailable", Overloaded),
    ("error sending request for url (http://127.0.0.1:1/)", Network),
    ("getaddrinfo EAI_AGAIN api.example.com", Network),
    ("socket hang up", Network),
    ("read ECONNRESET", Network),
    // One status, then another one after a retry.
    ("status: 0, then status: 429", RateLimit),
    // Numbers that are not an HTTP status.
    ("exit status: 101", Unknown),
    ("exit status 1", Unknown),
    ("status: 4290", Unknown),
    ("status: +42", Unknown),
    ("status: 4２9", Unknown),
    ("http://429.example.com/", Unknown),
];

#[test]
fn each_wording_has_its_class() {
    for (text, class) in RECORDED.into_iter().chain(KNOWN) {
        let error = told(text);
        assert_eq!((error.class, error.recoverable), (class, class.is_recoverable()), "{text}");
    }
    for class in [RateLimit, Overloaded, Network, Timeout] {
        assert!(class.is_recoverable(), "{class:?}");
    }
}
