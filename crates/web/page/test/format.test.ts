import { expect, test } from "vitest";

import { compact, count, dateOf, shortDateOf, timeOf } from "../src/ui/format.ts";

test("numbers are grouped, or shortened", () => {
  expect([0, 7, 999, 1_000, 12_345, 1_234_567].map(count)).toEqual(["0", "7", "999", "1,000", "12,345", "1,234,567"]);
  const numbers = [0, 999, 1_000, 1_049, 12_345, 99_949, 123_456, 999_499, 999_999, 1_500_000, 2_000_000_000];
  const short = ["0", "999", "1K", "1K", "12.3K", "99.9K", "123K", "999K", "1M", "1.5M", "2B"];
  expect(numbers.map(compact)).toEqual(short);
});

test("times are those of the reader", () => {
  const moment = new Date(2026, 10, 2, 4, 3, 7).toISOString();
  expect(timeOf(moment)).toBe("04:03:07");
  expect(shortDateOf(moment)).toBe("2 Nov, 04:03");
  expect(dateOf(moment)).toBe("2 Nov 2026, 04:03:07");
});
