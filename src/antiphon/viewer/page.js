// Draws the records in #data, with the parts before it.  Nothing is loaded, stored or sent.

const DATA = JSON.parse(document.getElementById("data").textContent);
const EVENTS_AT_ONCE = 400;

function offer(record) {
  if (!record.tools.length) return null;
  return h("article", { class: "card quiet", tabindex: "0", "aria-label": "Tools on offer" },
    fold(`${count(record.tools.length, "tool")} on offer`,
      h("dl", "offer", record.tools.map((tool) => h("div", "",
        h("dt", "", tool.name), h("dd", "", tool.description), jsonView(tool.parameters))))));
}

function beside(record) {
  const entries = Object.entries(record.beside);
  if (!entries.length && !record.agents.length) return null;
  return h("article", { class: "card quiet", tabindex: "0", "aria-label": "What the record says besides" },
    fold("What the record says besides",
      h("dl", "offer",
        record.agents.map((agent) => h("div", "", h("dt", "", `agent ${agent.name}`), jsonView(agent.detail))),
        entries.map(([key, text]) => h("div", "", h("dt", "", key), jsonView(text))))));
}

// Cards of a long list, drawn a part at a time: the next part when the reader comes near its end.
const CARDS_AT_ONCE = 200;

function inParts(rows, make, ...around) {
  const [before, after] = around;
  const end = h("div", { "aria-hidden": "true" });
  const node = h("div", "cards", before, end, after);
  let shown = 0;
  const draw = () => {
    const part = rows.slice(shown, shown + CARDS_AT_ONCE).map((row, i) => make(row, shown + i));
    shown += part.length;
    end.before(...part);
    if (shown >= rows.length) end.remove();
  };
  draw();
  if (shown < rows.length) {
    const watch = new IntersectionObserver((seen) => {
      if (seen.some((entry) => entry.isIntersecting)) draw();
      if (shown >= rows.length) watch.disconnect();
    }, { rootMargin: "1200px" });
    watch.observe(end);
  }
  view.reach = (step) => {
    while (shown < rows.length && !node.querySelector(`[data-step="${step}"]`)) draw();
  };
  return node;
}

function conversation(record) {
  return inParts(record.items, (item) => card(item, record), offer(record), beside(record));
}

// --- The plan of a run, as a graph

const BOX = { width: 200, height: 56, across: 24, down: 44 };

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

function shortened(text, n) {
  return text.length > n ? `${text.slice(0, n - 1)}…` : text;
}

function planGraph(plan) {
  const places = new Map();
  const filled = [];
  for (const task of plan.tasks) {
    const column = filled[task.row] || 0;
    filled[task.row] = column + 1;
    places.set(task.id, { x: column * (BOX.width + BOX.across), y: task.row * (BOX.height + BOX.down) });
  }
  const wide = Math.max(...filled.map((n) => n || 0)) * (BOX.width + BOX.across);
  const high = filled.length * (BOX.height + BOX.down);
  const lines = plan.tasks.flatMap((task) => task.needs.filter((id) => places.has(id)).map((id) => {
    const from = places.get(id), to = places.get(task.id);
    const x1 = from.x + BOX.width / 2, y1 = from.y + BOX.height, x2 = to.x + BOX.width / 2, y2 = to.y;
    const half = (y1 + y2) / 2;
    return svg("path", { class: "need", d: `M${x1},${y1} C${x1},${half} ${x2},${half} ${x2},${y2}` });
  }));
  const boxes = plan.tasks.map((task) => {
    const { x, y } = places.get(task.id);
    const said = [`${task.id}: ${task.status.replace(/_/g, " ")}`, task.call, task.reason, task.result].filter(Boolean).join("\n");
    return svg("g", { class: `task ${task.status}`, transform: `translate(${x},${y})` },
      svg("title", {}, shortened(said, 1000)),
      svg("rect", { width: BOX.width, height: BOX.height, rx: 8 }),
      svg("text", { class: "id", x: 12, y: 23 }, shortened(task.id, 22)),
      svg("text", { x: 12, y: 42 }, shortened(task.what || task.call, 30)));
  });
  const graph = svg("svg", {
    class: "plan", viewBox: `-8 -8 ${wide + 16} ${high + 16}`, width: wide + 16, height: high + 16,
    role: "img", "aria-label": `A plan of ${plan.tasks.length} tasks`,
  }, ...lines, ...boxes);
  const head = ["task", "state", "after", "call", "came of it"];
  const table = h("table", "", h("thead", "", h("tr", "", head.map((t) => h("th", "", t)))),
    h("tbody", "", plan.tasks.map((task) => h("tr", "",
      h("td", "", task.id), h("td", `state ${task.status}`, task.status.replace(/_/g, " ")),
      h("td", "", task.needs.join(", ")), h("td", "", shortened(task.call || task.what, 200)),
      h("td", "", shortened(task.reason || task.result, 300))))));
  return h("div", "",
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Plan" }, graph),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Tasks of the plan" }, table));
}

