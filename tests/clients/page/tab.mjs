// A tab, and its hidden activity: dialogs, requests to other hosts, violations of the policy.

/** Runs in a page before its own scripts. It records what the page does unseen. */
function watch() {
  window.noted = { violations: [], longTasks: [], firstRow: null, inPart: false, streamed: false };
  addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) => {
    window.noted.violations.push(`${violatedDirective} ${blockedURI} ${sample}`);
  });
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) window.noted.longTasks.push({ startTime, duration });
  }).observe({ type: "longtask", buffered: true });
  // A reader sees the newest row, and rows up to the upper edge of the list or of the conversation.
  const seen = () => {
    const list = document.querySelector("#events")?.getBoundingClientRect();
    const rows = [...document.querySelectorAll("[data-index]")].filter((row) => getComputedStyle(row).visibility === "visible");
    const newest = rows.find((row) => row.ariaPosInSet === row.ariaSetSize)?.getBoundingClientRect();
    if (!newest || newest.height === 0 || newest.bottom > list.bottom + 1 || newest.bottom <= list.top) return false;
    return rows.some((row) => row.ariaPosInSet === "1" || row.getBoundingClientRect().top <= list.top);
  };
  const look = () => {
    if (document.querySelector("[data-streaming]")) window.noted.streamed = true;
    requestAnimationFrame(look);
    if (window.noted.firstRow !== null) return;
    if (!seen()) {
      // The current paint contains rows, but not yet all that a reader would see.
      if (document.querySelector("[data-index]")) window.noted.inPart = true;
      return;
    }
    window.noted.firstRow = 0;
    // Wait for the next frame: by then this one has been painted.
    requestAnimationFrame(() => {
      window.noted.firstRow = performance.now();
    });
  };
  requestAnimationFrame(look);
}

/** A tab with its own session: it does not share the cookies and storage of others. */
export async function openTab(browser, { width = 1280, height = 800, dark = false, phone = false }) {
  const size = phone ? { width: 390, height: 844 } : { width, height };
  const context = await browser.newContext({
    viewport: size,
    colorScheme: dark ? "dark" : "light",
    isMobile: phone,
    hasTouch: phone,
    deviceScaleFactor: 1,
    acceptDownloads: true,
    timezoneId: "UTC",
    locale: "en-GB",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  await context.addInitScript(watch);
  const page = await context.newPage();
  const tab = await driven(page);
  context.on("page", (other) => other !== page && tab.heard.dialogs.push(`a new tab: ${other.url()}`));
  return tab;
}

/** A page, and what can be heard of it. */
export async function driven(page) {
  const heard = { dialogs: [], requests: [], errors: [] };
  page.on("dialog", (dialog) => {
    heard.dialogs.push(dialog.message());
    return dialog.dismiss();
  });
  page.on("request", (request) => heard.requests.push(request.url()));
  page.on("websocket", (socket) => heard.requests.push(socket.url()));
  page.on("pageerror", (error) => heard.errors.push(String(error.stack)));
  return { page, heard, devtools: await page.context().newCDPSession(page) };
}
