// Several components that show the same data share one store. A store stays for a moment after the last component has
// unmounted, so that a component that mounts again finds it unchanged. StrictMode mounts every component twice.
import type { Client } from "../api.js";
import { after } from "../timers.js";

const LINGER_MS = 2_000;

export interface Startable {
  start(): void;
  stop(): void;
}

export interface Shared<T> {
  readonly value: T;
  /** Starts the store, and keeps it running until the returned function is called. */
  use(): () => void;
}

export class SharedStores<T extends Startable> {
  readonly #clients = new WeakMap<Client, Map<string, Shared<T>>>();
  readonly #make: (client: Client, key: string) => T;

  constructor(make: (client: Client, key: string) => T) {
    this.#make = make;
  }

  /** Returns the store without starting it: a discarded render must not leave anything running. */
  get(client: Client, key: string): Shared<T> {
    let stores = this.#clients.get(client);
    if (!stores) this.#clients.set(client, (stores = new Map()));
    const known = stores.get(key);
    if (known) return known;
    const shared = new Counted(this.#make(client, key), (kept) => {
      if (kept) stores.set(key, shared);
      else if (stores.get(key) === shared) stores.delete(key);
    });
    stores.set(key, shared);
    return shared;
  }
}

class Counted<T extends Startable> implements Shared<T> {
  readonly value: T;
  readonly #keep: (kept: boolean) => void;
  #uses = 0;
  #cancelStop: () => void;

  constructor(value: T, keep: (kept: boolean) => void) {
    this.value = value;
    this.#keep = keep;
    this.#cancelStop = () => {};
    this.#linger();
  }

  use(): () => void {
    this.#uses += 1;
    this.#cancelStop();
    this.#keep(true);
    this.value.start();
    let used = true;
    return () => {
      if (!used) return;
      used = false;
      this.#uses -= 1;
      if (this.#uses === 0) this.#linger();
    };
  }

  #linger(): void {
    this.#cancelStop();
    this.#cancelStop = after(LINGER_MS, () => {
      this.value.stop();
      this.#keep(false);
    });
  }
}
