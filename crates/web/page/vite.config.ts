import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

import { writeSourceHash } from "./source-hash.ts";

// Where `npm run dev` finds a server: it answers only those who call it by its own name.
const server = process.env.TOKENRAIL_URL ?? "http://127.0.0.1:7117";

export default defineConfig({
  plugins: [react(), writeSourceHash()],
  // The client is built from its sources, so that the two never differ.
  resolve: { conditions: ["@tokenrail/source", "module", "browser", "development|production"] },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    // Stable names: the built files are in the repository, and a browser asks for them by ETag.
    rolldownOptions: {
      output: { codeSplitting: false, entryFileNames: "app.js", assetFileNames: "app[extname]" },
    },
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/api": { target: server, changeOrigin: true, headers: { origin: server } },
      "/ws": { target: server, changeOrigin: true, headers: { origin: server }, ws: true },
    },
  },
  test: { environment: "jsdom", include: ["test/**/*.test.{ts,tsx}"], setupFiles: ["test/setup.ts"] },
});
