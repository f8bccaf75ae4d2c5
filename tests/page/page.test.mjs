// The report as a browser shows it: the page as a whole, its tables, its slow requests, and its pictures.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { bytes_of, drawn, folder, launch, open, unfold, url_of, violations } from "./browser.mjs";

/** A page for a ticket: larger ones are refused. */
const BYTES_MAX = 300_000;
/** A picture in the repository. */
const IMAGE_BYTES_MAX = 200_000;

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

for (const name of ["demo", "series", "groups"]) {
  test(`${name}: no other file is asked for, and nothing complains`, async () => {
    const { context, page, asked, errors } = await open(browser, name);
    await unfold(page);
    for (const story of (await page.locator("details.story > summary").all()).slice(0, 3)) await story.click();
    assert.deepEqual(asked, [url_of(name)]);
    assert.deepEqual(errors, []);
    await context.close();
  });
}

test("the demo's page is small enough for a ticket", () => {
  assert.ok(bytes_of("demo") < BYTES_MAX, `${bytes_of("demo")} bytes`);
});

test("the page begins with the question, the answer and a picture of each job", async () => {
  const { context, page } = await open(browser, "demo");
  const order = await page.evaluate(() => {
    const tops = [".question", ".told", ".jobs figure", "#tables", "#figures"].map((part) => document.querySelector(part));
    return tops.map((part) => (part.closest("details.fold") ?? part).getBoundingClientRect().top);
  });
  assert.deepEqual(order, [...order].sort((a, b) => a - b));
  const verdict = (await page.locator(".told .verdict").textContent()).trim();
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8").replaceAll("\n> ", " ");
  assert.equal(verdict, /database\. (\S+) \(\d+ ms\) is best/.exec(readme)[1], "the README shows the same run");
  assert.equal(await page.locator(".jobs figure").count(), 2);
  const words = await page.locator(".jobs .plot.wide").first().getAttribute("aria-label");
  for (const wanted of ["none = mq-deadline = kyber = fl-deadline:", "p99 latency", "bandwidth", "due 50 %"])
    assert.ok(words.includes(wanted), `${wanted}: ${words}`);
  assert.equal(await page.locator("#tables").isVisible(), false, "the tables are folded");
  await context.close();
});

for (const name of ["demo", "groups"]) for (const scheme of ["light", "dark"]) {
  test(`${name}: accessible in ${scheme}, all open`, async () => {
    const { context, page } = await open(browser, name, { colorScheme: scheme });
    await unfold(page);
    await page.locator("details.story > summary").first().click();
    assert.deepEqual(await violations(page), []);
    await context.close();
  });
}

test("the table's head stays, schedulers alike share a row, and marks are few", async () => {
  const { context, page } = await open(browser, "demo");
  await unfold(page);
  const table = page.locator("#tables table.wide").first();
  const heads = await table.locator("tbody tr:not(.group) th").allTextContents();
  assert.deepEqual(heads.slice(0, 4), ["none = mq-deadline = kyber = fl-deadline", "bfq", "fl-cfq", "fair"]);
  const head = await table.locator("thead th").first().evaluate((cell) => getComputedStyle(cell).position);
  assert.equal(head, "sticky");
  const columns = await table.evaluate((table) => [...table.tBodies].map((body) => {
    const rows = [...body.rows].slice(1);
    return [...rows[0].cells].map((_, at) => [rows.filter((row) => row.cells[at].classList.contains("best")).length, rows.length]);
  }));
  for (const [marked, rows] of columns.flat()) assert.ok(marked < rows, "not all of a column is best");
  await context.close();
});

test("a slow request opens to its timeline, which the keyboard moves", async () => {
  const { context, page } = await open(browser, "demo");
  const story = page.locator("details.story").first();
  const summary = story.locator("summary");
  assert.match(await summary.textContent(), /^[\d.kM]+ of [\d.kM]+ requests of \w+: mostly .* longest /);
  await summary.focus();
  await page.keyboard.press("Enter");
  const timeline = story.locator(".timeline svg");
  await timeline.waitFor();
  const rows = await story.locator("tbody tr").count();
  assert.equal(await timeline.locator("rect").count(), rows, "a bar for every stretch of time");
  const covered = await timeline.evaluate((svg) => {
    const bars = [...svg.querySelectorAll("rect")].map((bar) => [Number(bar.getAttribute("x")), Number(bar.getAttribute("width"))]);
    const [left, right] = [Math.min(...bars.map(([x]) => x)), Math.max(...bars.map(([x, width]) => x + width))];
    return { bars: bars.reduce((sum, [, width]) => sum + width, 0) / (right - left), plot: (right - left) / svg.viewBox.baseVal.width };
  });
  assert.ok(covered.bars > 0.99, `${covered.bars} of the time has a bar: the stretches leave no hole`);
  assert.ok(covered.plot > 0.5, `the bars take ${covered.plot} of the width`);
  await story.screenshot({ path: join(folder, "timeline.png") });

  const status = story.locator("[aria-live]");
  await story.getByRole("button", { name: "Zoom in" }).focus();
  await page.keyboard.press("Enter");
  const zoomed = await status.textContent();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await status.textContent(), zoomed);
  await page.keyboard.press("0");
  assert.match(await status.textContent(), /^0 ns to /);
  await context.close();
});

