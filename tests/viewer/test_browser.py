"""The page in a real Chromium: nothing complains, hostile text is inert, the keyboard is enough."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.agent import Agent
from antiphon.messages import Conversation, Message
from antiphon.models import ScriptedModel
from antiphon.strategies import PlanAndExecute
from antiphon.tools import tool
from antiphon.viewer import Encoding, Record, Span, render_page
from chromium import opened
from sample_runs import HOSTILE, hostile_record, rich_encoding, rich_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with opened() as browser:
        yield browser


class Complaints(list[str]):
    """What a page's console said, its errors, and its requests."""


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(browser: "Browser", complaints: Complaints) -> "Iterator[Page]":
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda m: complaints.append(f"console: {m.text}"))
    page.on("pageerror", lambda e: complaints.append(f"error: {e}"))
    page.on(
        "request",
        lambda r: (
            None
            if r.url.startswith(("file:", "data:image/", "data:audio/"))
            else complaints.append(f"request: {r.url}")
        ),
    )
    yield page
    page.close()


def _open(page: "Page", tmp_path: Path, *records: Record) -> None:
    file = tmp_path / "page.html"
    file.write_text(render_page(records, title="run.json"), "utf-8")
    page.goto(file.as_uri())


def _rich() -> Record:
    return Record(rich_run(), "run.json", (rich_encoding(),))


@pytest.mark.parametrize("record", [_rich(), hostile_record()], ids=["rich", "hostile"])
def test_every_view_opens_without_a_complaint(
    record: Record, page: "Page", complaints: Complaints, tmp_path: Path
) -> None:
    _open(page, tmp_path, record)

    seen: list[str] = []
    for index in range(page.get_by_role("tab").count()):
        page.keyboard.press(str(index + 1))
        seen.append(page.locator("[role=tab][aria-selected=true]").inner_text().split()[0])

    assert seen == ["Conversation", "Timeline", "Steps", "Training", "Events"]
    assert complaints == []


def test_hostile_text_runs_nothing_and_is_shown(page: "Page", tmp_path: Path) -> None:
    _open(page, tmp_path, hostile_record())

    for key in ["1", "e", "2", "3", "4", "5"]:
        page.keyboard.press(key)
        assert page.evaluate("window.broken") is None
        assert page.locator("main script, main iframe, main style").count() == 0

    page.keyboard.press("1")
    assert HOSTILE[0] in page.locator(".card.user").inner_text()
    assert page.locator("main img").count() == 1
    assert page.locator("main audio").count() == 1
    assert page.locator("main video").count() == 0


def test_the_keyboard_is_enough(page: "Page", tmp_path: Path) -> None:
    _open(page, tmp_path, _rich())
    focused = "document.activeElement.getAttribute('aria-label') || document.activeElement.id"

    page.keyboard.press("j")
    assert page.evaluate(focused) == "Tools on offer"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate(focused) == "User message"
    page.keyboard.press("k")
    assert page.evaluate(focused) == "System message"

    assert page.locator("details[open]").count() == 1
    page.keyboard.press("e")
    assert page.locator("details:not([open])").count() == 0

    page.keyboard.press("2")
    assert page.evaluate(focused) == "tab-1"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "tab-2"

    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_a_bar_of_the_timeline_leads_to_its_step(page: "Page", tmp_path: Path) -> None:
    _open(page, tmp_path, _rich())

    page.keyboard.press("2")
    page.locator(".bar.model").nth(2).click()

    assert page.evaluate("document.activeElement.dataset.step") == "2"


def test_a_token_tells_its_weight_and_is_coloured_by_it(page: "Page", tmp_path: Path) -> None:
    _open(page, tmp_path, _rich())

    page.keyboard.press("4")
    tokens = page.locator(".tok")
    tokens.filter(has_text="Thought").click()

    assert "weight 1 · written" in page.locator(".readout").inner_text()
    paint = "e => getComputedStyle(e).backgroundColor"
    weights = {w: tokens.filter(has_text=t).evaluate(paint) for w, t in WEIGHED.items()}
    assert len(set(weights.values())) == len(WEIGHED)


def test_each_conversation_of_a_run_has_its_tokens(page: "Page", tmp_path: Path) -> None:
    other = Encoding((Span("elsewhere", 1.0, "written", 7),), "qwen3", "default", "qwen3")
    _open(page, tmp_path, Record(rich_run(), "run.json", (rich_encoding(), other)))

    page.keyboard.press("4")
    page.get_by_role("button", name="Conversation 2").click()

    assert page.locator(".tok").all_inner_texts() == ["elsewhere"]


def test_children_of_a_run_are_a_click_or_a_key_away(page: "Page", tmp_path: Path) -> None:
    child = replace(rich_run(), conversation=Conversation((Message.user("and you?"),)))
    run = replace(rich_run(), children=(replace(child, call_id="c1"),))
    _open(page, tmp_path, Record(run, "run.json"))

    page.keyboard.press("]")
    assert page.locator("h1").inner_text() == "and you?"
    page.locator(".picker button").first.click()

    assert page.locator("h1").inner_text().startswith("What is the weather")


