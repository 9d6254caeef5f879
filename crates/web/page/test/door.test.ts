import { expect, test } from "vitest";

import { doorOf } from "../src/app/door.ts";
import type { Access } from "../src/app/token.ts";
import { agentIn, isView } from "../src/connection/address.ts";

test("an address names an agent or none", () => {
  expect(agentIn("/agents/0199-ab")).toBe("0199-ab");
  expect(agentIn("/agents/0199-ab/")).toBe("0199-ab");
  for (const path of ["/", "/agents/", "/agents/a/b", "/agents/<x>"]) expect(agentIn(path)).toBeNull();
  expect(["/", "/agents/0199-ab", "/nowhere", "/agents/", "/agents/a/b"].map(isView)).toEqual([true, true, false, false, false]);
});

test("only a refused login closes the door, and the page says which it was", async () => {
  const found = (access: Access, status: number) => doorOf(Promise.resolve(new Response(null, { status })), access);
  expect(await found({ token: "" }, 401)).toBe("asked");
  expect(await found({ token: "old" }, 401)).toBe("wrong");
  expect(await found({ token: "", refused: "token" }, 401)).toBe("wrong");
  expect(await found({ token: "", refused: "code" }, 401)).toBe("spent");
  // A link that was opened before does not end the session that it has started.
  expect(await found({ token: "", refused: "code" }, 200)).toBe("open");
  for (const status of [200, 404, 500]) expect(await found({ token: "" }, status)).toBe("open");
  expect(await doorOf(Promise.reject(new TypeError("no network")), { token: "" })).toBe("open");
});
