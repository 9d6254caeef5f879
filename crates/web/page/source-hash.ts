import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { Plugin } from "vite";

// The folders and files that the build reads. A test in ../src/tests/built.rs has the same list, and fails if the built
// files are older than these.
const sources = [
  "client/package.json",
  "client/src",
  "package-lock.json",
  "package.json",
  "page/index.html",
  "page/package.json",
  "page/public",
  "page/source-hash.ts",
  "page/src",
  "page/vite.config.ts",
];

/** Writes the hash of the sources to a file beside the built files. */
export function writeSourceHash(): Plugin {
  return {
    name: "tokenrail:source-hash",
    apply: "build",
    writeBundle({ dir = "dist" }) {
      const root = fileURLToPath(new URL("..", import.meta.url));
      writeFileSync(join(dir, ".source-sha256"), `${hashOf(root)}\n`);
    },
  };
}

/** The hash of the output that `sha256sum` would print for all sources, ordered by path. */
function hashOf(root: string): string {
  const files = sources.flatMap((source) => filesOf(root, source)).sort(byBytes);
  return sha256(files.map((file) => `${sha256(readFileSync(join(root, file)))}  ${file}\n`).join(""));
}

function filesOf(root: string, path: string): string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => filesOf(root, `${path}/${name}`));
}

function byBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}
