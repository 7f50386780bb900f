"""The browser of a dataset's rows: what its page holds, and how it goes in a real Chromium."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.messages import Conversation, Message, ToolCall
from antiphon.viewer import DatasetRow, render_rows
from chromium import opened
from sample_runs import HOSTILE, rich_encoding

if TYPE_CHECKING:
    from playwright.sync_api import Page

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def rows(n: int) -> Iterator[DatasetRow]:
    """Rows of which every seventh has a problem and every second a call."""
    for i in range(n):
        call = ToolCall("look", {"city": f"City {i}"}, f"c{i}")
        messages = [Message.user(f"Weather in City {i}? 日本")]
        if i % 2:
            messages.append(Message.assistant(tool_calls=[call]))
            messages.append(Message.tool(f"{i} degrees", call_id=f"c{i}", name="look"))
        messages.append(Message.assistant(f"It is {i}."))
        problems = ("message 1: something is wrong",) if i % 7 == 0 else ()
        yield DatasetRow(Conversation(tuple(messages)), str(i + 1), problems)


def hostile() -> DatasetRow:
    text = "".join(HOSTILE)
    call = ToolCall(text, {text: text}, "c1")
    messages = (Message.user(text), Message.assistant(text, tool_calls=[call]))
    return DatasetRow(Conversation(messages, metadata={text: text}), text, (text,))


def data_of(page: str) -> tuple[Any, list[Any]]:
    found = _DATA.search(page)
    assert found is not None
    about, *blocks = found[1].strip().split("\n")
    lines = [
        json.loads(line)
        for block in blocks
        for line in gzip.decompress(base64.b64decode(block)).decode().split("\n")
    ]
    return json.loads(about), lines


def test_a_page_holds_every_row_and_counts_them() -> None:
    about, lines = data_of(render_rows(rows(1203), title="rows.jsonl"))

    assert about["name"] == "rows.jsonl"
    assert len(about["counts"]) == len(lines) == 1203
    assert about["counts"][:2] == [[2, 0, 1], [4, 1, 0]]
    assert lines[1202]["title"] == "Weather in City 1202? 日本"


def test_no_text_of_a_row_stands_in_the_page_as_it_is() -> None:
    page = render_rows([hostile()])

    assert page.count("<script") == render_rows([]).count("<script")
    assert all(text not in page for text in HOSTILE if "<" in text)
    page.encode("utf-8")


@pytest.fixture
def page() -> "Iterator[Page]":
    with opened() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        said: list[str] = []
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: said.extend([] if r.url.startswith("file:") else [r.url]))
        yield page
        assert page.evaluate("window.broken") is None
        page.close()
        assert said == []


def _open(page: "Page", tmp_path: Path, *shown: DatasetRow, hash: str = "") -> None:
    file = tmp_path / "rows.html"
    file.write_text(render_rows(shown, title="rows.jsonl"), "utf-8")
    page.goto(file.as_uri() + hash)
    page.locator(".row").first.wait_for()


@pytest.mark.slow
def test_rows_are_searched_filtered_and_read(page: "Page", tmp_path: Path) -> None:
    _open(page, tmp_path, *rows(1203))
    status = page.get_by_role("status")

    page.keyboard.press("/")
    page.keyboard.type("city 120")
    page.get_by_text("4 of 1,203 rows").wait_for()
    page.keyboard.press("Escape")
    page.get_by_label("Search the rows").fill("日本")
    page.get_by_text("1,203 rows", exact=True).wait_for()
    page.get_by_label("Search the rows").fill("")
    page.get_by_label("Which rows").select_option("problems")
    page.get_by_text("172 of 1,203 rows").wait_for()
    page.locator(".row").nth(1).click()

    assert status.inner_text() == "172 of 1,203 rows"
    assert "City 7?" in page.locator("h1").inner_text()
    assert "something is wrong" in page.locator(".problems").inner_text()
    assert page.locator(".pair .side.result").inner_text().endswith("7 degrees")
    assert page.url.endswith("#7")


@pytest.mark.slow
def test_the_keyboard_goes_through_the_rows_and_a_link_leads_to_one(
    page: "Page", tmp_path: Path
) -> None:
    _open(page, tmp_path, *rows(60), hash="#41")
    page.get_by_role("heading", name="City 41?").wait_for()

    page.keyboard.press("j")
    page.get_by_role("heading", name="City 42?").wait_for()
    page.keyboard.press("k")
    page.get_by_role("heading", name="City 41?").wait_for()

    assert page.locator(".row[aria-selected=true]").is_visible()


@pytest.mark.slow
def test_a_hostile_row_runs_nothing_and_tokens_are_coloured(page: "Page", tmp_path: Path) -> None:
    made = DatasetRow(hostile().conversation, "1", ("x",), (rich_encoding(),))
    _open(page, tmp_path, made)

    page.locator(".tok").first.wait_for()
    page.keyboard.press("e")

    assert page.locator("main script, main iframe, main style").count() == 0


@pytest.mark.slow
def test_a_hundred_thousand_rows_open_within_two_seconds(page: "Page", tmp_path: Path) -> None:
    file = tmp_path / "rows.html"
    file.write_text(render_rows(rows(100_000)), "utf-8")
    session: Any = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    page.goto(file.as_uri())
    page.locator(".row").first.wait_for()
    metrics: list[Any] = session.send("Performance.getMetrics")["metrics"]
    took = next(m["value"] for m in metrics if m["name"] == "TaskDuration")  # of the page alone
    page.evaluate("document.querySelector('.list').scrollTop = 5_000_000")

    page.get_by_text("Weather in City 86210?").wait_for()
    assert took < 2


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_a_row_takes_the_screen_and_gives_it_back(
    scheme: Any, page: "Page", tmp_path: Path
) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme=scheme)
    _open(page, tmp_path, *rows(30), hostile())

    page.locator(".row").nth(3).click()
    page.get_by_role("heading", name="City 3?").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Rows").click()

    assert page.locator(".row").first.is_visible()