// --- Time

function ticks(end) {
  const raw = end / 6;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const unit = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  const out = [];
  for (let t = 0; t < end * 0.93; t += unit) out.push(t);
  out.push(end);
  return out;
}

function tickLabel(t, end) {
  return end < 0.1 ? `${+(t * 1000).toFixed(2)} ms` : `${+t.toFixed(end < 1 ? 3 : 2)} s`;
}

function bar(item, end, show) {
  const width = Math.max(item.end - item.start, 0);
  const text = `${item.label}: ${seconds(width)}, from ${seconds(item.start)}${item.detail ? "; " + item.detail : ""}`;
  return h("button", {
    type: "button",
    class: `bar ${item.kind}${item.is_error ? " bad" : ""}`,
    title: text, "aria-label": text,
    style: { left: `${(100 * item.start) / end}%`, width: `max(3px, ${(100 * width) / end}%)` },
    onclick: () => show(item.step),
  },
  item.first !== null && width > 0
    ? h("span", { class: "wait", style: { width: `${(100 * Math.min(item.first, width)) / width}%` } }) : null,
  h("span", "t", item.label));
}

function timeline(record, show) {
  const bars = record.lanes.flatMap((lane) => lane.bars);
  const end = Math.max(record.summary.duration || 0, ...bars.map((b) => b.end), 1e-6);
  const marks = ticks(end);
  const chart = h("div", "chart",
    record.lanes.map((lane) => [
      h("div", { class: "lane-name", title: lane.name }, lane.name),
      h("div", "lane", lane.bars.map((b) => bar(b, end, show))),
    ]).flat(),
    h("div", ""),
    h("div", "axis", marks.map((t, i) => h("span", {
      class: i === 0 ? "first" : i === marks.length - 1 ? "last" : "",
      style: { left: `${(100 * t) / end}%` },
    }, tickLabel(t, end)))));
  return h("div", "",
    h("div", "timeline",
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Timeline" }, chart),
      h("div", "legend",
        h("span", "", h("span", "swatch"), "model"),
        h("span", "", h("span", "swatch wait"), "until its first token"),
        h("span", "", h("span", "swatch tool"), "tool"),
        bars.some((b) => b.is_error) ? h("span", "", h("span", "swatch bad"), "error") : null)),
    timeTable(record));
}

function timeTable(record) {
  const head = ["step", "agent", "first token", "model", "tokens read", "reused", "written", "per second"];
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Times and tokens of each step" },
    h("table", "", h("thead", "", h("tr", "", head.map((t, i) => h("th", i === 1 ? "" : "num", t)))),
      h("tbody", "", record.steps.map((step, i) => h("tr", "",
        h("td", "num", String(i)), h("td", "", step.agent), h("td", "num", seconds(step.first)),
        h("td", "num", seconds(step.duration)), h("td", "num", number(step.usage.input)),
        h("td", "num", number(step.usage.cached)), h("td", "num", number(step.usage.output)),
        h("td", "num", speed(step)))))));
}

function speed(step) {
  if (step.duration === null || !step.usage.output) return "";
  const writing = step.duration - (step.first || 0);
  return writing > 0 ? (step.usage.output / writing).toFixed(1) : "";
}

// --- Steps: the exact texts

function prompts(record) {
  let before = "";
  return record.steps.map((step) => {
    if (step.prompt === null) {
      before = "";
      return null;
    }
    const shared = before.slice(0, step.n_shared);
    before = shared + step.prompt;
    return { shared, added: step.prompt };
  });
}

