// Talks with the agent that this page's server runs.  Whatever comes from it is shown through
// textContent (see the parts before this); the page keeps nothing and asks no other server.

const state = { session: "", run: "", busy: null, runs: [], about: { name: "", tools: [] } };
const ui = {};

// --- Asking the server

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, body, signal) {
  const options = { method, headers: {}, signal, credentials: "same-origin" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  if (response.ok) return response;
  let message = response.statusText || `status ${response.status}`;
  try {
    message = (await response.json()).error.message;
  } catch (error) {
    // what is no JSON has no message for people
  }
  throw new Refused(response.status, message);
}

// The events of a stream, in any chunks.
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let type = "message";
      const data = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) type = line.slice(7);
        else if (line.startsWith("data: ")) data.push(line.slice(6));
      }
      if (data.length) yield [type, JSON.parse(data.join("\n"))];
    }
  }
}

// --- A turn of the assistant, as it is written

class Turn {
  constructor() {
    this.node = h("article", { class: "card assistant", tabindex: "0", "aria-label": "Assistant message" });
    this.calls = new Map();
    this.drafts = new Map();
    this.text = null;
    this.thought = null;
    this.wrote = false;
    this.begin();
  }

  begin() {
    this.stepNodes = [];
    this.drafts.clear();
    this.text = null;
    this.thought = null;
  }

  add(node) {
    this.node.append(node);
    this.stepNodes.push(node);
    return node;
  }

  write(piece) {
    this.thought = null;
    if (!this.text) this.text = this.add(h("div", "text"));
    this.text.append(piece);
    this.wrote = true;
  }

  think(piece) {
    if (!this.thought) {
      this.text = null;
      this.thought = h("div", "text");
      const node = fold("Reasoning", this.thought);
      node.className = "thought";
      node.open = true;
      this.add(node);
    }
    this.thought.append(piece);
  }

  draft(event) {
    this.text = this.thought = null;
    const key = `${event.step}/${event.index}`;
    let draft = this.drafts.get(key);
    if (!draft) {
      const name = h("b", "");
      const pre = h("pre", "");
      draft = { name, pre, node: this.add(h("div", "pair single", h("div", "side call", h("div", "label", name), pre))) };
      this.drafts.set(key, draft);
    }
    draft.name.append(event.name || "");
    draft.pre.append(event.arguments || "");
  }

  call(call) {
    this.text = this.thought = null;
    for (const draft of this.drafts.values()) draft.node.remove();
    this.drafts.clear();
    if (this.calls.has(call.id)) return;
    const result = h("div", "side none", h("div", "label", h("span", "waiting", "running …")));
    const node = h("div", { class: "pair", "data-call": call.id },
      h("div", "side call", h("div", "label", h("b", "", call.name)), jsonView(JSON.stringify(call.arguments))), result);
    this.calls.set(call.id, { node, result, name: call.name });
    this.add(node);
  }

  answer(result, duration) {
    const call = this.calls.get(result.call_id);
    if (!call) return;
    const node = h("div", "side " + (result.is_error ? "bad" : "result"),
      h("div", "label", h("b", "", result.is_error ? "error" : "result"), h("span", "right", seconds(duration))),
      jsonView(result.text), media((result.images || []).map((i) => ({ kind: "image", source: i.source || i }))));
    call.result.replaceWith(node);
    call.result = node;
    const asked = call.node.querySelector(".approve");
    if (asked) asked.remove();
  }

  invalid(call) {
    for (const draft of this.drafts.values()) draft.node.remove();
    this.drafts.clear();
    this.add(h("div", "pair single", h("div", "side bad",
      h("div", "label", h("b", "", call.name || "unreadable call"), h("span", "", "not a call")),
      h("pre", "", call.raw), h("p", "", call.reason))));
  }

  notice(text, bad) {
    this.text = this.thought = null;
    this.node.append(h("p", "notice" + (bad ? " bad" : ""), text));
  }

