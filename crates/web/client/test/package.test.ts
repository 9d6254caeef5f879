// The package as others get it: packed, unpacked where no source is, and used by programs that are not ours. In a browser
// where TOKENRAIL_TEST_CHROMIUM names one.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Agent, TokenrailClient, messagesOf, textOf } from "../src/index.js";
import { applyEvents, emptyTranscript } from "../src/transcript/index.js";
import { TEMPLATE, exampleOf } from "./examples.js";
import { RealServer, hasServer } from "./real-server.js";

const run = promisify(execFile);
const home = fileURLToPath(new URL("..", import.meta.url));
const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));
const browser = process.env["TOKENRAIL_TEST_CHROMIUM"];
/** What the test answers itself comes from no address, so the browser would keep it from the server on this machine. */
const FLAGS = ["--no-sandbox", "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"];

/** What the template begins with, but for its style sheet. */
const MAIN = `import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import App from './App.tsx'

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
`;

/** As Node 20 is by default: it has no WebSocket, so the client reads event streams. */
const WITHOUT = ["--no-experimental-websocket"];
const oldNode = process.env["TOKENRAIL_TEST_NODE_20"];
const runtimes: [string, string[]][] = [
  ["Node", [process.execPath]],
  ["Node without a WebSocket", [process.execPath, ...WITHOUT]],
  ...(oldNode === undefined ? [] : [["the oldest Node", [oldNode]] as [string, string[]]]),
];

/** Other tests may keep the machine busy. */
const LIMIT_MS = 120_000;

/** Where a program of somebody else's is. */
let folder: string;
let installed: string;
let manifest: { exports: Record<string, string | Record<string, string>>; engines: { node: string } };

