// The report as a browser shows it. FAIRLIFT_PAGE names the page, FAIRLIFT_GROUPS_PAGE one of a run with groups, FAIRLIFT_SHOTS a
// folder for pictures of them.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

function page_of(variable) {
  const file = process.env[variable];
  if (!file) throw new Error(`${variable} must name a page`);
  return pathToFileURL(resolve(file)).href;
}
const url = page_of("FAIRLIFT_PAGE"), groups_url = page_of("FAIRLIFT_GROUPS_PAGE");
const shots = resolve(process.env.FAIRLIFT_SHOTS ?? "shots");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZE = { width: 1280, height: 900 };

let browser;
before(async () => {
  mkdirSync(shots, { recursive: true });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
});
after(() => browser?.close());

async function open(options = {}, address = url) {
  const context = await browser.newContext({ viewport: SIZE, ...options });
  const page = await context.newPage();
  const asked = [], errors = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(address);
  return { context, page, asked, errors };
}

/** Violations as text, for a message that says what is wrong. */
async function violations(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join("; ")}`);
}

/** Share of the picture's pixels that are not the most frequent colour. */
async function drawn(page, locator) {
  const png = (await locator.screenshot()).toString("base64");
  return page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
    const counts = new Map();
    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    return 1 - Math.max(...counts.values()) / pixels.length;
  }, png);
}

test("the page needs no other file and has no errors", async () => {
  const { context, asked, errors } = await open();
  assert.deepEqual(asked, [url]);
  assert.deepEqual(errors, []);
  await context.close();
});

for (const scheme of ["light", "dark"]) {
  test(`accessible in ${scheme}, with a story open`, async () => {
    const { context, page } = await open({ colorScheme: scheme });
    await page.locator("details.story > summary").first().click();
    assert.deepEqual(await violations(page), []);
    await page.screenshot({ path: join(shots, `page-${scheme}.png`) });
    await context.close();
  });
}

test("figures are drawn, in both schemes with different ground", async () => {
  const grounds = new Set();
  for (const scheme of ["light", "dark"]) {
    const { context, page } = await open({ colorScheme: scheme });
    const plots = page.locator(".plot");
    assert.ok((await plots.count()) > 0);
    for (const plot of (await plots.all()).slice(0, 4)) {
      const share = await drawn(page, plot);
      assert.ok(share > 0.01 && share < 0.5, `${share} of the picture is drawn`);
    }
    grounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    await context.close();
  }
  assert.equal(grounds.size, 2);
});

test("a slow request opens to its timeline, which the keyboard moves", async () => {
  const { context, page } = await open();
  const story = page.locator("details.story").last();
  const summary = story.locator("summary");
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
  await story.screenshot({ path: join(shots, "timeline.png") });

  const status = story.locator("[aria-live]");
  await story.getByRole("button", { name: "Zoom in" }).focus();
  await page.keyboard.press("Enter");
  const zoomed = await status.textContent();
  await page.keyboard.press("ArrowRight");
  const moved = await status.textContent();
  assert.notEqual(moved, zoomed);
  await page.keyboard.press("0");
  assert.match(await status.textContent(), /^0 ns to /);
  await context.close();
});

test("the parts of a story add up to its time", async () => {
  const { context, page } = await open();
  const gaps = await page.evaluate(() => [...document.querySelectorAll("details.story")].map((story) => {
    const rows = [...story.querySelectorAll("tbody tr")].map((row) => [Number(row.dataset.from), Number(row.dataset.to)]);
    return rows.reduce((at, [from, to]) => (from === at ? to : NaN), 0);
  }));
  assert.ok(gaps.length > 0);
  assert.ok(gaps.every((end) => end > 0), "every stretch begins where the one before it ended");
  await context.close();
});

test("readable without scripts, and on paper", async () => {
  const { context, page } = await open({ javaScriptEnabled: false });
  assert.ok((await page.locator("table").count()) > 0);
  assert.ok((await page.locator("details.story tbody tr").count()) > 0);
  await context.close();
  const printed = await open({ colorScheme: "dark" });
  await printed.page.emulateMedia({ media: "print" });
  assert.equal(await printed.page.locator("nav").isVisible().catch(() => false), false);
  const ground = await printed.page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper"));
  assert.equal(ground.trim(), "#fff", "paper is white, whatever the screen is");
  await printed.context.close();
});

for (const width of [360, 768, 1280]) {
  test(`nothing but tables is wider than a window of ${width} pixels`, async () => {
    const { context, page } = await open({ viewport: { width, height: 800 } });
    await page.locator("details.story > summary").last().click();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await page.screenshot({ path: join(shots, `page-${width}.png`) });
    await context.close();
  });
}

for (const [what, address] of [["the demo", url], ["groups", groups_url]]) test(`every figure of ${what} has a name, an axis in words and no text outside of it`, async () => {
  const { context, page } = await open({}, address);
  const faults = await page.evaluate(() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
    const name = plot.getAttribute("aria-label"), frame = plot.querySelector("svg").getBoundingClientRect();
    const outside = [...plot.querySelectorAll("text")].filter((text) => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    });
    return [...(name ? [] : ["a figure without a name"]), ...outside.map((text) => `${name}: '${text.textContent.trim()}'`)];
  }));
  assert.deepEqual(faults, []);
  await context.close();
});

test("each group's share is drawn beside what its weight entitles it to", async () => {
  const { context, page } = await open({}, groups_url);
  assert.deepEqual(await violations(page), []);
  for (const group of ["/vms", "/vms/heavy", "/vms/light", "/batch"]) {
    const plot = page.locator(`.plot[aria-label^="Share of device time: group ${group}."]`);
    assert.equal(await plot.count(), 1, group);
    const legend = await plot.locator("svg text").allTextContents();
    assert.ok(legend.some((text) => text.trim().startsWith("due")), `${group}: ${legend}`);
    const share = await drawn(page, plot);
    assert.ok(share > 0.01 && share < 0.5, `${share} of the picture is drawn`);
  }
  const first = page.locator('.plot[aria-label^="Share of device time: group /vms/heavy."]');
  await first.screenshot({ path: join(shots, "group-share.png") });
  await context.close();
});
