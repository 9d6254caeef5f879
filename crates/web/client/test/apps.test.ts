// The apps of docs/how-to/vite-and-next.md, built from that page with the real Vite and the real Next, and used with a real
// server. Runs where TOKENRAIL_TEST_APPS names the folder of their packages.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { TEMPLATE } from "./examples.js";
import { RealServer, freePort, hasServer } from "./real-server.js";

const run = promisify(execFile);
const home = fileURLToPath(new URL("..", import.meta.url));
const packages = process.env["TOKENRAIL_TEST_APPS"];
const browser = process.env["TOKENRAIL_TEST_CHROMIUM"];
/** A build of Next takes half a minute on an idle machine. */
const LIMIT_MS = 240_000;

const MAIN = `import { createRoot } from 'react-dom/client'
import App from './App.tsx'

createRoot(document.getElementById('root')!).render(<App />)
`;
const LAYOUT = `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html><body>{children}</body></html>;
}
`;
/** How the template of Next is compiled. */
const NEXT = { ...TEMPLATE, lib: ["DOM", "DOM.Iterable", "ESNext"], allowImportingTsExtensions: false, esModuleInterop: true, plugins: [{ name: "next" }] };

let folder: string;
let server: RealServer;
/** Where the page of Vite is. The server allows its origin. */
let vitePort: number;
/** The block of the page that follows "`NAME`:". */
let recipe: (name: string) => string;
const children: ChildProcess[] = [];

/** An app, with its packages and the packed library. Packages are copied, because builds do not follow links out of it. */
async function app(name: string, files: Record<string, string>): Promise<string> {
  const root = join(folder, name);
  await cp(join(packages ?? "", `app-${name}`, "node_modules"), join(root, "node_modules"), { recursive: true, verbatimSymlinks: true });
  await cp(join(packages ?? "", `app-${name}`, "package.json"), join(root, "package.json"));
  const [tarball = ""] = (await readdir(folder)).filter((file) => file.endsWith(".tgz"));
  const installed = join(root, "node_modules/@tokenrail/client");
  await mkdir(installed, { recursive: true });
  await run("tar", ["-xzf", join(folder, tarball), "-C", installed, "--strip-components=1"]);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return root;
}

/** Starts a server of the app. Resolves when it answers. */
async function started(root: string, script: string, words: string[], port: number): Promise<string> {
  const env = { ...process.env, TOKENRAIL_URL: server.url, TOKENRAIL_TOKEN: server.token, NEXT_TELEMETRY_DISABLED: "1" };
  const child = spawn(process.execPath, [join(root, "node_modules", script), ...words, String(port)], { cwd: root, env, stdio: "ignore" });
  children.push(child);
  const address = `http://127.0.0.1:${port}`;
  await expect.poll(() => fetch(address).then(({ status }) => status, () => 0), { timeout: 60_000 }).toBe(200);
  return address;
}

/** Clicks the button of a page, and waits for the end of the demo's answer. */
async function clicked(address: string, button: string): Promise<void> {
  const driven = await chromium.launch({ executablePath: browser ?? "", args: ["--no-sandbox"] });
  try {
    const page = await driven.newPage();
    await page.goto(address);
    await page.getByRole("button", { name: button }).click();
    await page.getByText("All done.").first().waitFor({ timeout: 60_000 });
    expect(await page.getByRole("alert").filter({ hasText: /\S/ }).count()).toBe(0);
  } finally {
    await driven.close();
  }
}

describe.skipIf(packages === undefined || !hasServer)("the app", { timeout: LIMIT_MS }, () => {
  beforeAll(async () => {
    const page = await readFile(join(home, "../../../docs/how-to/vite-and-next.md"), "utf8");
    recipe = (name) => new RegExp(`\`${name}\`:\\n\\n<!-- [^>]* -->\\n\`\`\`tsx?\\n([^]*?)\`\`\``).exec(page)?.[1] ?? "";
    folder = await mkdtemp(join(tmpdir(), "tokenrail-apps-"));
    await run("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: home });
    vitePort = await freePort();
    server = await RealServer.start(`[server]\nallowed_origins = ["http://127.0.0.1:${vitePort}"]\n`);
  }, LIMIT_MS);
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });
  afterAll(async () => {
    await server.remove();
    await rm(folder, { recursive: true, force: true });
  });

  it("of Vite compiles, builds, and shows an agent", async () => {
    const root = await app("vite", {
      "vite.config.ts": recipe("vite.config.ts"),
      "src/App.tsx": recipe("src/App.tsx"),
      "src/main.tsx": MAIN,
      "index.html": `<div id="root"></div><script type="module" src="/src/main.tsx"></script>`,
      "tsconfig.json": JSON.stringify({ compilerOptions: TEMPLATE, include: ["src"] }),
      "tsconfig.node.json": JSON.stringify({ compilerOptions: { ...TEMPLATE, types: ["node"] }, files: ["vite.config.ts"] }),
    });
    for (const project of ["tsconfig.json", "tsconfig.node.json"]) {
      const { stdout } = await run(join(root, "node_modules/.bin/tsc"), ["-p", join(root, project)]).catch((error: { stdout: string }) => error);
      expect(stdout).toBe("");
    }
    await run(process.execPath, ["node_modules/vite/bin/vite.js", "build", "--logLevel", "error"], { cwd: root });
    if (browser === undefined) return;
    await clicked(await started(root, "vite/bin/vite.js", ["--host", "127.0.0.1", "--strictPort", "--port"], vitePort), "Launch");
  });

  it("of Next compiles, builds, and streams an answer", async () => {
    const root = await app("next", {
      "app/answer/route.ts": recipe("app/answer/route.ts"),
      "app/page.tsx": recipe("app/page.tsx"),
      "app/layout.tsx": LAYOUT,
      "tsconfig.json": JSON.stringify({ compilerOptions: NEXT, include: ["next-env.d.ts", "app"] }),
    });
    const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };
    await run(process.execPath, ["node_modules/next/dist/bin/next", "build"], { cwd: root, env });
    const address = await started(root, "next/dist/bin/next", ["start", "--hostname", "127.0.0.1", "--port"], await freePort());
    const answer = await fetch(`${address}/answer`, { method: "POST", body: "Show me what you can do" });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("All done.")]);
    if (browser !== undefined) await clicked(address, "Ask");
  });
});