  discard() {
    for (const node of this.stepNodes) node.remove();
    this.begin();
  }

  plan(plan) {
    if (!this.graph) {
      this.graph = new PlanGraph();
      this.node.append(this.graph.node);
    }
    this.graph.show(plan);
  }

  ask(pending, decide) {
    const open = new Map(pending.map((call) => [call.id, null]));
    for (const call of pending) {
      if (!this.calls.has(call.id)) this.call(call);
      const shown = this.calls.get(call.id);
      shown.result.replaceChildren(h("div", "label", h("span", "waiting", "waits for you")));
      const reason = h("input", { type: "text", placeholder: "why not (optional)", "aria-label": `Why not ${call.name}` });
      const say = (approved) => {
        open.set(call.id, approved ? true : { approved: false, reason: reason.value });
        bar.replaceChildren(h("b", "", approved ? "Approved" : "Refused"));
        if ([...open.values()].every((value) => value !== null)) decide(Object.fromEntries(open));
      };
      const bar = h("div", { class: "approve", role: "group", "aria-label": `Approve ${call.name}?` },
        h("b", "", `Run ${call.name}?`), reason,
        h("button", { type: "button", class: "icon", onclick: () => say(false) }, "Refuse"),
        h("button", { type: "button", class: "primary", onclick: () => say(true) }, "Approve"));
      shown.node.append(bar);
    }
    const first = this.node.querySelector(".approve .primary");
    if (first) first.focus({ preventScroll: true });
  }
}

// --- A plan as a graph: a column for each depth

const SVG = "http://www.w3.org/2000/svg";
function s(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

class PlanGraph {
  constructor() {
    this.title = h("h2", "");
    this.scroll = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Plan" });
    this.node = h("div", "plan", this.title, this.scroll);
    this.nodes = new Map();
  }

  show(plan) {
    const tasks = plan.tasks || [];
    const ids = new Set(tasks.map((task) => task.id));
    const needs = new Map(tasks.map((task) => {
      const text = JSON.stringify([task.arguments || {}, task.prompt || ""]);
      const referred = [...text.matchAll(/\$\{([A-Za-z0-9_-]+)/g)].map((match) => match[1]);
      return [task.id, [...new Set([...(task.depends_on || []), ...referred])].filter((id) => ids.has(id) && id !== task.id)];
    }));
    const depth = new Map();
    const depthOf = (id, seen) => {
      if (depth.has(id)) return depth.get(id);
      if (seen.has(id)) return 0;
      const found = Math.max(-1, ...needs.get(id).map((before) => depthOf(before, new Set([...seen, id])))) + 1;
      depth.set(id, found);
      return found;
    };
    tasks.forEach((task) => depthOf(task.id, new Set()));
    const [W, H, GX, GY] = [176, 46, 44, 14];
    const rows = new Map();
    const place = new Map();
    tasks.forEach((task) => {
      const x = depth.get(task.id);
      const y = rows.get(x) || 0;
      rows.set(x, y + 1);
      place.set(task.id, [x * (W + GX) + 1, y * (H + GY) + 1]);
    });
    const width = (Math.max(0, ...depth.values()) + 1) * (W + GX) - GX + 2;
    const height = Math.max(1, ...rows.values()) * (H + GY) - GY + 2;
    const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "list", "aria-label": "Tasks" });
    tasks.forEach((task) => needs.get(task.id).forEach((before) => {
      const [x1, y1] = place.get(before);
      const [x2, y2] = place.get(task.id);
      const [a, b] = [x1 + W, y1 + H / 2];
      svg.append(s("path", { class: "edge", d: `M${a} ${b} C${a + GX / 2} ${b} ${x2 - GX / 2} ${y2 + H / 2} ${x2} ${y2 + H / 2}` }));
    }));
    this.nodes.clear();
    tasks.forEach((task) => {
      const [x, y] = place.get(task.id);
      const words = String(task.title || task.tool || task.prompt || task.agent || task.id);
      const label = words.length > 25 ? words.slice(0, 24) + "…" : words;
      const status = s("text", { class: "state", x: x + 10, y: y + 36 });
      const group = s("g", { role: "listitem" }, s("title", {}, `${task.id}: ${words}`),
        s("rect", { x, y, width: W, height: H, rx: 8 }), s("text", { x: x + 10, y: y + 19 }, label), status);
      this.nodes.set(task.id, { group, status });
      this.state(task.id, task.status || "pending");
      svg.append(group);
    });
    this.title.textContent = plan.revision ? `Plan, revision ${plan.revision}` : "Plan";
    this.scroll.replaceChildren(svg);
  }

  state(id, status, reason) {
    const task = this.nodes.get(id);
    if (!task) return;
    task.group.setAttribute("class", `node ${status}`);
    task.status.textContent = status.replace(/_/g, " ") + (reason ? ` · ${reason.slice(0, 18)}` : "");
  }
}

