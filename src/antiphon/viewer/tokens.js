// A conversation as the trainer sees it: its text, cut into tokens, each with its author and its weight.

const TOKENS_AT_ONCE = 4000;

function switcher(views, show) {
  const buttons = views.map(([label, make], i) => h("button", {
    type: "button", "aria-pressed": String(i === 0),
    onclick: (event) => {
      buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === event.currentTarget)));
      show(make);
    },
  }, label));
  show(views[0][1]);
  return h("span", { class: "switch", role: "group" }, buttons);
}

function visible(text, id) {
  return text === "" ? `⟨${id}⟩` : text.replace(/\n/g, "↵\n");
}

const AUTHORS = ["frame: the format's own", "given: the model reads it", "written: the model writes it"];

function spanStyle(span, mode) {
  const [, weight, author] = span;
  if (mode === "author") {
    return author === 2 ? { "background-color": "rgba(var(--weight), .30)" }
      : author === 1 ? { "background-color": "rgba(var(--given), .16)" } : {};
  }
  if (weight <= 0) return {};
  if (weight > 1) return { "background-color": `rgba(var(--heavy), ${Math.min(0.8, 0.25 + 0.12 * weight).toFixed(2)})` };
  return { "background-color": `rgba(var(--weight), ${(0.1 + 0.26 * weight).toFixed(3)})` };
}

function spanTitle(span, index) {
  const [text, weight, author, id, special] = span;
  const parts = id === null ? [] : [`#${index}`, `id ${id}`];
  parts.push(`weight ${weight}`, AUTHORS[author].split(":")[0]);
  if (special) parts.push("special");
  parts.push(spanReason(weight, author));
  return parts.join(" · ") + "  " + JSON.stringify(text);
}

function spanReason(weight, author) {
  if (weight > 0) {
    if (author !== 2) return "counts since the policy or the message's own loss says so";
    return weight === 1 ? "counts: the model wrote it" : "counts more or less by the policy or the message's own loss";
  }
  if (author === 2) return "left out by the policy or the message's own loss, or another text is served for it";
  return author === 1 ? "not trained: it is read" : "not trained: the family's own text";
}

function tokens(encoding) {
  const spans = encoding.spans;
  const cut = encoding.tokenizer !== "";
  const readout = h("div", { class: "readout", "aria-live": "off", hidden: true });
  const pre = h("pre", { tabindex: "0", "aria-label": "The conversation as the trainer sees it" });
  const more = h("button", { type: "button", class: "icon more" });
  let mode = "weight";
  let shown = 0;
  const point = (event) => {
    const index = event.target.dataset ? event.target.dataset.i : undefined;
    if (index === undefined) return;
    readout.hidden = false;
    readout.textContent = spanTitle(spans[+index], +index);
  };
  pre.addEventListener("pointerover", point);
  pre.addEventListener("click", point);
  const draw = (upTo) => {
    for (; shown < Math.min(upTo, spans.length); shown += 1) {
      const span = spans[shown];
      const node = h("span", {
        class: "tok" + ((mode === "author" ? span[2] > 0 : span[1] > 0) ? " on" : "") + (cut ? " cut" : "") + (span[4] ? " special" : ""),
        style: spanStyle(span, mode), "data-i": String(shown),
      }, visible(span[0], span[3]));
      pre.append(node);
    }
    more.hidden = shown >= spans.length;
    more.textContent = `Show ${number(Math.min(TOKENS_AT_ONCE, spans.length - shown))} more`;
  };
  more.addEventListener("click", () => draw(shown + TOKENS_AT_ONCE));
  const legend = h("span", "scale");
  const redraw = (next) => {
    mode = next;
    const upTo = Math.max(shown, TOKENS_AT_ONCE);
    shown = 0;
    pre.replaceChildren();
    draw(upTo);
    const swatch = (span, label) => [h("i", { style: spanStyle(span, mode) }), h("span", "", label)];
    legend.replaceChildren(...(mode === "author"
      ? AUTHORS.flatMap((label, i) => swatch(["", 0, i], label))
      : [0, 0.5, 1].concat(spans.some((s) => s[1] > 1) ? [2] : []).flatMap((w) => swatch(["", w, 0], w > 1 ? "over 1" : String(w)))));
  };
  const pick = switcher([["Weight", "weight"], ["Author", "author"]], redraw);
  const size = (some) => (cut ? some.length : some.reduce((sum, s) => sum + s[0].length, 0));
  const trained = size(spans.filter((s) => s[1] > 0));
  const total = spans.reduce((sum, s) => sum + s[1], 0);
  const share = ((100 * trained) / Math.max(size(spans), 1)).toFixed(0);
  return h("div", "",
    h("div", "bench", pick, legend),
    h("div", "facts",
      encoding.format ? h("span", "", "format ", h("b", "", encoding.format)) : null,
      encoding.policy ? h("span", "", "loss policy ", h("b", "", encoding.policy)) : null,
      h("span", "", "tokenizer ", h("b", "", encoding.tokenizer || "none, so stretches of text")),
      h("span", "", cut ? "tokens " : "characters ", h("b", "", number(size(spans)))),
      h("span", "", "trained ", h("b", "", `${number(trained)} (${share} %)`)),
      cut ? h("span", "", "sum of weights ", h("b", "", String(+total.toFixed(3)))) : null),
    h("div", "tokens", pre, more), readout);
}
