import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { exampleOf } from "./test/examples.js";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** `readme:client` and `readme:server` are the React examples of the two READMEs, as they stand there. */
const readmes = {
  name: "readmes",
  resolveId: (id: string) => (id.startsWith("readme:") ? path(`test/${id.replace(":", "-")}.tsx`) : undefined),
  load(id: string) {
    const name = /readme-(\w+)\.tsx$/.exec(id)?.[1];
    return name && exampleOf(readFileSync(path(name === "client" ? "README.md" : "../../../README.md"), "utf8"));
  },
};

export default defineConfig({
  plugins: [readmes],
  resolve: {
    alias: { "@tokenrail/client/react": path("src/react/index.ts"), "@tokenrail/client": path("src/index.ts") },
  },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
    // A part of its own: it needs the packages of Vite and Next.
    exclude: process.env["TOKENRAIL_TEST_APPS"] === undefined ? ["test/apps.test.ts"] : [],
    // Types are checked by `npm run typecheck`, the type tests with them.
    testTimeout: 30_000,
  },
});
