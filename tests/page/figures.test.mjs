// The report's figures: drawn, named, read by pointer and keyboard, switched on and off.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drawn, folder, launch, open, unfold, violations } from "./browser.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const latency = (page) => page.locator('#figures .plot[aria-label^="Latency: database."]');

test("figures are drawn, in both schemes with different ground", async () => {
  const grounds = new Set();
  for (const scheme of ["light", "dark"]) {
    const { context, page } = await open(browser, "demo", { colorScheme: scheme });
    const plots = (await page.locator(".plot:visible").all()).slice(0, 6);
    assert.ok(plots.length > 0);
    for (const plot of plots) {
      const share = await drawn(page, plot);
      assert.ok(share > 0.01 && share < 0.5, `${share} of the picture is drawn`);
    }
    grounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    await context.close();
  }
  assert.equal(grounds.size, 2);
});

for (const name of ["demo", "series", "groups"]) test(`every figure of ${name} says in itself what it shows, and nothing is clipped or on top of other text`, async () => {
  const { context, page } = await open(browser, name, { viewport: { width: 1600, height: 1000 } });
  await unfold(page);
  const faults = await page.evaluate(() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
    const svg = plot.querySelector("svg"), frame = svg.getBoundingClientRect();
    if (frame.width === 0) return [];
    const name = plot.getAttribute("aria-label"), texts = [...svg.querySelectorAll("text")];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const faults = name ? [] : ["a figure without a name"];
    const said = texts.map((text) => text.textContent).join("\n");
    if (!/Linux \d/.test(said)) faults.push(`${name}: no device and kernel in the picture`);
    boxes.forEach((box, at) => {
      const text = texts[at].textContent;
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        faults.push(`${name}: '${text}' is clipped`);
      for (let other = at + 1; other < boxes.length; other++) {
        const over = Math.min(box.right, boxes[other].right) - Math.max(box.left, boxes[other].left);
        const down = Math.min(box.bottom, boxes[other].bottom) - Math.max(box.top, boxes[other].top);
        if (over > 2 && down > box.height / 2) faults.push(`${name}: '${text}' is on '${texts[other].textContent}'`);
      }
    });
    return faults;
  }));
  assert.deepEqual(faults, []);
  await context.close();
});

test("the pointer reads values, with how many samples are slower", async () => {
  const { context, page } = await open(browser, "demo");
  const plot = latency(page);
  await plot.scrollIntoViewIfNeeded();
  const at = await plot.locator("svg").evaluate((svg) => {
    const [left, top, width] = svg.dataset.areas.split(",").map(Number), stops = svg.dataset.stops.split(" ").map(Number);
    const stop = svg.dataset.labels.split("|").findIndex((label) => label.startsWith("99 %"));
    const point = new DOMPoint(left + width / 2, top + stops[stop]).matrixTransform(svg.getScreenCTM());
    return [point.x, point.y];
  });
  await page.mouse.move(...at);
  const read = await plot.locator(".read").innerText();
  assert.match(read, /^99 % done within/);
  // The table says the same.
  await unfold(page);
  const row = page.locator("#tables tbody").first().locator("tr", { hasText: /^fair/ });
  const p99 = (await row.locator("td").nth(4).textContent()).replace(" (best)", "");
  const line = read.split("\n").find((line) => line.startsWith("fair ("));
  assert.match(line, /^fair \([\d.]+k?\): .* \(\d+ slower\)$/);
  assert.ok(line.includes(`): ${p99} (`), `${p99} in ${read}`);
  await plot.screenshot({ path: join(folder, "hover.png") });
  await context.close();
});

test("the keyboard reads values and says them", async () => {
  const { context, page } = await open(browser, "demo");
  const plot = latency(page);
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  const said = plot.locator("xpath=following-sibling::*[@aria-live]");
  const first = await said.textContent();
  assert.match(first, /50 % done within; .*bfq/);
  await page.keyboard.press("End");
  assert.match(await said.textContent(), /^longest; /);
  await page.keyboard.press("Escape");
  assert.equal(await plot.locator(".read").isVisible(), false);
  await context.close();
});

test("lines are switched off in a figure by its legend, and on the whole page by the choice below the contents", async () => {
  const { context, page } = await open(browser, "demo");
  const plot = latency(page);
  const lines = () => plot.locator(".s:not([data-off])").count();
  const all = await lines();
  const key = plot.locator(".k").first();
  await key.focus();
  await page.keyboard.press("Enter");
  assert.equal(await key.getAttribute("aria-pressed"), "false");
  assert.equal(await lines(), all - 1);
  assert.equal(await page.locator("figure.full").count(), 0, "a key is not a click on the figure");
  await key.click();
  assert.equal(await lines(), all);
  const choice = page.locator(".columns label");
  assert.deepEqual(await choice.allTextContents(), ["none = mq-deadline = kyber = fl-deadline", "bfq", "fl-cfq", "fair"]);
  for (const label of await choice.all()) assert.ok(await label.isVisible() && (await label.boundingBox()).height > 10);
  await page.getByLabel("bfq", { exact: true }).uncheck();
  const left = await page.evaluate(() => [...document.querySelectorAll("tr[data-column], .s[data-column]")]
    .filter((part) => part.dataset.column === "3" && !part.hasAttribute("data-off")).length);
  assert.equal(left, 0, "bfq is nowhere");
  await context.close();
});