function promptBlock(step, prompt, index) {
  if (prompt === null) {
    return h("p", "block", `The model was shown the first ${count(step.n_shown ?? step.n_prompt_messages, "message")}; `
      + "its server made the text, which is not known here.");
  }
  const body = h("pre", { class: "exact", tabindex: "0", "aria-label": `Prompt of step ${index}` });
  const n = prompt.shared.length + prompt.added.length;
  const whole = () => body.replaceChildren(h("span", "same", prompt.shared), prompt.added);
  let toggle = null;
  if (prompt.shared) {
    body.append(h("span", "same", `… ${count(prompt.shared.length, "character")} as in the step before …\n`), prompt.added);
    toggle = h("button", { type: "button", class: "icon", onclick: () => { whole(); toggle.remove(); } }, "Show all");
  } else body.append(prompt.added);
  return h("div", "block",
    h("div", "cap", h("b", "", "Prompt"),
      h("span", "", count(n, "character") + (step.n_prompt_tokens === null ? "" : `, ${count(step.n_prompt_tokens, "token")}`)),
      toggle ? h("span", "right", toggle) : null),
    body);
}

function sampledTokens(step) {
  const pre = h("pre", { class: "exact written", tabindex: "0", "aria-label": "Sampled tokens" });
  for (const [text, id, logprob] of step.tokens) {
    const p = logprob === null ? null : Math.exp(logprob);
    const label = `id ${id}` + (p === null ? "" : `, probability ${(100 * p).toFixed(1)} %`);
    pre.append(h("span", {
      class: "tok on cut", title: label,
      style: p === null || p > 0.9 ? {} : { "background-color": `rgba(var(--heavy), ${(0.75 * (1 - p)).toFixed(3)})` },
    }, visible(text, id)));
  }
  return pre;
}

function completionBlock(step, index) {
  if (step.text === null && step.tokens === null) {
    return h("p", "block", "The exact text that the model wrote is not known; the conversation shows what it said.");
  }
  const holder = h("div", "");
  const asText = () => h("pre", { class: "exact written", tabindex: "0", "aria-label": `Completion of step ${index}` }, step.text);
  const asTokens = () => sampledTokens(step);
  const views = [];
  if (step.text !== null) views.push(["Text", asText]);
  if (step.tokens !== null) views.push(["Tokens", asTokens]);
  const pick = switcher(views, (make) => holder.replaceChildren(make()));
  return h("div", "block",
    h("div", "cap", h("b", "", "Completion"),
      h("span", "", step.tokens === null ? count(step.text.length, "character")
        : `${count(step.tokens.length, "sampled token")}`),
      views.length > 1 ? h("span", "right", pick) : null),
    holder);
}

// What a model wrote, and what was read out of it, side by side.
function parsedBeside(block, record, index) {
  const item = record.items.find((other) => other.step === index);
  if (!item || record.steps[index].text === null) return block;
  const parsed = h("div", "block", h("div", "cap", h("b", "", "Parsed")),
    item.reasoning ? h("div", "part", h("span", "tag", "reasoning"), h("div", "text", item.reasoning)) : null,
    item.text ? h("div", "part", h("span", "tag", "text"), h("div", "text", item.text)) : null,
    (item.calls || []).map((call) => h("div", "part", h("span", "tag call", call.name),
      call.repairs.length ? h("span", "tag", "repaired: " + call.repairs.join(", ")) : null, jsonView(call.arguments))),
    (item.invalid || []).map((call) => h("div", "part", h("span", "tag bad", "not a call"), h("p", "", call.reason))));
  return h("div", "beside", block, parsed);
}