// --- The thread

function atEnd() {
  const t = ui.thread;
  return t.scrollHeight - t.scrollTop - t.clientHeight < 80;
}

function follow(was) {
  if (was) ui.thread.scrollTop = ui.thread.scrollHeight;
}

function show(turn, type, event) {
  switch (type) {
    case "step_start": turn.begin(); break;
    case "text_delta": turn.write(event.text); break;
    case "thinking_delta": turn.think(event.text); break;
    case "tool_call_delta": turn.draft(event); break;
    case "tool_call": turn.call(event.call); break;
    case "approval": turn.call(event.call); break;
    case "tool_result": turn.answer(event.result, event.duration); break;
    case "invalid_tool_call": turn.invalid(event.call); break;
    case "retry": turn.discard(); turn.notice("The model call broke and is made again.", true); break;
    case "handoff": turn.notice(`${event.source} hands over to ${event.target}`); break;
    case "limit": turn.notice(`The limit ${event.limit} was reached`, true); break;
    case "feedback": turn.notice(`Feedback: ${event.text}`); break;
    case "compaction": turn.notice("The conversation is shown shorter from here on."); break;
    case "plan": if (event.plan && event.plan.tasks) turn.plan(event.plan); if (event.reason) turn.notice(event.reason, true); break;
    case "replan": turn.notice(`The plan is made anew: ${event.reason}`); break;
    case "task":
      if (turn.graph) turn.graph.state(event.task, event.status, event.reason);
      if (event.call) turn.call(event.call);
      if (event.result) turn.answer(event.result, null);
      break;
    case "attempt": turn.notice(`Attempt ${event.attempt}: ${event.verdict}${event.feedback ? ". " + event.feedback : ""}`, event.verdict !== "passed"); break;
    case "reflection": turn.notice(`Learned: ${event.text}`); break;
    default: break;
  }
}

async function run(path, body, turn) {
  const stop = new AbortController();
  state.busy = stop;
  busy(true);
  turn.node.classList.add("cursor");
  try {
    const response = await ask("POST", path, { ...body, stream: true }, stop.signal);
    for await (const [type, event] of eventsOf(response)) {
      const was = atEnd();
      if (type === "run") {
        state.session = event.session;
        state.run = event.id;
      } else if (type === "result") ended(turn, event);
      else if (type === "error") turn.notice(event.error.message, true);
      else show(turn, type, event);
      follow(was);
    }
  } catch (error) {
    if (error.status === 401) return logIn();
    turn.notice(error.name === "AbortError" ? "Stopped." : error.message, true);
  } finally {
    turn.node.classList.remove("cursor");
    state.busy = null;
    busy(false);
    listSessions();
  }
}