WEIGHED = {0: "weather", 0.5: " it", 1: "look", 2: "Action"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_no_view_is_wider_than_its_screen(
    width: int, scheme: str, browser: "Browser", tmp_path: Path
) -> None:
    page = browser.new_page(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    _open(page, tmp_path, _rich(), hostile_record())

    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    for record in range(2):
        page.locator(".picker button").nth(record).click()
        for index in range(5):
            page.keyboard.press(str(index + 1))
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_what_stands_on_a_colour_can_be_read(browser: "Browser", tmp_path: Path) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 to 1 for text, in both schemes."""
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        _open(page, tmp_path, _rich())
        for index in range(5):
            page.keyboard.press(str(index + 1))
            low = page.evaluate(_LOW_CONTRAST)
            assert low == [], f"{scheme}, view {index + 1}"
        page.close()


_LOW_CONTRAST = """() => {
  const parse = (colour) => {
    const n = colour.match(/[\\d.]+/g).map(Number);
    const scale = colour.startsWith("color(") ? 255 : 1;
    return [n[0] * scale, n[1] * scale, n[2] * scale, n.length > 3 ? n[3] : 1];
  };
  const over = (top, under) => under.map((v, i) => top[i] * top[3] + v * (1 - top[3]));
  const ground = (e) => {
    if (!e) return [255, 255, 255];
    return over(parse(getComputedStyle(e).backgroundColor), ground(e.parentElement));
  };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const low = [];
  for (const e of document.querySelectorAll(".page *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility()) continue;
    const under = ground(e);
    const ink = light(over(parse(getComputedStyle(e).color), under));
    const paper = light(under);
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) low.push(`${e.className} ${ratio.toFixed(2)} ${e.textContent.slice(0, 30)}`);
  }
  return low;
}"""


def test_a_word_is_found_wherever_it_stands_and_leads_there(page: "Page", tmp_path: Path) -> None:
    _open(page, tmp_path, _rich())

    page.keyboard.press("/")
    page.keyboard.type("weather")
    places = page.locator(".hits button")
    names = {text.split(" ")[0] for text in page.locator(".hits .where").all_inner_texts()}
    places.filter(has_text="Steps").first.click()

    assert names == {"Conversation", "Steps", "Events"}
    assert page.locator(".card.found").count() == 1
    assert page.locator("[role=tab][aria-selected=true]").inner_text().startswith("Steps")


@pytest.mark.parametrize("place", ["conversation/1", "steps/2", "events/3"])
def test_a_link_leads_to_its_place(place: str, page: "Page", tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(render_page([_rich()]), "utf-8")

    page.goto(f"{file.as_uri()}#0/{place}")

    name, _, number = place.partition("/")
    key = "data-row" if name == "events" else "data-step"
    assert page.evaluate(f"document.activeElement.getAttribute('{key}')") == number
    assert page.url.endswith(f"#0/{place}")


def test_what_was_written_and_what_was_read_stand_side_by_side(
    page: "Page", tmp_path: Path
) -> None:
    _open(page, tmp_path, _rich())

    page.keyboard.press("3")

    assert page.locator(".beside .tag.call").count() >= 1


def test_a_run_of_ten_thousand_events_opens_within_two_seconds(
    page: "Page", complaints: Complaints, tmp_path: Path
) -> None:
    run = rich_run()
    body = run.conversation.messages[1:]
    many = replace(
        run,
        conversation=replace(run.conversation, messages=run.conversation.messages + body * 500),
        events=(run.events * (10_000 // len(run.events) + 1))[:10_000],
    )
    file = tmp_path / "page.html"
    file.write_text(render_page([Record(many)]), "utf-8")

    session: Any = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.goto(file.as_uri())
    page.locator(".card").first.wait_for()
    metrics: list[Any] = session.send("Performance.getMetrics")["metrics"]
    took = next(m["value"] for m in metrics if m["name"] == "TaskDuration")  # of the page alone
    page.keyboard.press("4")
    page.locator(".log tr").nth(100).wait_for()

    assert took < 2
    assert complaints == []


def _planned() -> Record:
    """A run whose plan has tasks in every state that one can end in."""

    def look(q: str) -> str:
        """Looks."""
        if q == "bad":
            raise ValueError(HOSTILE[0])
        return f"found {q}"

    def step(id: str, q: str) -> dict[str, Any]:
        return {"id": id, "tool": "look", "arguments": {"q": q}}

    tasks = [step("a", "1"), step("b", "bad"), step("c", "${a}"), step("d", "${b} and ${c}")]
    model = ScriptedModel([json.dumps({"tasks": tasks})])
    agent = Agent(model=model, tools=[tool(look, threaded=False)])
    plan = PlanAndExecute(agent, max_replans=0)
    with ThreadPoolExecutor(1) as thread:  # the browser's own event loop runs in this one
        result = thread.submit(plan.run_sync, "go").result()
    return Record(result.trajectory, "plan.json")


def test_a_plan_is_drawn_as_a_graph_with_the_states_of_its_tasks(
    page: "Page", complaints: Complaints, tmp_path: Path
) -> None:
    _open(page, tmp_path, _planned())
    page.get_by_role("tab", name="Plan").click()

    boxes = page.locator("svg.plan g.task")
    shown = {box.locator("text.id").text_content(): box for box in boxes.all()}
    states = {id: (box.get_attribute("class") or "").split()[1] for id, box in shown.items()}
    assert states == {"a": "completed", "b": "failed", "c": "completed", "d": "skipped"}

    rects = {id: box.locator("rect").bounding_box() for id, box in shown.items()}
    top = {id: rect["y"] for id, rect in rects.items() if rect is not None}
    assert top["a"] == top["b"] < top["c"] < top["d"]
    assert page.locator("svg.plan path.need").count() == 3
    fills = {
        id: box.locator("rect").evaluate("r => getComputedStyle(r).stroke")
        for id, box in shown.items()
    }
    assert fills["a"] == fills["c"]
    assert len({fills["a"], fills["b"], fills["d"]}) == 3

    rows = page.get_by_role("group", name="Tasks of the plan").locator("tbody tr")
    assert [row.locator("td").nth(1).inner_text() for row in rows.all()] == list(states.values())
    assert HOSTILE[0] in rows.nth(1).inner_text()
    assert (page.evaluate("window.broken"), complaints) == (None, [])
