//! The table of problem codes. A test checks that `docs/reference/protocol/problems.md` has the same rows.

use actix_web::http::StatusCode;

macro_rules! codes {
    ($($name:ident $word:literal $status:ident $retryable:literal $title:literal $when:literal;)*) => {
        /// A problem code. Codes are stable, so clients may branch on them.
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

            /// When the problem occurs, in sentences for people. Protocol words are in backticks.
            pub(crate) fn when(self) -> &'static str {
                match self { $(Self::$name => $when),* }
            }
        }
    };
}

codes! {
    BadRequest "bad_request" BAD_REQUEST false "The request is malformed"
        "The query or the body is malformed, or a WebSocket handshake has no valid `Sec-WebSocket-Key`.";
    MalformedJson "malformed_json" BAD_REQUEST false "The body cannot be read as JSON"
        "The body is not UTF-8 or not JSON, is nested more than 64 levels deep, or contains a field twice.";
    CursorMalformed "cursor_malformed" BAD_REQUEST false "The cursor is malformed"
        "`since` or `Last-Event-ID` is not a whole number that is 0 or greater; or the `offset` of a Durable Streams request is malformed, or is missing although the request has `live`.";
    Unauthenticated "unauthenticated" UNAUTHORIZED false "A valid token is required"
        "The token is missing or wrong; or the session has expired; or the login code, or the ticket (the short-lived credential in the URL), was already used or has expired; or the ticket was issued for another path. The response does not say which. It has the header `WWW-Authenticate`. Send `Authorization: Bearer TOKEN`; `tokenrail token` prints the token.";
    OriginNotAllowed "origin_not_allowed" FORBIDDEN false "The origin is not allowed"
        "`Origin` is not allowed, or is not the origin that requested the ticket, or `Sec-Fetch-Site` shows that the request comes from another site. To allow an origin, add it to `server.allowed_origins`. With a session cookie, these rules apply as well: the request must come from the server's own origin; a request that changes something needs the headers `Origin` and `Tokenrail-Csrf: 1`; a WebSocket needs an `Origin`.";
    NotFound "not_found" NOT_FOUND false "Not found"
        "There is no such path, agent, turn, message, image, permission request, node, chat, thread or run; or the agent id is malformed.";
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED false "The method is not allowed"
        "The path does not support this method. `Allow` lists the methods it supports.";
    NotAcceptable "not_acceptable" NOT_ACCEPTABLE false "No acceptable content type"
        "`Accept` matches neither `application/json` nor `text/event-stream`; `*/*` and `application/*` match `application/json`. Only `/events` checks it.";
    RequestTimeout "request_timeout" REQUEST_TIMEOUT true "The request took too long"
        "The body did not arrive within `limits.body_timeout_s`. Requests that carry a whole conversation (AI SDK, AG-UI, OpenAI), and messages with images, get proportionally more time if their `Content-Length` is larger than `limits.request_bytes`: a body of three times `limits.request_bytes` gets three times as much time. An imported file must arrive within `limits.import_timeout_s`, and at least 64 KiB of it in every period of `limits.body_timeout_s`.";
    CursorAhead "cursor_ahead" CONFLICT false "The cursor is ahead of the latest event"
        "`since`, `after` or `offset` is greater than the latest sequence number, which is in `head`. Or `starting_after` is greater than the number of the last event of the run or response.";
    AgentDeleted "agent_deleted" CONFLICT false "The agent has been deleted"
        "The agent has been deleted, so it accepts no messages, launches no agents, and cannot be renamed, pinned or archived.";
    AgentReadOnly "agent_read_only" CONFLICT false "The agent is read-only"
        "The agent was imported, or replays the history of another agent (`tokenrail replay`); it accepts no messages.";
    AgentActive "agent_active" CONFLICT true "No turn of the agent has ended yet"
        "An export or replay was requested before the first turn of the agent had ended.";
    NodeAlive "node_alive" CONFLICT true "The node is alive"
        "A node that is alive cannot be removed. Stop the node first.";
    ChangesUnavailable "changes_unavailable" CONFLICT false "Git cannot tell what has changed"
        "One of these is true: the agent's folder is not in a git repository; the commit at the start of a turn is needed for the comparison, but is unknown or no longer in the repository (for example, because the folder was not in a git repository when the turn started, or because the turn has not started); the folder is on another node; the agent is a copy (imported or a replay); git is missing, failed or took too long. `detail` says which. Only a request for the patch fails in this way; a request for the list of changes returns 200, with the cause in the field `reason`.";
    AlreadyResolved "already_resolved" CONFLICT false "The permission request is no longer open"
        "Another answer came first, the permission request timed out or was withdrawn, or its turn has ended. The event `permission_resolved`, if there is one, says how it was resolved.";
    TurnStarted "turn_started" CONFLICT false "The turn is no longer queued"
        "The turn cannot be withdrawn, because it is no longer queued: it is running or has ended. To stop only this turn while it runs, cancel it by its number (`POST /api/agents/{agentId}/cancel?turn=N`).";
    QueueFull "queue_full" CONFLICT true "The turn queue is full"
        "The agent has as many queued turns as `limits.queued_turns` allows. Or clients have withdrawn or cancelled more queued turns during the running turn than this limit allows. Wait until the running turn ends.";
    NewsLagged "news_lagged" CONFLICT true "Lifecycle events were missed"
        "The client missed lifecycle events (`agent:created`, `agent:updated`, `agent:deleted`). The client library calls these events `news`. The problem occurs only over the WebSocket `/ws` and Socket.IO. Reload the list of agents. You missed no events of the agents that you follow.";
    PayloadTooLarge "payload_too_large" PAYLOAD_TOO_LARGE false "The body is too large"
        "One of these is too large: a request that carries a whole conversation (AI SDK, AG-UI, OpenAI; over `limits.chat_bytes`), or the new text in it (over `limits.request_bytes`); an imported file (over `limits.import_bytes`); the body of any other request (over `limits.request_bytes`, not counting the images of a message). A WebSocket message that is too large closes the connection with code 4509.";
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE false "The content type is not supported"
        "The request does not say that its body is JSON. Send the header `Content-Type: application/json`.";
    ContentEncoding "content_encoding_refused" UNSUPPORTED_MEDIA_TYPE false "Encoded bodies are not supported"
        "The request has a `Content-Encoding`. Send the body uncompressed, without this header.";
    HostNotAllowed "host_not_allowed" MISDIRECTED_REQUEST false "The host is not allowed"
        "`Host` is missing, is not an allowed host and port, or differs from the host in the request target. Behind a proxy, set `server.public_url`; otherwise add the host to `server.allowed_hosts`.";
    ValidationFailed "validation_failed" UNPROCESSABLE_ENTITY false "One or more fields are invalid"
        "One or more fields are invalid, and `errors` lists them. Or an agent tried to launch another agent, but `limits.child_depth` does not allow this; `detail` says so.";
    CwdNotAllowed "cwd_not_allowed" UNPROCESSABLE_ENTITY false "The folder is not allowed"
        "Agents of this type are not allowed to work in this folder, the folder does not exist, or the path is not a folder. The response does not say which. Create the folder if it does not exist. To allow it, run `tokenrail allow FOLDER` on the server, or add it to the `cwd_roots` of the agent type. The same code is returned if an agent launches another agent in a folder outside that of the launching agent. In that case, use a folder inside the folder of the launching agent, or leave `cwd` out.";
    ImagesNotAccepted "images_not_accepted" UNPROCESSABLE_ENTITY false "Agents of this type accept no images"
        "The message has images, but agents of this type cannot receive them. `detail` lists the types that can; `GET /api/agent-types` says for each type whether it can (`can.images`).";
    RunnerUnknown "runner_unknown" UNPROCESSABLE_ENTITY false "The agent type is not configured"
        "This agent type is not configured. (The name of this problem code says `runner`, but means the agent type.) `GET /api/agent-types` lists the types.";
    NodeUnknown "node_unknown" UNPROCESSABLE_ENTITY false "The node is unknown or ambiguous"
        "The field `node` of the launch contains a name or id that no node has, or a name that several nodes have. If several nodes have the name, use the id. `GET /api/nodes` lists the nodes.";
    DialectUnknown "dialect_unknown" UNPROCESSABLE_ENTITY false "Unknown dialect"
        "The dialect does not exist or is not supported here; `detail` lists the supported ones. A dialect is a way to write events (`agent`, `message` or `stream`). Over HTTP, `/events` and `/messages` support only the dialect `agent`.";
    IdempotencyMismatch "idempotency_mismatch" UNPROCESSABLE_ENTITY false "The idempotency key was used for another request"
        "The same `Idempotency-Key` (in AG-UI: `runId`; in MCP: `idempotency_key`) was already used for a different request. Use a new one.";
    UpgradeRequired "upgrade_required" UPGRADE_REQUIRED false "A WebSocket is required"
        "A request to `/ws` or `GET /api/chat` lacks the headers `Upgrade` and `Connection` of a WebSocket handshake, or its `Sec-WebSocket-Version` is not 13.";
    RateLimited "rate_limited" TOO_MANY_REQUESTS true "Too many requests"
        "There were more launches per minute than `limits.launches_per_minute` allows, or more failed logins per minute from one client address than `limits.failed_logins_per_minute` allows. A failed login is a request with a wrong token, ticket or login code. `Retry-After` says how long to wait.";
    HeadersTooLarge "headers_too_large" REQUEST_HEADER_FIELDS_TOO_LARGE false "The request headers are too large"
        "The request line and the headers together are larger than `limits.header_bytes`, or there are more than `limits.headers` headers.";
    StoreFailed "store_failed" INTERNAL_SERVER_ERROR false "The database failed"
        "The database cannot be read or written, or it is corrupt. The server log has the cause. Until the cause is fixed, the same request will keep failing.";
    CapacityExhausted "capacity_exhausted" SERVICE_UNAVAILABLE true "The server is at capacity"
        "The server has too many of one of these: queued launches; active agents (starting or running) that one agent has launched; imports in progress; running requests for the changed files or the patch of an agent; large requests that are being received, and images that are being read; unused tickets; Socket.IO clients that have not sent a token; open streams (in total, or from one client address). Or one WebSocket follows too many agents or has too many requests in progress. Or a permission answer cannot be delivered to the agent yet. `detail` says which. `Retry-After` says how long to wait.";
    NodeUnavailable "node_unavailable" SERVICE_UNAVAILABLE true "The node is not available"
        "A launch names a node that is not alive; or, for a message or a permission answer, the agent's node is lost or was removed. You can still read an agent whose node is lost or was removed. It accepts no permission answers, and it accepts messages only if it can move to another node. If the agent's type is not configured on the node that receives the message, that node cannot tell whether the agent can move, so it refuses the message. If `detail` names nodes, send the message to one of them. Otherwise, wait until the agent's node is back, or launch a new agent.";
    ShuttingDown "shutting_down" SERVICE_UNAVAILABLE true "The server is shutting down"
        "The server is stopping. Wait as long as `Retry-After` says, then reconnect with the cursor. An open WebSocket is closed with code 4401.";
    StoreBusy "store_busy" SERVICE_UNAVAILABLE true "The database cannot be used now"
        "The database cannot be used now. Possible causes: it is locked or busy; earlier data of the agent was not saved within `limits.command_timeout_s`; the PostgreSQL server cannot be reached, does not answer, is a former primary, or is not the server that was used before; the other nodes declared this node lost; another server has taken over the agent, or runs on a copy of the data folder. `detail` says more. The request had no effect. `/readyz` also returns this code if the database accepts no writes. `Retry-After` says how long to wait.";
    OutcomeUnknown "outcome_unknown" SERVICE_UNAVAILABLE true "It is unknown whether the request was saved"
        "The server does not know whether it saved the request. Wait as long as `Retry-After` says, then retry with the same `Idempotency-Key`. If the request had no key, first check whether it took effect.";
    StorageFull "storage_full" INSUFFICIENT_STORAGE true "The disk is full"
        "The disk of the data folder or of the database is full. With PostgreSQL, this can be the disk of the database server. Reading still works. After you free up space, the same request succeeds; no restart is needed.";
}
