//! The table of problem codes. `docs/PROTOCOL.md` has the same rows, which a test compares.

use actix_web::http::StatusCode;

macro_rules! codes {
    ($($name:ident $word:literal $status:ident $retryable:literal $title:literal $when:literal;)*) => {
        /// A problem's code: stable words that clients may branch on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Code { $($name),* }

        impl Code {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status),* }
            }

            /// Whether the same request may succeed later.
            pub(crate) fn retryable(self) -> bool {
                match self { $(Self::$name => $retryable),* }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }

            /// When it is told: sentences for people, with words of the protocol in backticks.
            pub(crate) fn when(self) -> &'static str {
                match self { $(Self::$name => $when),* }
            }
        }
    };
}

codes! {
    BadRequest "bad_request" BAD_REQUEST false "The request cannot be understood"
        "The query, the body or the WebSocket handshake cannot be read.";
    MalformedJson "malformed_json" BAD_REQUEST false "The body is not JSON"
        "Not UTF-8, not JSON, nested more than 64 deep, or a field stands twice.";
    CursorMalformed "cursor_malformed" BAD_REQUEST false "The cursor is not a number"
        "`since` or `Last-Event-ID` is not a whole number, 0 or more.";
    Unauthenticated "unauthenticated" UNAUTHORIZED false "A valid token is needed"
        "The token is missing or wrong, or the ticket is used up, too old or for another path: which, is not told. With `WWW-Authenticate`.";
    OriginNotAllowed "origin_not_allowed" FORBIDDEN false "The origin is not allowed"
        "`Origin` is not allowed, or is not the one to which the ticket was given; or `Sec-Fetch-Site` says that another site asks.";
    NotFound "not_found" NOT_FOUND false "There is no such thing"
        "Nothing is at this address; or the id of the agent is unknown or no id; or it has no such turn, or has asked no such question.";
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED false "The method is not allowed here"
        "With `Allow`.";
    NotAcceptable "not_acceptable" NOT_ACCEPTABLE false "No acceptable content type"
        "`Accept` names neither `application/json` nor `text/event-stream`: of `/events`, the one resource that has several forms. Elsewhere `Accept` is not looked at.";
    RequestTimeout "request_timeout" REQUEST_TIMEOUT true "The request took too long"
        "The body did not come within `limits.body_timeout_s` (a chat's: within that for each `limits.request_bytes` of it); or an imported file did not come within `limits.import_timeout_s`, or not steadily.";
    CursorAhead "cursor_ahead" CONFLICT false "The cursor is ahead of the newest event"
        "With `head`: the newest event.";
    AgentDeleted "agent_deleted" CONFLICT false "The agent has been deleted"
        "A message to a deleted agent.";
    AgentReadOnly "agent_read_only" CONFLICT false "The agent is a copy"
        "A message to an agent whose history was imported or is replayed.";
    AgentActive "agent_active" CONFLICT true "No turn of the agent has ended"
        "An export or a replay of an agent none of whose turns has ended.";
    AlreadyResolved "already_resolved" CONFLICT false "The question is not open any more"
        "Another answer came first, nobody answered in time, or the turn of the question has ended. The event `permission_resolved` tells which.";
    QueueFull "queue_full" CONFLICT true "Too many turns wait"
        "As many turns of this agent wait as may (`limits.queued_turns`).";
    PayloadTooLarge "payload_too_large" PAYLOAD_TOO_LARGE false "The body is too large"
        "The body is larger than `limits.request_bytes`, a request of a chat than `limits.chat_bytes`, or an imported file than `limits.import_bytes`. On a WebSocket: close code 4509.";
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE false "The content type is not supported"
        "A body must be `application/json`.";
    NewsLagged "news_lagged" CONFLICT true "News were missed"
        "WebSocket only: news of all agents were missed; load the list of agents again. Followed agents miss nothing.";
    ContentEncoding "content_encoding_refused" UNSUPPORTED_MEDIA_TYPE false "Encoded bodies are not taken"
        "A request must not have `Content-Encoding`.";
    HostNotAllowed "host_not_allowed" MISDIRECTED_REQUEST false "The host is not allowed"
        "`Host` is not an allowed authority with its port, or an HTTP/1.0 request has none; or the target of the request names another one.";
    ValidationFailed "validation_failed" UNPROCESSABLE_ENTITY false "The request is not valid"
        "With `errors`: what is wrong, and where.";
    CwdNotAllowed "cwd_not_allowed" UNPROCESSABLE_ENTITY false "The working directory is not allowed"
        "The folder is outside the allowed roots, missing, or no folder: which, is not told.";
    RunnerUnknown "runner_unknown" UNPROCESSABLE_ENTITY false "The agent type is not configured"
        "See `GET /api/agent-types`.";
    DialectUnknown "dialect_unknown" UNPROCESSABLE_ENTITY false "The dialect is not known"
        "`detail` names it and lists those that are known. Over HTTP, `/events` and `/messages` know `agent` alone.";
    IdempotencyMismatch "idempotency_mismatch" UNPROCESSABLE_ENTITY false "The idempotency key was used for something else"
        "The same `Idempotency-Key` came with another body.";
    UpgradeRequired "upgrade_required" UPGRADE_REQUIRED false "This is a WebSocket"
        "`/ws` and `GET /api/chat` are WebSockets, version 13.";
    RateLimited "rate_limited" TOO_MANY_REQUESTS true "Too many requests"
        "More launches than `limits.launches_per_minute`, or more failed logins of one peer than `limits.failed_logins_per_minute`. With `Retry-After`.";
    HeadersTooLarge "headers_too_large" REQUEST_HEADER_FIELDS_TOO_LARGE false "The head of the request is too large"
        "The head of the request has more than `limits.header_bytes`, or more headers than `limits.headers`.";
    StoreFailed "store_failed" INTERNAL_SERVER_ERROR false "The store has failed"
        "The store cannot be used, or holds what makes no sense. The cause is in the log.";
    CapacityExhausted "capacity_exhausted" SERVICE_UNAVAILABLE true "The server is at its capacity"
        "Too many launches wait, too many files are being imported, too many large chats are being received, too many streams are open (of all, or of one peer), too many tickets wait, one WebSocket follows too many agents or has too many requests, or an answer to a question cannot be handed on now: too many are on their way, or a server that has just started has not found the agent again. With `Retry-After`.";
    ShuttingDown "shutting_down" SERVICE_UNAVAILABLE true "The server is shutting down"
        "Come again, with the cursor. With `Retry-After`. On a WebSocket: close code 4401.";
    StoreBusy "store_busy" SERVICE_UNAVAILABLE true "The store is busy"
        "With `Retry-After`.";
    OutcomeUnknown "outcome_unknown" SERVICE_UNAVAILABLE true "It is not known whether this was saved"
        "Send it again with the same `Idempotency-Key`. With `Retry-After`.";
    StorageFull "storage_full" INSUFFICIENT_STORAGE true "The disk is full"
        "The disk of the server is full.";
}
