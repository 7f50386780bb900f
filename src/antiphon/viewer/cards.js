// A conversation as cards: calls beside their results.  Knows a `view` with the record that is shown.

const ROLES = { system: "System", user: "User", assistant: "Assistant", tool: "Tool" };

function callPair(call) {
  const result = call.result;
  return h("div", "pair",
    h("div", "side call",
      h("div", "label", h("b", "", call.name), call.repairs.length
        ? h("span", { class: "right", title: call.repairs.join(", ") }, "repaired: " + call.repairs.join(", ")) : null),
      jsonView(call.arguments),
      call.raw ? fold("as written", h("pre", "", call.raw)) : null),
    result === null
      ? h("div", "side none", h("div", "label", "no result"))
      : h("div", "side " + (result.is_error ? "bad" : "result"),
        h("div", "label", h("b", "", result.is_error ? "error" : "result"),
          h("span", "right", seconds(result.duration))),
        jsonView(result.text),
        media(result.media),
        result.full_text !== null && result.full_text !== result.text
          ? fold("the whole text, of which the model saw a part", h("pre", "", result.full_text)) : null));
}

function invalidPair(call) {
  return h("div", "pair" + (call.answer === null ? " single" : ""),
    h("div", "side bad",
      h("div", "label", h("b", "", call.name || "unreadable call"), h("span", "", "not a call")),
      h("pre", "", call.raw), h("p", "", call.reason)),
    call.answer === null ? null
      : h("div", "side bad", h("div", "label", h("b", "", "what the model was told")), jsonView(call.answer)));
}

// A link to a place of this page: record, view, and a step or a row in it.
function linkTo(view_name, place) {
  return `#${view.record}/${view_name.toLowerCase()}${place === null ? "" : "/" + place}`;
}

function permalink(view_name, place) {
  return h("a", { class: "permalink", href: linkTo(view_name, place), "aria-label": `Link to ${view_name.toLowerCase()} ${place}` }, "#");
}

function stepFacts(step) {
  if (!step) return "";
  const facts = [];
  if (step.duration !== null) facts.push(seconds(step.duration));
  if (step.usage.output) facts.push(count(step.usage.output, "token"));
  return facts.join(" · ");
}

function who(item, record) {
  const step = item.step === null || item.step === undefined ? null : record.steps[item.step];
  return h("div", "who",
    h("span", "role", ROLES[item.role] || item.role),
    item.name ? h("span", "", item.name) : null,
    item.loss !== null && item.loss !== undefined ? h("span", "badge", `loss ${item.loss}`) : null,
    step ? h("span", "right", `step ${item.step} · ${stepFacts(step)}`.replace(/ · $/, ""), " ", permalink("Conversation", item.step)) : null);
}

function card(item, record) {
  if (item.kind === "notice") {
    const bad = item.what === "retry" || item.what === "limit" || /error/.test(item.text);
    return h("p", "notice" + (bad ? " bad" : ""), item.text);
  }
  const node = h("article", {
    class: `card ${item.role}${item.role === "system" ? " quiet" : ""}${item.is_error ? " error" : ""}`,
    tabindex: "0",
    "aria-label": `${ROLES[item.role] || item.role} message`,
  });
  if (item.step !== null && item.step !== undefined) node.dataset.step = item.step;
  if (item.role === "system") {
    node.append(fold("System message", h("div", "text", item.text)));
    return node;
  }
  node.append(who(item, record));
  if (item.reasoning) {
    const thought = fold("Reasoning", h("div", "text", item.reasoning));
    thought.className = "thought";
    thought.open = item.reasoning.length <= 600;
    node.append(thought);
  }
  if (item.text) node.append(item.role === "tool" ? jsonView(item.text) : h("div", "text", item.text));
  const shown = media(item.media);
  if (shown) node.append(shown);
  for (const call of item.calls || []) node.append(callPair(call));
  for (const call of item.invalid || []) node.append(invalidPair(call));
  return node;
}