function ended(turn, result) {
  if (result.stop_reason === "pending") {
    turn.ask(result.pending, (decisions) => run(`/v1/agent/runs/${encodeURIComponent(result.id)}/resume`, { decisions }, turn));
  } else if (result.stop_reason === "error") turn.notice(result.error || "The run broke.", true);
  else if (result.stop_reason !== "answer" && result.stop_reason !== "stopped_by_tool") {
    turn.notice(`The run ended: ${result.stop_reason.replace(/_/g, " ")}`, true);
  } else if (!turn.wrote && result.text) turn.write(result.text);
}

function userCard(text) {
  return h("article", { class: "card user", tabindex: "0", "aria-label": "User message" }, h("div", "text", text));
}

function send() {
  const text = ui.input.value.trim();
  if (!text || state.busy) return;
  ui.input.value = "";
  grow();
  if (ui.empty) ui.empty.remove();
  ui.empty = null;
  const turn = new Turn();
  ui.cards.append(userCard(text), turn.node);
  follow(true);
  run("/v1/agent/runs", { input: text, ...(state.session ? { session: state.session } : {}) }, turn);
}

function busy(is) {
  ui.send.textContent = is ? "Stop" : "Send";
  ui.send.setAttribute("aria-label", is ? "Stop the run" : "Send the message");
  ui.export.hidden = !state.run;
}

function grow() {
  ui.input.style.setProperty("height", "auto");
  ui.input.style.setProperty("height", `${ui.input.scrollHeight}px`);
}

// --- Sessions

async function listSessions() {
  let rows;
  try {
    rows = (await (await ask("GET", "/v1/agent/runs?limit=200")).json()).data;
  } catch (error) {
    if (error.status === 401) logIn();
    return;
  }
  state.runs = rows;
  const sessions = new Map();
  for (const row of rows) {
    const known = sessions.get(row.session);
    if (known) known.first = row;
    else sessions.set(row.session, { last: row, first: row });
  }
  ui.sessions.replaceChildren(...[...sessions].map(([name, { first, last }]) => h("button", {
    type: "button", "aria-current": String(name === state.session), title: first.question, onclick: () => openSession(name, last.id),
  }, first.question || "(no words)", h("span", "when", new Date(last.updated * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })),
    last.status === "pending" ? h("span", "badge", "waits for you") : null)));
}

function fresh() {
  if (state.busy) state.busy.abort();
  state.session = state.run = "";
  ui.cards.replaceChildren();
  ui.empty = h("div", "empty", h("h1", "", `Talk with ${state.about.name || "the agent"}`),
    state.about.description ? h("p", "", state.about.description) : null,
    state.about.tools.length ? h("p", "", "It can use: ", state.about.tools.map((t) => t.name).join(", ")) : null);
  ui.cards.append(ui.empty);
  busy(false);
  listSessions();
  ui.side.classList.remove("open");
  ui.input.focus();
}

async function openSession(name, id) {
  if (state.busy) state.busy.abort();
  const record = await (await ask("GET", `/v1/agent/runs/${encodeURIComponent(id)}`)).json();
  state.session = name;
  state.run = id;
  ui.empty = null;
  let turn = null;
  const cards = [];
  for (const message of record.messages) {
    if (message.role === "system") continue;
    if (message.role === "user") {
      turn = null;
      cards.push(userCard(textOf(message.content)));
    } else if (message.role === "tool") {
      if (turn) turn.answer({ call_id: message.tool_call_id, text: textOf(message.content), is_error: message.is_error === true }, null);
    } else {
      if (!turn) {
        turn = new Turn();
        cards.push(turn.node);
      }
      turn.begin();
      if (message.reasoning_content) turn.think(message.reasoning_content);
      if (textOf(message.content)) turn.write(textOf(message.content));
      for (const call of message.tool_calls || []) turn.call({ id: call.id, name: call.function.name, arguments: call.function.arguments });
      for (const call of message.invalid_tool_calls || []) turn.invalid(call);
    }
  }
  ui.cards.replaceChildren(...cards);
  if (record.stop_reason === "pending") {
    const answered = new Set(record.messages.filter((m) => m.role === "tool").map((m) => m.tool_call_id));
    const waiting = (record.events || []).filter((e) => e.type === "approval").map((e) => e.call)
      .filter((call) => call && !answered.has(call.id));
    if (!turn) {
      turn = new Turn();
      ui.cards.append(turn.node);
    }
    const calls = [...new Map(waiting.map((call) => [call.id, call])).values()];
    ended(turn, { stop_reason: "pending", id, pending: calls });
  }
  busy(false);
  listSessions();
  ui.side.classList.remove("open");
  follow(true);
}