/** All files below a folder, by their paths in it. */
async function filesOf(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tokenrail-consumer-"));
  installed = join(folder, "node_modules/@tokenrail/client");
  await run("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: home });
  const [tarball = ""] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
  await mkdir(installed, { recursive: true });
  await run("tar", ["-xzf", join(folder, tarball), "-C", installed, "--strip-components=1"]);
  manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  for (const name of ["react", "react-dom", "ws", "@types/react", "@types/react-dom"]) {
    await mkdir(dirname(join(folder, "node_modules", name)), { recursive: true });
    await symlink(join(modules, name), join(folder, "node_modules", name));
  }
  await cp(join(home, "test/consumer"), folder, { recursive: true });
  await cp(join(home, "examples/follow.mjs"), join(folder, "follow.mjs"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
}, LIMIT_MS);
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the package", { timeout: LIMIT_MS }, () => {
  it("has what it exports, what is built, its sources, and nothing else", async () => {
    const files = await filesOf(installed);
    const others = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "examples/follow.mjs", "package.json"];
    expect(files.filter((name) => !/^(dist|src)\//.test(name)).toSorted()).toEqual(others);
    const named = Object.values(manifest.exports).flatMap((each) => (typeof each === "string" ? each : Object.values(each)));
    expect(files).toEqual(expect.arrayContaining(named.map((path) => path.replace("./", ""))));
    // What is built is what is there: nothing is left of a source that has gone.
    const sources = await filesOf(join(home, "src"));
    expect(files.filter((name) => name.startsWith("src/")).toSorted()).toEqual(sources.map((name) => `src/${name}`).toSorted());
    const built = sources.map((name) => name.replace(/\.ts$/, "")).flatMap((name) => [".js", ".js.map", ".d.ts", ".d.ts.map"].map((end) => `dist/${name}${end}`));
    expect(files.filter((name) => name.startsWith("dist/")).toSorted()).toEqual(built.toSorted());
  });

  it("says what it is, under which licences, and what it needs", async () => {
    const cargo = await readFile(join(home, "../../../Cargo.toml"), "utf8");
    const said = (name: string) => new RegExp(`^${name} = "(.*)"$`, "m").exec(cargo)?.[1];
    expect(manifest).toMatchObject({ name: "@tokenrail/client", version: said("version"), license: said("license"), type: "module" });
    expect(manifest).not.toHaveProperty("dependencies");
    expect(manifest.engines.node).toBe(">=20.3");
    for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) {
      expect(await readFile(join(installed, name), "utf8")).toBe(await readFile(join(home, "../../..", name), "utf8"));
    }
  });

  it("has maps by which a debugger and an editor find the sources", async () => {
    const files = await filesOf(installed);
    for (const name of files.filter((each) => each.endsWith(".map"))) {
      const { sources } = JSON.parse(await readFile(join(installed, name), "utf8")) as { sources: string[] };
      expect(sources.map((source) => join(dirname(name), source)).every((source) => files.includes(source))).toBe(true);
    }
  });

  it.each(["NodeNext", "Bundler"])("has types for a consumer whose modules are resolved as by %s", async (moduleResolution) => {
    const module = moduleResolution === "Bundler" ? "ESNext" : moduleResolution;
    const compilerOptions = { module, moduleResolution, target: "ES2022", lib: ["ES2022", "DOM"], strict: true, types: [], noEmit: true, skipLibCheck: false };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["types.ts"] }));
    const { stdout } = await run(join(modules, ".bin/tsc"), ["-p", folder]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  });

  it("has a README whose links lead to what is in the package, or on the web", async () => {
    const readme = await readFile(join(installed, "README.md"), "utf8");
    const targets = [...readme.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
    expect(targets).not.toEqual([]);
    const files = await filesOf(installed);
    const isAlive = (target: string) => /^https?:\/\//.test(target) || files.includes(target.split("#")[0] ?? "");
    expect(targets.filter((target) => !isAlive(target))).toEqual([]);
    // What is named as a file of the built package is there, too.
    for (const [named] of readme.matchAll(/dist\/[\w/.-]+\.d\.ts/g)) expect(files).toContain(named);
  });

  it.each([
    ["client", "README.md"],
    ["server", "../../../README.md"],
  ])("has an example in the README of the %s that a fresh app of Vite's template compiles", async (name, readme) => {
    const app = join(folder, `app-${name}`);
    await mkdir(join(app, "src"), { recursive: true });
    await writeFile(join(app, "src/App.tsx"), exampleOf(await readFile(join(home, readme), "utf8")));
    await writeFile(join(app, "src/main.tsx"), MAIN);
    await writeFile(join(app, "tsconfig.json"), JSON.stringify({ compilerOptions: TEMPLATE, include: ["src"] }));
    const { stdout } = await run(join(modules, ".bin/tsc"), ["-p", app]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  });

  it("is imported by a plain Node program", async () => {
    const { stdout } = await run(process.execPath, ["names.mjs"], { cwd: folder });
    const { core, react, from } = JSON.parse(stdout) as { core: string[]; react: string[]; from: string };
    expect(from).toMatch(/\/node_modules\/@tokenrail\/client\/dist\/index\.js$/);
    expect(core).toEqual(expect.arrayContaining(["TokenrailClient", "TokenrailError", "createClient", "messagesOf", "reduceMessages"]));
    expect(react).toEqual(expect.arrayContaining(["TokenrailProvider", "useAgentMessages", "useAgents"]));
  });
});

