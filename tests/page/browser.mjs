// A page in a browser, for the tests. FAIRLIFT_PAGES is the folder of the pages; pictures of them go there, too.
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const folder = resolve(process.env.FAIRLIFT_PAGES ?? "target/page");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const SIZE = { width: 1280, height: 900 };

export const file_of = (name) => join(folder, `${name}.html`);
export const url_of = (name) => pathToFileURL(file_of(name)).href;
export const bytes_of = (name) => statSync(file_of(name)).size;

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
}

/** A page of its own, what it asks for, and what it complains of. */
export async function open(browser, name, options = {}) {
  const context = await browser.newContext({ viewport: SIZE, ...options });
  const page = await context.newPage();
  const asked = [], errors = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(url_of(name));
  return { context, page, asked, errors };
}

export const unfold = (page) =>
  page.evaluate(() => document.querySelectorAll("details.fold").forEach((fold) => { fold.open = true; }));

/** Violations as text, for a message that says what is wrong. */
export async function violations(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join("; ")}`);
}

/** Share of the picture's pixels that are not the most frequent colour. */
export async function drawn(page, locator) {
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