function textOf(content) {
  if (typeof content === "string") return content;
  return (content || []).map((part) => part.text || "").join("");
}

// --- The page

function logIn(wrong) {
  const input = h("input", { type: "password", "aria-label": "Key", autocomplete: "current-password", placeholder: "key" });
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    try {
      await ask("POST", "/login", { key: input.value });
    } catch (error) {
      return logIn(error.message);
    }
    start();
  } }, input, h("button", { type: "submit", class: "primary" }, "Open"));
  document.body.replaceChildren(h("main", "login", h("h1", "", "This server wants a key"), form, wrong ? h("p", { class: "failure", role: "alert" }, wrong) : null));
  input.focus();
}

const KEYS = [
  ["Enter", "send"], ["Shift Enter", "a new line"], ["Esc", "stop the run"], ["/", "to the message"],
  ["n", "new conversation"], ["t", "light or dark"], ["?", "this help"],
];

function onKey(event) {
  if (event.key === "Escape" && state.busy) return state.busy.abort();
  const typing = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey || ui.help.open) return;
  const actions = { "/": () => ui.input.focus(), n: fresh, t: toggleTheme, "?": () => ui.help.showModal() };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function exportRun() {
  const link = h("a", { href: `/v1/agent/runs/${encodeURIComponent(state.run)}/page`, download: `run-${state.run.slice(0, 12)}.html` });
  link.click();
}

function layout() {
  ui.help = helpDialog(KEYS);
  ui.sessions = h("nav", { class: "sessions", "aria-label": "Conversations" });
  ui.side = h("div", "side-bar", h("header", "", h("span", "brand", "Antiphon"),
    h("button", { type: "button", class: "icon", onclick: fresh }, "New")), ui.sessions);
  ui.cards = h("div", { class: "cards", role: "log", "aria-live": "polite", "aria-label": "Conversation" });
  ui.thread = h("div", { class: "thread", tabindex: "-1" }, ui.cards);
  ui.input = h("textarea", { rows: "1", placeholder: "Message", "aria-label": "Message", oninput: grow, onkeydown: (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  } });
  ui.send = h("button", { type: "submit", class: "primary" }, "Send");
  ui.export = h("button", { type: "button", class: "icon", onclick: exportRun, hidden: true }, "Export");
  const form = h("form", { onsubmit: (event) => {
    event.preventDefault();
    if (state.busy) state.busy.abort();
    else send();
  } }, ui.input, ui.send);
  const open = () => ui.side.classList.toggle("open");
  document.body.replaceChildren(h("div", "chat", ui.side, h("div", "main",
    h("header", "",
      h("button", { type: "button", class: "icon only-narrow", onclick: open, "aria-label": "Conversations" }, "☰"),
      h("span", "who-answers", state.about.name), ui.export,
      h("button", { type: "button", class: "icon keys", onclick: () => ui.help.showModal() }, "Keys ?"),
      h("button", { type: "button", class: "icon", onclick: toggleTheme, "aria-label": "Light or dark" }, "◐")),
    ui.thread, h("div", "composer", form))), ui.help);
}

async function start() {
  try {
    state.about = await (await ask("GET", "/v1/agent")).json();
  } catch (error) {
    return logIn(error.status === 401 ? "" : error.message);
  }
  layout();
  fresh();
}

document.addEventListener("keydown", (event) => { if (ui.help) onKey(event); });
start();