function steps(record) {
  const texts = prompts(record);
  return inParts(record.steps, (step, i) => {
    const node = h("article", { class: "card", tabindex: "0", "aria-label": `Step ${i}` },
      h("div", "who", h("span", "role", `Step ${i}`), step.agent ? h("span", "", step.agent) : null,
        h("span", "right", h("span", "badge" + (step.stop_reason === "error" ? " bad" : ""), step.stop_reason.replace(/_/g, " ")), " ", permalink("Steps", i))),
      h("div", "facts",
        step.model ? h("span", "", "model ", h("b", "", step.model)) : null,
        step.format ? h("span", "", "format ", h("b", "", step.format)) : null,
        h("span", "", "read ", h("b", "", number(step.usage.input)), step.usage.cached ? ` (${number(step.usage.cached)} reused)` : ""),
        h("span", "", "wrote ", h("b", "", number(step.usage.output))),
        step.first !== null ? h("span", "", "first token ", h("b", "", seconds(step.first))) : null,
        step.duration !== null ? h("span", "", "took ", h("b", "", seconds(step.duration))) : null,
        step.sampling ? h("span", "mono", step.sampling) : null),
      step.n_shown !== null ? h("p", "", `After compaction the model was shown ${count(step.n_shown, "message")}.`) : null,
      promptBlock(step, texts[i], i),
      parsedBeside(completionBlock(step, i), record, i));
    node.dataset.step = i;
    return node;
  });
}

// --- Training

function training(record) {
  if (record.encodings.length === 1) return tokens(record.encodings[0]);
  const holder = h("div", "");
  const views = record.encodings.map((encoding, i) => [`Conversation ${i + 1}`, () => tokens(encoding)]);
  const pick = switcher(views, (make) => holder.replaceChildren(make()));
  return h("div", "", h("div", "bench", pick,
    h("span", "", "The run was shown more than one conversation: other instructions, other tools, or a compacted one.")), holder);
}

// --- Events

function events(record) {
  const body = h("tbody", "");
  const more = h("button", { type: "button", class: "icon more" });
  let shown = 0;
  const draw = () => {
    const upTo = Math.min(shown + EVENTS_AT_ONCE, record.events.length);
    for (; shown < upTo; shown += 1) {
      const event = record.events[shown];
      body.append(h("tr", { class: event.type.endsWith("_delta") ? "delta" : "", "data-row": String(shown) },
        h("td", "num", event.time === null ? "" : event.time.toFixed(3)),
        h("td", "num", event.step === null ? "" : String(event.step)),
        h("td", "type", event.type + (event.count > 1 ? ` ×${event.count}` : "")),
        h("td", "wide", h("pre", "", event.text))));
    }
    more.hidden = shown >= record.events.length;
    more.textContent = `Show more of ${count(record.events.length, "line")}`;
  };
  more.addEventListener("click", draw);
  draw();
  view.reach = (row) => {
    while (shown <= row && shown < record.events.length) draw();
  };
  return h("div", { class: "timeline log" }, h("table", "",
    h("thead", "", h("tr", "", h("th", "num", "seconds"), h("th", "num", "step"), h("th", "", "event"), h("th", "", ""))), body), more);
}

// --- The page

function badge(summary) {
  if (!summary.stop_reason) return null;
  const good = summary.stop_reason === "answer" || summary.stop_reason === "stopped_by_tool";
  return h("span", "badge " + (good ? "good" : "bad"), summary.stop_reason.replace(/_/g, " "));
}

function stat(label, ...value) {
  return h("div", "stat", h("dt", "", label), h("dd", "", ...value));
}

function hero(record) {
  const s = record.summary;
  const cached = s.usage.cached ? h("small", "", ` ${number(s.usage.cached)} reused`) : null;
  return h("header", "hero",
    h("h1", "", s.question || record.name || "A conversation"),
    s.output ? h("p", "answer", s.output) : null,
    s.error ? h("p", "failure", s.error) : null,
    h("dl", "stats",
      s.stop_reason ? stat("ended with", badge(s)) : null,
      s.duration ? stat("time", seconds(s.duration)) : null,
      s.recorded ? stat("steps", number(s.n_steps)) : stat("messages", number(s.n_messages)),
      stat("calls", number(s.n_calls), s.n_errors || s.n_invalid
        ? h("small", "", ` ${[s.n_errors ? count(s.n_errors, "error") : "", s.n_invalid ? `${number(s.n_invalid)} unreadable` : ""].filter(Boolean).join(", ")}`) : null),
      s.recorded ? stat("tokens read", number(s.usage.input), cached) : null,
      s.recorded ? stat("tokens written", number(s.usage.output)) : null,
      s.models.length ? stat("model", s.models.join(", ")) : null,
      s.formats.length ? stat("format", s.formats.join(", ")) : null,
      s.agents.length > 1 ? stat("agents", s.agents.join(" → ")) : null,
      s.started_at ? stat("began", s.started_at.replace("T", " ").replace(/\.\d+/, "").replace(/\+00:00|Z$/, " UTC")) : null));
}

