export * from "./client.js";
export { TokenrailError, type ErrorCode } from "./errors.js";
export type { AgentEvent, AgentNews } from "./frames.js";
export type * from "./generated/wire.js";
export { hasEnded } from "./hub.js";
export type { ConnectionSnapshot, ConnectionState, WebSocketConstructor, WebSocketLike } from "./socket.js";
export type { BackoffOptions } from "./backoff.js";
export type { Token } from "./rest.js";
export * from "./transcript/index.js";
