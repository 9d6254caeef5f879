import { fileURLToPath } from "node:url";

import react from "@vitejs/plugin-react";
import { defaultClientConditions, type Plugin } from "vite";
import { defineConfig } from "vitest/config";

import { writeSourceHash } from "./source-hash.ts";

// The server for `npm run dev`. It only answers requests that name it in `Host`.
const server = process.env.SERVER ?? "http://127.0.0.1:7117";

// All code of these two modules runs at once. With this hint, a browser compiles it in the background, instead of
// function by function while it draws: https://v8.dev/blog/explicit-compile-hints
const compileAll = "//# allFunctionsCalledOnLoad";
const drawing = ["dom", "view"];

const characters = "decode-named-character-reference";

/** A browser requests the view immediately, instead of after it has read the module that imports it. */
const preloadView: Plugin = {
  name: "tokenrail:preload-view",
  apply: "build",
  transformIndexHtml: () =>
    ["/dom.js", "/view.js", "/runtime.js"].map((href) => ({
      tag: "link",
      attrs: { rel: "modulepreload", crossorigin: true, href },
      injectTo: "head",
    })),
};

export default defineConfig({
  plugins: [react(), preloadView, writeSourceHash()],
  resolve: {
    // The client library is built from its sources, so that the page always uses the current version.
    conditions: ["@tokenrail/source", ...defaultClientConditions],
    // The version for browsers decodes `&amp;` by writing HTML, which Trusted Types forbid. This version has a table.
    alias: { [characters]: fileURLToPath(import.meta.resolve(characters)) },
  },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    // The licences of the libraries in the built files. Every package of Tokenrail must contain them.
    license: { fileName: "third-party.md" },
    // The names are stable, because the built files are in the repository, and browsers check them by ETag. `app.js`
    // requests the conversation, `view.js` renders it, and `languages.js` colours its code. React is in a file of its own,
    // `dom.js`. It is as big as all other files together, so a browser parses both at the same time. `runtime.js` loads
    // the others.
    rolldownOptions: {
      output: {
        entryFileNames: "app.js",
        chunkFileNames: ({ name }) => `${name.replace("rolldown-", "")}.js`,
        assetFileNames: "app[extname]",
        postBanner: ({ name }) => (drawing.includes(name) ? compileAll : ""),
        codeSplitting: { groups: [{ name: "dom", test: /node_modules\/(react|react-dom|scheduler)\/|rolldown\/runtime/ }] },
      },
    },
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/api": { target: server, changeOrigin: true, headers: { origin: server } },
      "/ws": { target: server, changeOrigin: true, headers: { origin: server }, ws: true },
    },
  },
  test: {
    environment: "jsdom",
    include: ["test/**/*.test.{ts,tsx}"],
    setupFiles: ["test/setup.ts"],
    // No test takes a second, but the machine may be busy.
    testTimeout: 60_000,
  },
});