describe.skipIf(!hasServer)("the package, with a real server,", { timeout: LIMIT_MS }, () => {
  let server: RealServer;
  let client: TokenrailClient;

  beforeAll(async () => {
    server = await RealServer.start();
    client = new TokenrailClient({ baseUrl: server.url, token: server.token, WebSocket });
  });
  afterAll(async () => {
    client.close();
    await server.remove();
  });

  const demo = () => client.launch({ type: "demo", prompt: "Show me what Tokenrail does." });

  async function textsOf(agent: Agent): Promise<string[]> {
    for await (const _ of client.follow(agent.id, { untilEnded: true }));
    return messagesOf(applyEvents(emptyTranscript, await client.messages(agent.id))).map(textOf);
  }

  /** The example, and the end of it. `node` is a program and its options. */
  function example([node = process.execPath, ...options]: string[] = []): { child: ChildProcess; ended: Promise<{ code: number | null; said: string; states: string[] }> } {
    const env = { PATH: process.env["PATH"], TOKENRAIL_URL: server.url, TOKENRAIL_TOKEN: server.token };
    const child = spawn(node, [...options, "follow.mjs"], { cwd: folder, env });
    let [said, told] = ["", ""];
    child.stdout.on("data", (text) => (said += text));
    child.stderr.on("data", (text) => (told += text));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { child, ended: ended.then((code) => ({ code, said, states: told.trim().split("\n") })) };
  }

  it(`runs its example in ${runtimes.map(([name]) => name).join(", ")}`, async () => {
    const all = await Promise.all(runtimes.map(([, node]) => example(node).ended));
    for (const { code, said, states } of all) {
      expect(states).toEqual(expect.arrayContaining(["[connecting]", "[open]"]));
      expect(said).toMatch(/All done\.[^]*completed in \d+ ms\n$/);
      expect(code).toBe(0);
    }
  });

  // The first has a WebSocket, and the last has none.
  it.each([runtimes[0], runtimes.at(-1)] as typeof runtimes)("keeps a program in %s alive while the server is away", async (_, node) => {
    const { child, ended } = example(node);
    child.stdout?.once("data", () => void server.kill());
    // The second one: by then a pause is over in which nothing but the library was waiting.
    let waits = 0;
    child.stderr?.on("data", (text: Buffer) => {
      waits += text.toString().split("[waiting]").length - 1;
      if (waits >= 2) void (restarted ??= server.restart());
    });
    let restarted: Promise<void> | undefined;
    const { code, said } = await ended;
    await restarted;
    expect(waits).toBeGreaterThanOrEqual(2);
    expect(said).toMatch(/All done\.[^]*completed in \d+ ms\n$/);
    expect(code).toBe(0);
  });

  it("follows in a thread, with the package ws", async () => {
    const agent = await demo();
    const { stdout } = await run(process.execPath, [...WITHOUT, "thread.mjs", server.url, server.token, agent.id], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual(await textsOf(agent));
  });

  it.skipIf(browser === undefined)("follows in a worker of a browser", async () => {
    const agent = await demo();
    const driven = await chromium.launch({ executablePath: browser ?? "", args: FLAGS });
    try {
      expect(await inWorker(driven, server, agent)).toEqual(await textsOf(agent));
    } finally {
      await driven.close();
    }
  });
});

/** What a worker of a page hears of an agent. The page, the worker and the library are of the server's own origin. */
async function inWorker(driven: Browser, { url, token }: RealServer, agent: Agent): Promise<unknown> {
  const script = `
    import { TokenrailClient, messagesOf, reduceMessages, textOf } from "/client/index.js";
    const client = new TokenrailClient({ token: ${JSON.stringify(token)} });
    let state;
    for await (const event of client.follow(${JSON.stringify(agent.id)}, { untilEnded: true })) state = reduceMessages(state, event);
    postMessage(messagesOf(state).map(textOf));`;
  const context = await driven.newContext();
  await context.route(`${url}/worker.js`, (route) => route.fulfill({ contentType: "text/javascript", body: script }));
  await context.route(`${url}/client/**`, (route) => {
    const path = new URL(route.request().url()).pathname.replace("/client/", "");
    return route.fulfill({ contentType: "text/javascript", path: join(installed, "dist", path) });
  });
  // A page without the policy of the server's own.
  await context.route(`${url}/page.html`, (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html>" }));
  const page = await context.newPage();
  await page.goto(`${url}/page.html`);
  return page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        const worker = new Worker("/worker.js", { type: "module" });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => reject(new Error(message));
      }),
  );
}
