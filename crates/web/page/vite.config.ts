import { fileURLToPath } from "node:url";

import react from "@vitejs/plugin-react";
import { defaultClientConditions, type Plugin } from "vite";
import { defineConfig } from "vitest/config";

import { writeSourceHash } from "./source-hash.ts";

// Where `npm run dev` finds a server: it answers only those who call it by its own name.
const server = process.env.TOKENRAIL_URL ?? "http://127.0.0.1:7117";

// What both of them have runs at once, so a browser that knows this hint compiles it beside what else it does, and not
// function by function while it draws: https://v8.dev/blog/explicit-compile-hints
const compileAll = "//# allFunctionsCalledOnLoad";
const drawing = ["dom", "view"];

const characters = "decode-named-character-reference";

/** A browser asks for the view at once, and not only when it has read what needs it. */
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
    // The client is built from its sources, so that the two never differ.
    conditions: ["@tokenrail/source", ...defaultClientConditions],
    // Its edition for browsers decodes `&amp;` by writing HTML, which Trusted Types forbid; this one has a table.
    alias: { [characters]: fileURLToPath(import.meta.resolve(characters)) },
  },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    // Stable names: the built files are in the repository, and a browser asks for them by ETag. `app.js` is what asks for
    // the conversation, `view.js` what draws it, and `languages.js` what colours its code. React is by itself in `dom.js`,
    // as big as all the rest: a browser parses the two at the same time. `runtime.js` is what joins them.
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
    // None takes a second, but the machine may have other things to do.
    testTimeout: 60_000,
  },
});
