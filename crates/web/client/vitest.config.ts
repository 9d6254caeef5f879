import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
    // Types are checked by `npm run typecheck`, the type tests with them.
    testTimeout: 30_000,
  },
});
