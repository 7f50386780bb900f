// The rows of a dataset: a list that is drawn where it is looked at, and one row beside it.  #data holds
// lines: the first is JSON about all rows, each other a block of rows, packed.  A block is unpacked when
// one of its rows is shown or searched, so that a page of any size opens at once.

const BLOCKS = document.getElementById("data").textContent.trim().split("\n");
const ABOUT = JSON.parse(BLOCKS.shift());
const N_ROWS = ABOUT.counts.length;
const HEIGHT = 58;
const view = { record: 0, at: -1, chosen: [], drawn: new Map(), search: 0 };
const ui = {};
const [N_MESSAGES, N_CALLS, N_PROBLEMS] = [0, 1, 2];

const unpacked = new Map();
function linesOf(block) {
  if (!unpacked.has(block)) {
    const bytes = Uint8Array.from(atob(BLOCKS[block]), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const lines = new Response(stream).text().then((text) => {
      const found = text.split("\n");
      unpacked.set(block, found);
      return found;
    });
    unpacked.set(block, lines);
  }
  return unpacked.get(block);
}

const blockOf = (index) => Math.floor(index / ABOUT.rows_a_block);
const isHere = (index) => Array.isArray(unpacked.get(blockOf(index)));
const rowAt = (index) => JSON.parse(unpacked.get(blockOf(index))[index % ABOUT.rows_a_block]);

// --- Which rows

function fits(counts, wants) {
  if (wants === "problems") return counts[N_PROBLEMS] > 0;
  if (wants === "calls") return counts[N_CALLS] > 0;
  return wants !== "no calls" || !counts[N_CALLS];
}

async function choose() {
  const search = (view.search += 1);
  const words = JSON.stringify(ui.search.value.trim().toLowerCase()).slice(1, -1);
  const wants = ui.filter.value;
  let chosen = [];
  for (let i = 0; i < N_ROWS; i += 1) if (fits(ABOUT.counts[i], wants)) chosen.push(i);
  if (words) {
    const among = new Set(chosen);
    chosen = [];
    for (let block = 0; block < BLOCKS.length; block += 1) {
      const lines = await linesOf(block);
      if (search !== view.search) return; // another search has begun
      lines.forEach((text, n) => {
        const index = block * ABOUT.rows_a_block + n;
        if (among.has(index) && text.toLowerCase().includes(words)) chosen.push(index);
      });
      ui.status.textContent = `searching … ${number(chosen.length)} found`;
    }
  }
  view.chosen = chosen;
  ui.status.textContent = chosen.length === N_ROWS ? count(N_ROWS, "row") : `${number(chosen.length)} of ${count(N_ROWS, "row")}`;
  ui.space.style.setProperty("height", `${chosen.length * HEIGHT}px`);
  for (const node of view.drawn.values()) node.remove();
  view.drawn.clear();
  draw();
}

function draw() {
  const first = Math.max(0, Math.floor(ui.list.scrollTop / HEIGHT) - 4);
  const last = Math.min(view.chosen.length, Math.ceil((ui.list.scrollTop + ui.list.clientHeight) / HEIGHT) + 4);
  for (const [place, node] of view.drawn) {
    if (place >= first && place < last) continue;
    node.remove();
    view.drawn.delete(place);
  }
  const missing = new Set();
  for (let place = first; place < last; place += 1) {
    if (view.drawn.has(place)) continue;
    if (!isHere(view.chosen[place])) {
      missing.add(blockOf(view.chosen[place]));
      continue;
    }
    const node = line(view.chosen[place], place);
    view.drawn.set(place, node);
    ui.space.append(node);
  }
  if (missing.size) Promise.all([...missing].map(linesOf)).then(draw);
}

function line(index, place) {
  const row = rowAt(index);
  const counts = ABOUT.counts[index];
  return h("button", {
    type: "button", class: "row", role: "option", "aria-selected": String(index === view.at), style: { top: `${place * HEIGHT}px` },
    "data-index": String(index), tabindex: "-1", onclick: () => open(index),
  },
  h("span", "first", h("span", "n", row.name || String(index + 1)), row.title || row.error || "(no words)"),
  h("span", "second", count(counts[N_MESSAGES], "message"), counts[N_CALLS] ? ` · ${count(counts[N_CALLS], "call")}` : "",
    counts[N_PROBLEMS] ? h("span", "bad", ` · ${count(counts[N_PROBLEMS], "problem")}`) : null,
    row.source ? ` · ${row.source}` : ""));
}

// --- One row

async function open(index, focus) {
  view.at = index;
  view.record = index;
  await linesOf(blockOf(index));
  if (view.at !== index) return; // another row was opened meanwhile
  const row = rowAt(index);
  for (const node of view.drawn.values()) node.setAttribute("aria-selected", String(+node.dataset.index === index));
  const shown = h("div", "cards",
    h("h1", "", row.title || row.error || "(no words)"),
    row.problems.length ? h("ul", { class: "problems", "aria-label": "Problems" }, row.problems.map((text) => h("li", "", text))) : null,
    row.tools.length ? h("article", "card quiet", fold(`${count(row.tools.length, "tool")} on offer`,
      h("dl", "offer", row.tools.map((tool) => h("div", "", h("dt", "", tool.name), h("dd", "", tool.description), jsonView(tool.parameters)))))) : null,
    row.items.map((item) => card(item, { steps: [] })),
    row.encodings.map((encoding) => tokens(encoding)),
    Object.keys(row.beside).length ? h("article", "card quiet", fold("What the row says besides",
      h("dl", "offer", Object.entries(row.beside).map(([key, text]) => h("div", "", h("dt", "", key), jsonView(text)))))) : null);
  ui.detail.replaceChildren(h("button", { type: "button", class: "icon only-narrow", onclick: back }, "← Rows"), shown);
  ui.detail.scrollTop = 0;
  document.body.classList.add("open");
  history.replaceState(null, "", `#${index}`);
  if (focus) reveal();
}

function back() {
  document.body.classList.remove("open");
}

function reveal() {
  const place = view.chosen.indexOf(view.at);
  if (place < 0) return;
  const top = place * HEIGHT;
  if (top < ui.list.scrollTop) ui.list.scrollTop = top;
  if (top + HEIGHT > ui.list.scrollTop + ui.list.clientHeight) ui.list.scrollTop = top + HEIGHT - ui.list.clientHeight;
  draw();
}

function move(by) {
  const at = view.chosen.indexOf(view.at);
  const next = Math.min(Math.max(at + by, 0), view.chosen.length - 1);
  if (view.chosen.length) open(view.chosen[next], true);
}

// --- The page

const KEYS = [["j  k", "next row, row before"], ["/", "search"], ["e", "open or close all folds"], ["t", "light or dark"], ["?", "this help"]];

function foldAll() {
  const all = [...ui.detail.querySelectorAll("details")];
  const is = all.some((d) => !d.open);
  all.forEach((d) => { d.open = is; });
}

function onKey(event) {
  if (/^(INPUT|SELECT)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || ui.help.open) return;
  const actions = { j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), e: foldAll, t: toggleTheme,
    "/": () => ui.search.focus(), "?": () => ui.help.showModal() };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function start() {
  let timer = 0;
  const soon = () => { clearTimeout(timer); timer = setTimeout(choose, 120); };
  ui.help = helpDialog(KEYS);
  ui.search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search the rows", oninput: soon });
  ui.filter = h("select", { "aria-label": "Which rows", onchange: choose },
    ["all rows", "problems", "calls", "no calls"].map((name) => h("option", { value: name }, name === "all rows" ? name : `with ${name}`.replace("with no", "without"))));
  ui.status = h("span", { class: "n", role: "status" });
  ui.space = h("div", { class: "space", role: "listbox", "aria-label": "Rows" });
  ui.list = h("div", { class: "list", tabindex: "0", "aria-label": "Rows", onscroll: draw }, ui.space);
  ui.detail = h("main", { class: "detail", tabindex: "-1" });
  document.body.append(h("div", "rows-page",
    h("div", "rows-side", h("header", "", h("span", "brand", "Antiphon"), h("span", "name", ABOUT.name),
      h("button", { type: "button", class: "icon", onclick: toggleTheme, "aria-label": "Light or dark" }, "◐")),
    h("div", "find", ui.search, ui.filter), ui.status, ui.list), ui.detail), ui.help);
  document.addEventListener("keydown", onKey);
  window.addEventListener("resize", draw);
  choose();
  const wanted = Number(location.hash.slice(1));
  if (N_ROWS) {
    const narrow = matchMedia("(max-width: 720px)").matches && !location.hash;
    if (!narrow) open(Number.isInteger(wanted) && wanted >= 0 && wanted < N_ROWS ? wanted : 0, true);
  }
}

start();
