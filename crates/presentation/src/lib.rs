//! HTTP in and out: REST, SSE, WebSocket, and the guards before them.
