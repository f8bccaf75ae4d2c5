// Draws each story's table as a timeline above it, once it is opened. Without scripts the tables remain.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LANE = 30, BAR = 20, NAMES = 150, AXIS = 26, MARKS = 8, ZOOM = 2, MIN_NS = 100;

  const element = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const time = (ns) => {
    const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "us"] : [1, "ns"];
    return `${Number((ns / size).toPrecision(3))} ${unit}`;
  };

  const roundStep = (span) => {
    const rough = span / MARKS, power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough);
  };

  // What a story's table says: stretches of time, each in the lane of whom it belongs to.
  const read = (story) => {
    const spans = [...story.querySelectorAll("tbody tr")].map((row) => ({
      from: Number(row.dataset.from), to: Number(row.dataset.to),
      lane: row.dataset.lane, kind: row.dataset.kind, words: row.cells[2].textContent.trim(),
    }));
    return { spans, lanes: [...new Set(spans.map((span) => span.lane))], end: Math.max(...spans.map((s) => s.to)) };
  };

  class Timeline {
    constructor(story) {
      Object.assign(this, read(story));
      this.from = 0;
      this.to = this.end;
      this.box = document.createElement("div");
      this.box.className = "timeline";
      this.svg = element("svg", { "aria-hidden": "true", focusable: "false" });
      this.status = document.createElement("p");
      this.status.setAttribute("aria-live", "polite");
      this.box.append(this.toolbar(), this.svg, this.status);
      story.querySelector(".scroll").before(this.box);
      this.box.addEventListener("keydown", (event) => this.key(event));
      this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      this.drag();
      new ResizeObserver(() => this.draw()).observe(this.box);
      this.draw();
    }

    toolbar() {
      const bar = document.createElement("div");
      bar.setAttribute("role", "toolbar");
      bar.setAttribute("aria-label", "Timeline");
      const actions = [["Zoom in", () => this.zoom(1 / ZOOM)], ["Zoom out", () => this.zoom(ZOOM)],
        ["Earlier", () => this.move(-0.25)], ["Later", () => this.move(0.25)], ["All", () => this.show(0, this.end)]];
      for (const [name, action] of actions) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = name;
        button.addEventListener("click", action);
        bar.append(button);
      }
      return bar;
    }

    key(event) {
      const actions = { "+": () => this.zoom(1 / ZOOM), "-": () => this.zoom(ZOOM), "0": () => this.show(0, this.end),
        ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25) };
      const action = actions[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    }

    wheel(event) {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const at = (event.offsetX - NAMES) / this.width;
      this.zoom(event.deltaY < 0 ? 1 / ZOOM : ZOOM, Math.min(1, Math.max(0, at)));
    }

    drag() {
      let last = null;
      this.svg.addEventListener("pointerdown", (event) => { last = event.clientX; this.svg.setPointerCapture(event.pointerId); });
      this.svg.addEventListener("pointerup", () => { last = null; });
      this.svg.addEventListener("pointermove", (event) => {
        if (last === null) return;
        this.move((last - event.clientX) / this.width);
        last = event.clientX;
      });
    }

    zoom(factor, at = 0.5) {
      const span = Math.min(this.end, Math.max(MIN_NS, (this.to - this.from) * factor));
      const fixed = this.from + (this.to - this.from) * at;
      this.show(fixed - span * at, fixed + span * (1 - at));
    }

    move(part) {
      const by = (this.to - this.from) * part;
      this.show(this.from + by, this.to + by);
    }

    show(from, to) {
      const span = Math.min(this.end, to - from);
      this.from = Math.min(Math.max(0, from), this.end - span);
      this.to = this.from + span;
      this.draw();
      this.status.textContent = `${time(this.from)} to ${time(this.to)} of ${time(this.end)}`;
    }

    draw() {
      const whole = Math.max(360, this.box.clientWidth), height = this.lanes.length * LANE + AXIS;
      this.width = whole - NAMES;
      this.svg.setAttribute("viewBox", `0 0 ${whole} ${height}`);
      this.svg.setAttribute("height", height);
      this.svg.replaceChildren();
      const x = (ns) => NAMES + (ns - this.from) / (this.to - this.from) * this.width;
      const clip = (value) => Math.min(whole, Math.max(NAMES, value));
      const step = roundStep(this.to - this.from);
      for (let mark = Math.ceil(this.from / step) * step; mark <= this.to; mark += step) {
        this.svg.append(element("line", { x1: x(mark), x2: x(mark), y1: 0, y2: height - AXIS, class: "rule" }));
        const last = x(mark) > whole - 40;
        this.svg.append(element("text", { x: x(mark), y: height - 8, "text-anchor": last ? "end" : "middle" }, time(mark)));
      }
      this.lanes.forEach((lane, i) => {
        const name = lane.length > 20 ? `${lane.slice(0, 19)}…` : lane;
        this.svg.append(element("text", { x: 0, y: i * LANE + LANE / 2 + 5 }, name));
      });
      for (const span of this.spans) {
        if (span.to <= this.from || span.from >= this.to) continue;
        const left = clip(x(span.from)), right = clip(x(span.to)), top = this.lanes.indexOf(span.lane) * LANE + (LANE - BAR) / 2;
        const bar = element("rect", { x: left, y: top, width: Math.max(1, right - left), height: BAR, class: span.kind });
        bar.append(element("title", {}, `${span.words}, ${time(span.to - span.from)}`));
        this.svg.append(bar);
        const words = time(span.to - span.from);
        if (right - left > words.length * 8 + 6)
          this.svg.append(element("text", { x: (left + right) / 2, y: top + 15, "text-anchor": "middle", class: "inside" }, words));
      }
    }
  }

  const drawn = new WeakSet();
  for (const story of document.querySelectorAll("details.story")) {
    story.addEventListener("toggle", () => {
      if (!story.open || drawn.has(story)) return;
      drawn.add(story);
      new Timeline(story);
    });
  }
})();