function sections(record) {
  const out = [["Conversation", record.items.filter((i) => i.kind === "message").length, () => conversation(record)]];
  if (record.plan) out.push(["Plan", record.plan.tasks.length, () => planGraph(record.plan)]);
  if (record.lanes.some((lane) => lane.bars.length)) out.push(["Timeline", null, () => timeline(record, goToStep)]);
  if (record.steps.length) out.push(["Steps", record.steps.length, () => steps(record)]);
  if (record.encodings.length) out.push(["Training", null, () => training(record)]);
  if (record.events.length) out.push(["Events", record.events.length, () => events(record)]);
  return out;
}

const view = { record: 0, tab: 0, tabs: [], panel: null };

function showTab(index, focus) {
  const [, , make] = view.sections[index];
  view.tab = index;
  view.reach = null;
  view.tabs.forEach((tab, i) => {
    tab.setAttribute("aria-selected", String(i === index));
    tab.tabIndex = i === index ? 0 : -1;
  });
  view.panel.setAttribute("aria-labelledby", `tab-${index}`);
  view.panel.replaceChildren(make());
  view.tabs[index].scrollIntoView({ block: "nearest", inline: "nearest" });
  if (focus) view.tabs[index].focus();
  remember(linkTo(view.sections[index][0], null));
}

function remember(link) {
  if (view.started) history.replaceState(null, "", link);
}

function goToStep(step) {
  goTo("Conversation", step);
}

// Show a view at a place in it: a step, or a row of the events.
function goTo(name, place) {
  const index = view.sections.findIndex(([label]) => label.toLowerCase() === name.toLowerCase());
  if (index < 0) return;
  showTab(index);
  if (place === null || place === undefined) return;
  if (view.reach) view.reach(+place);
  const target = view.panel.querySelector(`[data-step="${+place}"], [data-row="${+place}"]`);
  if (!target) return;
  if (target.tabIndex < 0) target.tabIndex = -1;
  target.focus({ preventScroll: true });
  target.scrollIntoView({ block: "center" });
  target.classList.add("found");
  remember(linkTo(view.sections[index][0], place));
}

function followHash() {
  const [record, name, place] = location.hash.slice(1).split("/");
  const index = Number(record || 0);
  if (Number.isInteger(index) && index >= 0 && index < DATA.records.length && index !== view.record) showRecord(index);
  if (name) goTo(name, /^\d+$/.test(place || "") ? place : null);
}

// --- Search

const HITS_SHOWN = 60;

function placesOf(record) {
  const places = [];
  record.items.forEach((item) => {
    if (item.kind === "notice") return;
    const texts = [item.text, item.reasoning];
    for (const call of item.calls || []) texts.push(call.name, call.arguments, call.result ? call.result.text : "");
    for (const call of item.invalid || []) texts.push(call.raw, call.reason);
    places.push(["Conversation", item.step, item.role, texts.filter(Boolean).join("\n")]);
  });
  record.steps.forEach((step, i) => places.push(["Steps", i, "step", [step.prompt, step.text].filter(Boolean).join("\n")]));
  record.events.forEach((event, i) => places.push(["Events", i, event.type, event.text]));
  return places;
}

function search() {
  const hits = h("div", { class: "hits", role: "listbox", "aria-label": "Found", hidden: true });
  const find = () => {
    const wanted = input.value.trim().toLowerCase();
    hits.hidden = !wanted;
    if (!wanted) return hits.replaceChildren();
    const found = [];
    let n = 0;
    for (const [name, place, what, text] of view.places || (view.places = placesOf(DATA.records[view.record]))) {
      const at = text.toLowerCase().indexOf(wanted);
      if (at < 0) continue;
      n += 1;
      if (found.length >= HITS_SHOWN) continue;
      const begin = Math.max(0, at - 30);
      found.push(h("button", { type: "button", role: "option", onclick: () => { goTo(name, place === undefined ? null : place); } },
        h("span", "where", `${name}${place === null || place === undefined ? "" : " " + place} · ${what}`),
        (begin ? "…" : "") + text.slice(begin, at), h("mark", "", text.slice(at, at + wanted.length)), text.slice(at + wanted.length, at + wanted.length + 90)));
    }
    hits.replaceChildren(h("p", { class: "n", role: "status" }, count(n, "place")), ...found);
  };
  const input = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search this record", oninput: find,
    onkeydown: (event) => {
      event.stopPropagation();
      if (event.key === "Escape") {
        input.value = "";
        find();
        input.blur();
      }
      if (event.key === "Enter") {
        const first = hits.querySelector("button");
        if (first) first.click();
      }
    } });
  view.search = input;
  return h("div", "search", input, hits);
}

