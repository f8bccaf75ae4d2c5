// Values by pointer and keyboard, lines switched on and off, full width, and where in the contents one is. Without scripts the
// figures, tables and links remain.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const html = (name, properties = {}) => Object.assign(document.createElement(name), properties);
  const svg = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const colour = (column) => `var(--line-${column % 8})`;

  // ---- what is shown: a set of columns that are switched off, for the whole page and for each figure ---------------------------

  const off = new Set();
  const apply = (root, hidden) => {
    for (const part of root.querySelectorAll("[data-column]")) {
      const column = part.dataset.column, hide = hidden.has(column);
      if (part.classList.contains("k")) part.setAttribute("aria-pressed", String(!hide));
      else if (part.dataset.column !== "") part.toggleAttribute("data-off", hide);
    }
  };

  // A choice of columns below the contents, if there is anything to choose from.
  const chooser = () => {
    const names = new Map();
    for (const key of document.querySelectorAll(".k[data-column]"))
      if (key.dataset.column !== "8" && !names.has(key.dataset.column))
        names.set(key.dataset.column, key.dataset.name.replace(/ \([^)]*\)$/, ""));
    const nav = document.querySelector(".contents");
    if (!nav || names.size < 2) return;
    const field = html("div", { className: "columns" });
    field.setAttribute("role", "group");
    field.setAttribute("aria-label", "Schedulers shown");
    field.append(html("span", { className: "soft", textContent: "Show" }));
    for (const [column, name] of [...names].sort(([a], [b]) => a - b)) {
      const box = html("input", { type: "checkbox", checked: true });
      const mark = html("i");
      mark.style.background = colour(column);
      box.addEventListener("change", () => {
        if (box.checked) off.delete(column); else off.add(column);
        apply(document, off);
      });
      const label = html("label");
      label.append(box, mark, name);
      field.append(label);
    }
    nav.append(field);
  };

  // ---- a figure ---------------------------------------------------------------------------------------------------------------

  class Plot {
    constructor(box) {
      this.box = box;
      this.svg = box.querySelector("svg");
      this.stop = -1;
      this.keys();
      const stops = this.svg.dataset.stops;
      if (!stops) return;
      this.stops = stops.split(" ").map(Number);
      this.labels = this.svg.dataset.labels.split("|");
      this.areas = this.svg.dataset.areas.split(" ").map((area) => area.split(",").map(Number));
      this.upright = this.svg.dataset.upright === "1";
      this.series = [...this.svg.querySelectorAll(".s")].map((part) => ({
        part, name: part.dataset.name, column: part.dataset.column, values: part.dataset.values.split("|"),
        at: part.dataset.at.split(" ").map((place) => (place ? place.split(",").map(Number) : null)),
      }));
      this.layer = svg("g", { class: "reading" });
      this.svg.append(this.layer);
      this.read = html("div", { className: "read", hidden: true });
      this.box.append(this.read);
      this.said = html("p", { className: "unseen" });
      this.said.setAttribute("aria-live", "polite");
      this.box.after(this.said);
      this.box.tabIndex = 0;
      this.box.setAttribute("role", "group");
      this.box.setAttribute("aria-roledescription", "figure; the arrow keys read its values");
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => this.show(-1));
      this.box.addEventListener("keydown", (event) => this.key(event));
      this.box.addEventListener("blur", () => this.show(-1));
    }

    keys() {
      const hidden = new Set();
      for (const key of this.svg.querySelectorAll(".k")) {
        key.setAttribute("role", "button");
        key.setAttribute("tabindex", "0");
        key.setAttribute("aria-pressed", "true");
        const toggle = () => {
          const column = key.dataset.column, hide = key.getAttribute("aria-pressed") === "true";
          for (const part of this.svg.querySelectorAll(`[data-column="${column}"]`)) {
            if (part.classList.contains("k")) part.setAttribute("aria-pressed", String(!hide));
            else part.toggleAttribute("data-off", hide);
          }
          if (this.stop >= 0) this.show(this.stop);
        };
        key.addEventListener("click", (event) => { event.stopPropagation(); toggle(); });
        key.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          toggle();
        });
      }
      // The keys are buttons now: the figure is no single picture any more.
      if (this.svg.querySelector(".k")) {
        this.svg.removeAttribute("aria-hidden");
        this.box.setAttribute("role", "group");
      }
    }

    point(event) {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      const area = this.areas.find(([x, y, w, h]) => at.x >= x - 4 && at.x <= x + w + 4 && at.y >= y - 4 && at.y <= y + h + 4);
      if (!area) return this.show(-1);
      const place = this.upright ? at.y - area[1] : at.x - area[0];
      const off = this.stops.map((stop) => Math.abs(stop - place));
      this.show(off.indexOf(Math.min(...off)), event);
    }

    key(event) {
      const last = this.stops.length - 1;
      const to = { ArrowRight: this.stop + 1, ArrowUp: this.stop + 1, ArrowLeft: this.stop - 1, ArrowDown: this.stop - 1,
        Home: 0, End: last, Escape: -1 }[event.key];
      if (to === undefined || event.target !== this.box) return;
      event.preventDefault();
      this.show(event.key === "Escape" ? -1 : Math.min(last, Math.max(0, to)));
      this.said.textContent = this.stop < 0 ? "" : this.read.innerText.replace(/\n+/g, "; ");
    }

    show(stop, event) {
      this.stop = stop;
      this.layer.replaceChildren();
      this.read.hidden = stop < 0;
      if (stop < 0) return;
      for (const [x, y, w, h] of this.areas) {
        const at = this.stops[stop];
        this.layer.append(svg("path", { class: "cursor", d: this.upright ? `M${x} ${y + at}H${x + w}` : `M${x + at} ${y}V${y + h}` }));
      }
      this.read.replaceChildren(html("b", { textContent: this.labels[stop] }));
      for (const series of this.series) {
        if (series.part.hasAttribute("data-off") || !series.values[stop]) continue;
        const line = html("div"), mark = html("i");
        mark.style.background = colour(series.column);
        line.append(mark, `${series.name}: ${series.values[stop]}`);
        this.read.append(line);
        const at = series.at[stop];
        if (at) this.layer.append(svg("circle", { cx: at[0], cy: at[1], r: 4, style: `fill:${colour(series.column)}` }));
      }
      this.place(event);
    }

    // Beside the pointer, or beside the cursor; never outside of the figure's box.
    place(event) {
      const box = this.box.getBoundingClientRect(), scale = box.width / this.svg.viewBox.baseVal.width;
      const [x, y] = this.areas[0], at = this.stops[this.stop] * scale;
      const left = event ? event.clientX - box.left : this.upright ? x * scale : x * scale + at;
      const top = event ? event.clientY - box.top : this.upright ? y * scale + at : y * scale;
      const width = this.read.offsetWidth, height = this.read.offsetHeight;
      this.read.style.left = `${Math.max(0, left + 14 + width > box.width ? Math.min(left - width - 14, box.width - width) : left + 14)}px`;
      this.read.style.top = `${Math.max(0, Math.min(top + 14, box.height - height))}px`;
    }
  }

  // ---- the map of sectors -----------------------------------------------------------------------------------------------------

  // A request for the pointer and for Shift with an arrow key. Where it is comes from the path that draws it, exact values from
  // data-requests: sectors since the end of the one before, microseconds in the device, sectors if other than before; in base 36.
  class Sectors {
    constructor(box) {
      this.box = box;
      this.svg = [...box.querySelectorAll("svg")].at(-1);
      this.runs = [...this.svg.querySelectorAll("[data-requests]")].flatMap((path) => Sectors.of(path)).sort((a, b) => a.x - b.x);
      this.at = -1;
      this.read = html("div", { className: "read fixed-read", hidden: true });
      this.said = html("p", { className: "unseen" });
      this.said.setAttribute("aria-live", "polite");
      this.mark = svg("path", { class: "cursor" });
      this.svg.append(this.mark);
      box.after(this.read, this.said);
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => this.show(-1));
      box.addEventListener("scroll", () => { if (!this.moving) this.show(-1); this.moving = false; }, { passive: true });
      box.addEventListener("blur", () => this.show(-1));
      box.addEventListener("keydown", (event) => this.key(event));
    }

    static of(path) {
      const moves = path.getAttribute("d").split(/m/i).slice(1).map((run) => run.split(/[ h]/).map(Number));
      let sector = 0, sectors = 0, end = 0, y = 0;
      return path.dataset.requests.split(" ").map((text, at) => {
        const [gap, us, length] = text.split(",");
        sector += sectors + (gap ? parseInt(gap, 36) : 0);
        if (length) sectors = parseInt(length, 36);
        const [right, down, w] = moves[at], x = end + right;
        [end, y] = [x + w, y + down];
        return { x, y, w, sector, sectors, us: parseInt(us, 36), name: path.dataset.name, colour: getComputedStyle(path).stroke };
      });
    }

    point(event) {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      let best = -1, least = 12;
      this.runs.forEach(({ x, y, w }, number) => {
        const away = Math.hypot(Math.max(x - at.x, 0, at.x - x - w), y - at.y);
        if (away < least) [best, least] = [number, away];
      });
      this.show(best);
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") return this.show(-1);
      if (!step || !event.shiftKey) return;
      event.preventDefault();
      const next = Math.min(this.runs.length - 1, Math.max(0, this.at + step)), run = this.runs[next];
      const scroll = Math.max(0, run.x - this.box.clientWidth / 2);
      this.moving = scroll !== this.box.scrollLeft;
      this.box.scrollLeft = scroll;
      this.show(next);
      this.said.textContent = this.read.innerText.replace(/\n+/g, "; ");
    }

    show(at) {
      this.at = at;
      this.read.hidden = at < 0;
      const run = this.runs[at];
      this.mark.setAttribute("d", run ? `M${run.x - 3} ${run.y - 4}h${run.w + 6}v8h${-run.w - 6}z` : "");
      if (!run) return;
      const { from, to } = this.box.dataset, width = this.svg.viewBox.baseVal.width;
      const start = Number(from) + (run.x / width) * (to - from);
      const digits = Math.max(0, Math.ceil(-Math.log10((to - from) / width)));
      const mark = html("i"), size = run.sectors / 2, time = run.us < 1000 ? `${run.us} \u00b5s` : `${(run.us / 1000).toFixed(run.us < 10000 ? 2 : 1)} ms`;
      mark.style.background = run.colour;
      const head = html("b");
      head.append(mark, run.name);
      this.read.replaceChildren(head, html("div", { textContent: `${size < 1024 ? `${size} KiB` : `${size / 1024} MiB`} at sector ${run.sector} (${Sectors.offset(run.sector)})` }),
        html("div", { textContent: `from ${start.toFixed(digits)} s on, ${time} in the device` }));
      const place = new DOMPoint(run.x, run.y).matrixTransform(this.svg.getScreenCTM());
      this.read.style.left = `${Math.max(0, Math.min(place.x + 14, innerWidth - this.read.offsetWidth - 4))}px`;
      this.read.style.top = `${Math.max(0, Math.min(place.y + 14, innerHeight - this.read.offsetHeight - 4))}px`;
    }

    static offset(sector) {
      const mib = sector / 2048;
      return mib < 1024 ? `${mib.toFixed(1)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
    }
  }

  // ---- full width ---------------------------------------------------------------------------------------------------------------

  const growing = (figure) => {
    const button = html("button", { type: "button", className: "grow", textContent: "\u2922" });
    const name = figure.querySelector(".plot").getAttribute("aria-label").split(". ")[0];
    const toggle = () => {
      const full = figure.classList.toggle("full");
      button.setAttribute("aria-pressed", String(full));
      figure.scrollIntoView({ block: "nearest" });
    };
    button.setAttribute("aria-label", `Full width: ${name}`);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", toggle);
    for (const plot of figure.querySelectorAll(".plot svg")) plot.addEventListener("click", toggle);
    figure.prepend(button);
  };

  // ---- contents -------------------------------------------------------------------------------------------------------------------

  const contents = () => {
    const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
    const open = (id) => {
      const fold = document.getElementById(id)?.closest("details.fold");
      if (fold) fold.open = true;
      return fold;
    };
    for (const [id, link] of links) {
      link.addEventListener("click", (event) => {
        const target = open(id) ?? document.getElementById(id);
        if (!target) return;
        event.preventDefault();
        history.replaceState(null, "", `#${id}`);
        target.scrollIntoView();
      });
    }
    if (location.hash) open(location.hash.slice(1))?.scrollIntoView();
    const parts = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
    const here = () => {
      const above = parts.filter((part) => (part.closest("details.fold") ?? part).getBoundingClientRect().top <= innerHeight / 3);
      const current = (above.at(-1) ?? parts[0])?.id;
      for (const [id, link] of links) {
        if (id === current) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    };
    addEventListener("scroll", here, { passive: true });
    here();
  };

  // ---- paper shows what is folded ------------------------------------------------------------------------------------------------

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.fold:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });

  for (const box of document.querySelectorAll(".plot")) if (box.querySelector("svg")) new Plot(box);
  for (const figure of document.querySelectorAll("figure")) growing(figure);
  for (const map of document.querySelectorAll(".map")) new Sectors(map);
  chooser();
  contents();
})();
