// The dev server of a page of another origin. The environment configures it: TARGET, CHANGE_ORIGIN and CLIENTS.
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const { TARGET: target, CLIENTS: clients, CACHE: cacheDir } = process.env;
const proxy = { target, ws: true, changeOrigin: process.env.CHANGE_ORIGIN === "true" };
const ours = fileURLToPath(new URL("../../../crates/web/client/src/index.ts", import.meta.url));

export default {
  clearScreen: false,
  cacheDir,
  // The fetched packages. They are bundled before the first request, so that no reload interrupts a test.
  resolve: {
    alias: {
      "@tokenrail/client": ours,
      ai: join(clients, "ai-7/node_modules/ai"),
      "@letta-ai/letta-client": join(clients, "letta/node_modules/@letta-ai/letta-client"),
    },
  },
  optimizeDeps: { noDiscovery: true, include: ["ai", "@letta-ai/letta-client"] },
  server: {
    fs: { strict: false },
    proxy: {
      "/api": proxy,
      "/v1": proxy,
      "/ws": proxy,
      "/tokenrail": { ...proxy, rewrite: (path) => path.replace(/^\/tokenrail/, "") },
      // Wrong configurations: the path loses a part that it needs, or keeps one that it should lose.
      "/cut": { ...proxy, rewrite: (path) => path.replace(/^\/cut\/api/, "") },
      "/kept": proxy,
    },
  },
};