test("the parts of a story add up to its time, each sort stands once, and the drive's queue is told from its service", async () => {
  const { context, page } = await open(browser, "demo");
  const ends = await page.evaluate(() => [...document.querySelectorAll("details.story")].map((story) => {
    const rows = [...story.querySelectorAll("tbody tr")].map((row) => [Number(row.dataset.from), Number(row.dataset.to)]);
    return rows.reduce((at, [from, to]) => (from === at ? to : NaN), 0);
  }));
  assert.ok(ends.length > 0 && ends.every((end) => end > 0), "every stretch begins where the one before it ended");
  const sorts = await page.evaluate(() => [...document.querySelectorAll("#waits section")].map((section) =>
    [...section.querySelectorAll("details.story > summary strong")].map((head) => head.textContent.replace(/^[\d.kM]+ of /, ""))));
  for (const heads of sorts) assert.equal(new Set(heads).size, heads.length, `each sort once: ${heads}`);
  const kinds = await page.evaluate(() => [...new Set([...document.querySelectorAll("[data-kind]")].map((row) => row.dataset.kind))]);
  assert.ok(kinds.includes("inside") && kinds.includes("device"), `${kinds}`);
  await context.close();
});

test("the map shows requests and lanes, and scrolls by keyboard", async () => {
  const { context, page } = await open(browser, "demo");
  const map = page.locator(".map").last();
  await map.scrollIntoViewIfNeeded();
  assert.ok((await drawn(page, map)) > 0.01);
  const lanes = await map.locator(".fixed text").allTextContents();
  assert.ok(lanes.includes("database") && lanes.includes("backup"), `${lanes}`);
  assert.ok(await map.evaluate((box) => box.scrollWidth > box.clientWidth), "wider than its box");
  await map.focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((box) => box.scrollLeft > 0, await map.elementHandle());
  await map.screenshot({ path: join(folder, "map.png") });
  await context.close();
});

test("readable without scripts, and on paper", async () => {
  const { context, page } = await open(browser, "demo", { javaScriptEnabled: false });
  for (const part of [".told", ".jobs svg", ".figures svg", ".map svg"]) assert.ok(await page.locator(part).first().isVisible(), part);
  await page.locator("details.fold > summary", { hasText: "Tables" }).click();
  assert.ok(await page.locator("#tables table").first().isVisible(), "a part unfolds");
  assert.ok((await page.locator("details.story tbody tr").count()) > 0);
  await context.close();
  const printed = await open(browser, "demo", { colorScheme: "dark" });
  await printed.page.emulateMedia({ media: "print" });
  assert.equal(await printed.page.locator("nav").isVisible().catch(() => false), false);
  const ground = await printed.page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper"));
  assert.equal(ground.trim(), "#fff", "paper is white, whatever the screen is");
  const pdf = await printed.page.pdf({ path: join(folder, "demo.pdf"), format: "A4", printBackground: true });
  assert.ok(pdf.length > 20_000);
  await printed.context.close();
});

for (const name of ["demo", "series", "groups"]) for (const width of [360, 390, 768, 1280, 1600, 2560]) {
  test(`${name}: nothing is wider than a window of ${width} pixels`, async () => {
    const { context, page } = await open(browser, name, { viewport: { width, height: 900 } });
    await unfold(page);
    await page.locator("details.story > summary").last().click();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await context.close();
  });
}

test("wide screens are used", async () => {
  for (const [width, beside] of [[1600, 2], [2560, 2]]) {
    const { context, page } = await open(browser, "demo", { viewport: { width, height: 1000 } });
    const tops = await page.locator(".jobs figure").evaluateAll((all) => all.map((figure) => figure.getBoundingClientRect().top));
    assert.equal(tops.filter((top) => top === tops[0]).length, beside, `${width}`);
    const used = await page.locator("main").evaluate((main) => main.getBoundingClientRect().width / innerWidth);
    assert.ok(used > 0.75, `${used} of ${width} pixels`);
    await context.close();
  }
});

test("pictures of the page", async () => {
  const update = process.env.FAIRLIFT_UPDATE === "1";
  const images = update ? resolve(process.env.FAIRLIFT_IMAGES ?? "docs/img") : folder;
  mkdirSync(images, { recursive: true });
  for (const [width, height] of [[390, 844], [1600, 1000], [2560, 1300]]) for (const colorScheme of ["light", "dark"]) {
    const { context, page } = await open(browser, "demo", { viewport: { width, height }, colorScheme });
    const session = await context.newCDPSession(page);
    const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 80 });
    const bytes = Buffer.from(data, "base64");
    assert.ok(bytes.length > 5_000 && bytes.length < IMAGE_BYTES_MAX, `${bytes.length} bytes`);
    writeFileSync(join(images, `page-${width}-${colorScheme}.webp`), bytes);
    await context.close();
  }
});