function showRecord(index) {
  view.record = index;
  view.places = null;
  const record = DATA.records[index];
  view.sections = sections(record);
  view.tabs = view.sections.map(([label, n], i) => h("button", {
    type: "button", role: "tab", id: `tab-${i}`, "aria-controls": "panel", onclick: () => showTab(i),
  }, label, n === null ? null : " ", n === null ? null : h("span", "n", number(n))));
  view.panel = h("div", { id: "panel", role: "tabpanel", tabindex: "-1" });
  const tablist = h("div", { class: "tabs", role: "tablist", "aria-label": "Views", onkeydown: moveTab }, view.tabs);
  view.body.replaceChildren(hero(record), tablist, h("main", "", view.panel));
  document.querySelectorAll(".picker button").forEach((b, i) => b.setAttribute("aria-current", String(i === index)));
  showTab(0);
}

function moveTab(event) {
  const n = view.tabs.length;
  const move = { ArrowRight: view.tab + 1, ArrowLeft: view.tab - 1 + n, Home: 0, End: n - 1 }[event.key];
  if (move === undefined) return;
  event.preventDefault();
  showTab(move % n, true);
}

function moveCard(by) {
  const cards = [...view.panel.querySelectorAll(".card")];
  if (!cards.length) return;
  const at = cards.indexOf(document.activeElement.closest ? document.activeElement.closest(".card") : null);
  const next = cards[at < 0 ? (by > 0 ? 0 : cards.length - 1) : Math.min(Math.max(at + by, 0), cards.length - 1)];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function foldAll() {
  const all = [...view.panel.querySelectorAll("details")];
  const open = all.some((d) => !d.open);
  all.forEach((d) => { d.open = open; });
}

const KEYS = [
  ["1 – 5", "go to a view"], ["← →", "next view, on its tab"], ["j  k", "next card, card before"],
  ["e", "open or close all folds"], ["[  ]", "record before, next record"], ["/", "search"], ["t", "light or dark"], ["?", "this help"],
];

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || view.help.open) return;
  const n = DATA.records.length;
  const actions = {
    j: () => moveCard(1), k: () => moveCard(-1), e: foldAll, t: toggleTheme, "?": () => view.help.showModal(),
    "/": () => view.search.focus(),
    "[": () => n > 1 && showRecord((view.record - 1 + n) % n), "]": () => n > 1 && showRecord((view.record + 1) % n),
  };
  const digit = "123456789".indexOf(event.key);
  if (digit >= 0 && digit < view.sections.length) showTab(digit, true);
  else if (actions[event.key]) actions[event.key]();
  else return;
  event.preventDefault();
}

function picker() {
  if (DATA.records.length < 2) return null;
  return h("nav", { class: "picker", "aria-label": "Records" }, DATA.records.map((record, i) =>
    h("button", { type: "button", class: record.depth ? "child" : "", onclick: () => showRecord(i) }, record.name || `record ${i}`)));
}

function start() {
  view.help = helpDialog(KEYS);
  view.body = h("div", "");
  document.body.append(h("div", "page",
    h("div", "top", h("span", "brand", "Antiphon"), h("span", "name", DATA.name), search(),
      h("button", { type: "button", class: "icon keys", onclick: () => view.help.showModal() }, "Keys ?"),
      h("button", { type: "button", class: "icon", onclick: toggleTheme, "aria-label": "Light or dark" }, "◐")),
    picker(), view.body), view.help);
  document.addEventListener("keydown", onKey);
  if (DATA.records.length) showRecord(0);
  followHash();
  view.started = true;
  window.addEventListener("hashchange", followHash);
}

start();