test("a click or a key makes a figure as wide as the page, and back", async () => {
  const { context, page } = await open(browser, "demo", { viewport: { width: 1600, height: 1000 } });
  const figure = page.locator("#figures figure").first();
  const width = () => figure.evaluate((box) => box.getBoundingClientRect().width);
  const before = await width();
  await figure.locator("svg").click({ position: { x: 150, y: 200 } });
  assert.ok((await width()) > 1.8 * before);
  await figure.getByRole("button", { name: /^Full width/ }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await width(), before);
  await context.close();
});

test("the contents stay, lead to a folded part and open it", async () => {
  const { context, page } = await open(browser, "demo", { viewport: { width: 1600, height: 1000 } });
  const link = page.locator(".contents a", { hasText: "Tables" });
  await link.click();
  assert.ok(await page.locator("#tables").isVisible());
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  const box = await link.boundingBox();
  assert.ok(box.y >= 0 && box.y < 400, `the contents are at ${box.y}`);
  await context.close();
});

test("a series of cases is a line over its variable, in its own words", async () => {
  const { context, page } = await open(browser, "series");
  const plot = page.locator('.plot[aria-label^="random: p99 latency, by sequential readers."]');
  assert.equal(await plot.count(), 1);
  assert.ok((await plot.locator("svg text").allTextContents()).some((text) => text.startsWith("sequential readers")));
  await plot.focus();
  await page.keyboard.press("End");
  assert.match(await plot.locator(".read").innerText(), /^sequential readers: 16\n/);
  await plot.screenshot({ path: join(folder, "series.png") });
  await context.close();
});

test("each group's share is drawn beside what its weight entitles it to", async () => {
  const { context, page } = await open(browser, "groups");
  assert.deepEqual(await violations(page), []);
  for (const group of ["/vms", "/vms/heavy", "/vms/light", "/batch"]) {
    const plot = page.locator(`.plot[aria-label^="Share of device time: group ${group}."]`);
    assert.equal(await plot.count(), 1, group);
    assert.ok((await plot.locator("svg path.d").count()) > 0, `${group}: what is due is dashed`);
    const share = await drawn(page, plot);
    assert.ok(share > 0.01 && share < 0.5, `${share} of the picture is drawn`);
  }
  const first = page.locator('.plot[aria-label^="Share of device time: group /vms/heavy."]');
  await first.focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await first.locator(".read").innerText(), /due/);
  await first.screenshot({ path: join(folder, "group-share.png") });
  await context.close();
});

test("a request of the map is read by pointer and keyboard", async () => {
  const { context, page } = await open(browser, "demo");
  await unfold(page);
  const map = page.locator(".map").last();
  await map.scrollIntoViewIfNeeded();
  // What the attributes say, unpacked here anew, and where the path draws it.
  const drawn = await map.evaluate((box) => {
    const path = box.querySelector('[data-name="database: read"]'), svg = path.ownerSVGElement, frame = svg.getBoundingClientRect();
    const moves = path.getAttribute("d").match(/[Mm][^Mm]+/g).map((move) => move.slice(1).split(/[ h]/).map(parseFloat));
    const runs = [], ends = { x: 0, y: 0 };
    for (const [right, down, length] of moves) {
      runs.push([ends.x + right, ends.y + down, length]);
      [ends.x, ends.y] = [ends.x + right + length, ends.y + down];
    }
    let end = 0, length = 0;
    const requests = path.dataset.requests.split(" ").map((text) => {
      const [gap, us, sectors] = text.split(",");
      const first = end + (gap === "" ? 0 : parseInt(gap, 36));
      if (sectors !== undefined) length = parseInt(sectors, 36);
      end = first + length;
      return { first, length, us: parseInt(us, 36) };
    });
    const shown = runs.findIndex(([x]) => x > 20 && x < box.clientWidth / 2);
    return { count: [runs.length, requests.length], request: requests[shown], lengths: [...new Set(requests.map((r) => r.length))],
      x: frame.left + runs[shown][0] + 0.5, y: frame.top + runs[shown][1] };
  });
  assert.equal(drawn.count[0], drawn.count[1]);
  assert.deepEqual(drawn.lengths, [16], "the database reads 8 KiB");
  await page.mouse.move(drawn.x, drawn.y);
  const read = page.locator(".fixed-read:visible");
  const text = await read.innerText();
  assert.match(text, /database: read/);
  assert.ok(text.includes(`8 KiB at sector ${drawn.request.first} (`), text);
  const ms = Number(/, ([\d.]+) ms in the device/.exec(text)[1]);
  assert.ok(Math.abs(ms * 1000 - drawn.request.us) < 60, `${text} and ${drawn.request.us} us`);
  await page.mouse.move(0, 0);
  assert.equal(await read.count(), 0);
  await map.focus();
  for (const key of ["Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowLeft"]) await page.keyboard.press(key);
  assert.match(await read.innerText(), /in the device/);
  assert.match(await page.locator(".map ~ .unseen").last().textContent(), /in the device/);
  await page.keyboard.press("Escape");
  assert.equal(await read.count(), 0);
  await context.close();
});
