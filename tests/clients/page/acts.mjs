// What a user does in a tab, and what the user sees there.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

import { readRows } from "./rows.mjs";

const axe = createRequire(`${process.cwd()}/`).resolve("axe-core/axe.min.js");

/** Far longer than any step takes. */
const patienceMs = 50_000;

export const acts = {
  visit: ({ page }, { url }) => page.goto(url).then(() => undefined),
  reload: ({ page }) => page.reload().then(() => undefined),
  address: ({ page }) => page.url(),
  click: ({ page }, { on }) => page.locator(on).first().click({ timeout: patienceMs }),
  fill: ({ page }, { on, text }) => page.locator(on).fill(text, { timeout: patienceMs }),
  choose: ({ page }, { on, value }) => page.locator(on).selectOption(value, { timeout: patienceMs }).then(() => undefined),
  press: ({ page }, { key }) => page.keyboard.press(key),
  type: ({ page }, { text }) => page.keyboard.type(text),
  evaluate: ({ page }, { script }) => page.evaluate(script),
  until,
  rows: ({ page }) => page.evaluate(readRows),

  /** Turns the wheel over the conversation. */
  async wheel({ page }, { down }) {
    await page.locator("#events").hover();
    await page.mouse.wheel(0, down);
  },

  /** The hidden activity so far. */
  async heard({ page, heard }) {
    const { violations } = await page.evaluate("window.noted");
    return { ...heard, violations };
  },

  /** Slows the tab's processor down by this factor. */
  slow: ({ devtools }, { times }) => devtools.send("Emulation.setCPUThrottlingRate", { rate: times }).then(() => undefined),

  /** Requests to such a path get no response, as if the server were down. */
  refuse: ({ page }, { path }) => page.route(`**${path}`, (route) => route.abort()).then(() => undefined),
  accept: ({ page }, { path }) => page.unroute(`**${path}`).then(() => undefined),

  /** Clicks, and returns the file that is downloaded. */
  async download({ page }, { on }) {
    const [file] = await Promise.all([page.waitForEvent("download", { timeout: patienceMs }), page.locator(on).click()]);
    return { name: file.suggestedFilename(), text: await readFile(await file.path(), "utf8") };
  },

  /** The problems that axe calls serious or worse, and where they are. */
  async faults({ page }) {
    await page.evaluate(await readFile(axe, "utf8"));
    const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return serious.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ")}`);
  },

  picture: ({ page }, { file }) => page.screenshot({ path: file, animations: "disabled", caret: "hide" }).then(() => undefined),
};

/** What opens another tab in the same session. */
export const newTabs = {
  beside: ({ page }) => page.context().newPage(),
  async ctrlClick({ page }, { on }) {
    const opened = page.context().waitForEvent("page", { timeout: patienceMs });
    const [other] = await Promise.all([opened, page.locator(on).first().click({ modifiers: ["ControlOrMeta"], timeout: patienceMs })]);
    return other;
  },
};

/** Waits until an expression is true, and returns its value. Playwright's own function would need `eval`. */
async function until({ page }, { script }) {
  for (const started = Date.now(); ; await new Promise((done) => setTimeout(done, 10))) {
    // A page that is being left cannot be evaluated.
    const value = await page.evaluate(script).catch(() => undefined);
    if (value) return value;
    if (Date.now() - started > patienceMs) {
      // The beginning is enough: a conversation may be long.
      const shown = await page.evaluate("document.body.innerText.slice(0, 1500)");
      throw new Error(`it never came to that: ${script}\nat ${page.url()}:\n${shown}`);
    }
  }
}
