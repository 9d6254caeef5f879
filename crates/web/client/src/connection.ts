// The state of a client's connections, as a program sees it.
import type { TokenrailError } from "./errors.js";
import type { Hub } from "./hub.js";
import type { ConnectionSnapshot, ConnectionState } from "./socket.js";

export interface Connection {
  readonly state: ConnectionState;
  /** In the state `waiting`: the length of the current pause, in milliseconds. */
  readonly retryInMs: number | undefined;
  /** Why the connection was lost, or cannot be made. */
  readonly error: TokenrailError | undefined;
  /** The whole state. Returns the same object until the state changes. */
  snapshot(): ConnectionSnapshot;
  subscribe(listener: () => void): () => void;
  /**
   * Retry immediately instead of waiting. Has no effect in the state `closed`; the next `follow` or `watch` connects
   * again.
   */
  retryNow(): void;
}

export class SharedConnection implements Connection {
  readonly #hub: Hub;

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  get state(): ConnectionState {
    return this.snapshot().state;
  }
  get retryInMs(): number | undefined {
    return this.snapshot().retryInMs;
  }
  get error(): TokenrailError | undefined {
    return this.snapshot().error;
  }

  snapshot = (): ConnectionSnapshot => this.#hub.snapshot();
  subscribe = (listener: () => void): (() => void) => this.#hub.subscribe(listener);
  retryNow = (): void => this.#hub.wake();
}
