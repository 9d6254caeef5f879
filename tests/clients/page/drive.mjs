// Drives a browser line by line. Usage: CHROMIUM PROFILE, run in the folder that has playwright-core and axe-core.
// Each line of standard input is a call, `{tab, act, …}`. The response is one line, `{value}` or `{error}`.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

import { acts, newTabs } from "./acts.mjs";
import { driven, openTab } from "./tab.mjs";

const { chromium } = createRequire(`${process.cwd()}/`)("playwright-core");
const [executablePath, profile] = process.argv.slice(2);

// The pages are our own, and a build container is itself a sandbox.
// The address bar of this browser has its own pages, which it would load next to the first page of each tab.
const unseen = "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup";
const args = [unseen, "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args, chromiumSandbox: false, env: { ...process.env, HOME: profile } });
const tabs = [];

async function answer({ tab, act, ...wish }) {
  if (act === "open") return tabs.push(await openTab(browser, wish)) - 1;
  if (act in newTabs) return tabs.push(await driven(await newTabs[act](tabs[tab], wish))) - 1;
  return acts[act](tabs[tab], wish);
}

for await (const line of createInterface({ input: process.stdin })) {
  const told = await answer(JSON.parse(line)).then(
    (value) => ({ value: value ?? null }),
    (error) => ({ error: String(error.message) }),
  );
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
await browser.close();
