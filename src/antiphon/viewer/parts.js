// What every page is drawn with.  Every text reaches a page through textContent: nothing that a user,
// a tool or a model wrote is ever parsed as markup.
"use strict";

// An element: h("div", "class", children...) or h("div", {class, title, onclick, ...}, children...).
function h(tag, props, ...children) {
  const node = document.createElement(tag);
  if (typeof props === "string") node.className = props;
  else for (const [key, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child);
  }
  return node;
}

const seconds = (s) =>
  s === null || s === undefined ? "" : s < 0.0995 ? `${(s * 1000).toFixed(s < 0.00995 ? 1 : 0)} ms`
    : s < 100 ? `${s.toFixed(s < 9.95 ? 2 : 1)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || one + "s"}`;
const number = (n) => n.toLocaleString("en");

// --- JSON, shown as it was written: tokens are copied, only the white space between them is new.

const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+/gs;

function jsonTokens(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object") return null;
  } catch (error) {
    return null;
  }
  return text.match(JSON_TOKEN);
}

function jsonView(text) {
  const tokens = jsonTokens(text);
  const pre = h("pre", tokens ? "json" : "");
  if (!tokens) {
    pre.textContent = text;
    return pre;
  }
  const flat = text.length <= 48;
  let depth = 0;
  const newline = () => (flat ? "" : "\n" + "  ".repeat(depth));
  tokens.forEach((token, i) => {
    const next = tokens[i + 1];
    if (token === "{" || token === "[") {
      depth += 1;
      pre.append(token + (next === "}" || next === "]" ? "" : newline()));
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const before = tokens[i - 1];
      pre.append((before === "{" || before === "[" ? "" : newline()) + token);
    } else if (token === ",") pre.append("," + (flat ? " " : newline()));
    else if (token === ":") pre.append(": ");
    else pre.append(h("span", next === ":" ? "k" : token[0] === '"' ? "s" : "v", token));
  });
  return pre;
}

function fold(summary, ...children) {
  return h("details", "", h("summary", "", summary), ...children);
}

// Pictures, sounds and films that are in the page itself are shown; nothing is fetched for others.
function media(items) {
  if (!items || !items.length) return null;
  return h("div", "media", items.map(({ kind, source }) => {
    const inline = /^data:(image|audio|video)\//i.exec(source);
    if (!inline) return h("code", "ref", `${kind}: ${source}`);
    return inline[1].toLowerCase() === "image"
      ? h("img", { src: source, alt: `${kind} from the conversation` })
      : h(inline[1].toLowerCase(), { src: source, controls: "", "aria-label": `${kind} from the conversation` });
  }));
}

// --- Light and dark, and a dialog of keys

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = { chosen: null };
function applyTheme() {
  document.documentElement.dataset.theme = theme.chosen || (dark.matches ? "dark" : "light");
}
function toggleTheme() {
  theme.chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  applyTheme();
}
applyTheme();
dark.addEventListener("change", applyTheme);

function helpDialog(keys) {
  const close = h("button", { type: "button", class: "icon", onclick: () => node.close() }, "Close");
  const node = h("dialog", { "aria-label": "Keys" }, h("h2", "", "Keys"),
    h("dl", "", keys.flatMap(([key, what]) => [h("dt", "", h("kbd", "", key)), h("dd", "", what)])), close);
  return node;
}
