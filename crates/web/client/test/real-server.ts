// A server of one's own: the real program, with a data folder that goes with it.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env["TOKENRAIL_TEST_SERVER"];
export const hasServer = program !== undefined;

export class RealServer {
  token = "";
  #child: ChildProcess | undefined;
  readonly #folder: string;
  readonly #port: number;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  /** `config` is the text of its configuration file. */
  static async start(config = ""): Promise<RealServer> {
    const server = new RealServer(await mkdtemp(join(tmpdir(), "tokenrail-client-")), await freePort());
    await writeFile(join(server.#folder, "tokenrail.toml"), config);
    await server.restart();
    server.token = (await readFile(join(server.#folder, "token"), "utf8")).trim();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async restart(): Promise<void> {
    const options = ["--config", join(this.#folder, "tokenrail.toml"), "--data-dir", this.#folder, "--listen", `127.0.0.1:${this.#port}`];
    const child = spawn(program ?? "", ["serve", ...options], { stdio: ["ignore", "pipe", "ignore"] });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.stdout?.once("data", () => resolve());
      child.once("exit", (code) => reject(new Error(`the server has ended with ${code}`)));
    });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  async remove(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const address = listener.address();
      listener.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
