"""The chat page in a real Chromium, against a real server: stream, approve, stop, go on, export."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.agent import Agent
from antiphon.messages import Conversation, Message, ToolCall
from antiphon.models import Answer, ScriptedModel
from antiphon.serve import Runnable, Server, ServeSettings
from antiphon.strategies import PlanAndExecute
from antiphon.tools import tool
from chromium import FLAGS, chromium

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=window.broken=1><script>window.broken=1</script>"


@tool
def weather(city: str) -> dict[str, str]:
    """Current weather."""
    return {"city": city, "said": HOSTILE}


@tool(approval=True)
def book(place: str) -> str:
    """Books a table."""
    return f"booked {place}"


@tool
async def sleep() -> str:
    """Sleeps."""
    await asyncio.Event().wait()
    return ""


def answer(conversation: Conversation) -> Answer:
    """What each question is about decides what is done."""
    messages = conversation.messages
    begins = max(n for n, message in enumerate(messages) if message.role == "user")
    question = messages[begins].text
    results = [m.text for m in messages[begins:] if m.role == "tool"]
    if "sleep" in question and not results:
        return Message.assistant("Good night.", tool_calls=[ToolCall("sleep", {}, "s1")])
    if "book" in question:
        if not results:
            call = ToolCall("book", {"place": HOSTILE}, f"b{begins}")
            return Message.assistant(reasoning=HOSTILE, tool_calls=[call])
        return f"Done: {results[-1]}"
    if "weather" in question and not results:
        return Message.assistant("Let me look.", tool_calls=[ToolCall("weather", {"city": "Lima"})])
    return f"You said {question}"


def clerk() -> Agent:
    return Agent(
        name="clerk",
        description="Helps.",
        model=ScriptedModel(answer),
        tools=[weather, book, sleep],
    )


class Chat:
    """A page that talks with a server."""

    def __init__(self, page: "Page", url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        page.on("console", lambda m: self._say(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda e: self._say(f"error: {e}"))
        page.on("request", lambda r: self._say(f"request: {r.url}"))

    def _say(self, text: str) -> None:
        """Remember a complaint: a warning, an error, or a request that leaves the server."""
        kind, _, rest = text.partition(": ")
        if kind in ("warning", "error") or (kind == "request" and not rest.startswith(self.url)):
            self.complaints.append(text)

    async def say(self, text: str) -> None:
        """Send a message and wait until the answer is over."""
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.keyboard.press("Enter")

    async def count(self, selector: str, n: int) -> bool:
        """Whether there come to be as many elements, and no more."""
        found = self.page.locator(selector)
        await found.nth(n - 1).wait_for()
        return await found.count() == n

    async def done(self, text: str) -> None:
        """Wait for a text in the thread, and for the end of the run."""
        await self.page.locator(".thread").get_by_text(text).last.wait_for()
        await self.page.get_by_role("button", name="Send the message").wait_for()


@asynccontextmanager
async def chatting(
    agent: Runnable, *, width: int = 1200, scheme: Any = "light", **settings: Any
) -> AsyncGenerator[Chat]:
    path = chromium()
    from playwright.async_api import async_playwright

    server = Server(agent=agent, settings=ServeSettings(port=0, drain_seconds=1.0, **settings))
    async with asyncio.timeout(90), server.listening(), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = await browser.new_page(
            viewport={"width": width, "height": 800}, color_scheme=scheme, accept_downloads=True
        )
        chat = Chat(page, server.url)
        await page.goto(server.url)
        yield chat
        await browser.close()


def talk(
    what: Callable[[Chat], Awaitable[None]], agent: Runnable | None = None, **options: Any
) -> list[str]:
    """Talk; what the browser complained about."""

    async def go() -> list[str]:
        async with chatting(agent or clerk(), **options) as chat:
            await what(chat)
            assert await chat.page.evaluate("window.broken") is None
            return chat.complaints

    return asyncio.run(go())


def test_an_answer_streams_with_its_calls_and_the_conversation_goes_on() -> None:
    async def ask(chat: Chat) -> None:
        await chat.say("the weather?")
        await chat.done("You said the weather?")
        pair = chat.page.locator(".pair")
        assert "Lima" in await pair.locator(".side.call").inner_text()
        assert HOSTILE in await pair.locator(".side.result").inner_text()
        await chat.say("and again")
        await chat.done("You said and again")
        assert await chat.count(".card.user", 2)
        assert await chat.count(".sessions button", 1)

    assert talk(ask) == []


def test_a_call_is_approved_or_refused_with_a_click() -> None:
    async def decide(chat: Chat) -> None:
        await chat.say("book a table")
        await chat.page.get_by_role("button", name="Approve").click()
        await chat.done("Done: booked")
        await chat.say("book another")
        await chat.page.get_by_label("Why not book").fill("too late")
        await chat.page.get_by_role("button", name="Refuse").click()
        await chat.done("too late")

    assert talk(decide) == []


def test_a_paused_conversation_is_found_again_and_decided() -> None:
    async def come_back(chat: Chat) -> None:
        await chat.say("book a table")
        await chat.page.get_by_role("button", name="Approve").wait_for()
        await chat.page.reload()
        await chat.page.locator(".sessions button").click()
        await chat.page.get_by_role("button", name="Approve").click()
        await chat.done("Done: booked")

    assert talk(come_back) == []


def test_a_run_is_stopped_with_a_key() -> None:
    async def stop(chat: Chat) -> None:
        await chat.say("sleep")
        await chat.page.get_by_text("running").wait_for()
        await chat.page.keyboard.press("Escape")
        await chat.done("Stopped.")

    assert talk(stop) == []


def test_a_run_is_exported_as_a_page_of_its_own(tmp_path: Path) -> None:
    async def export(chat: Chat) -> None:
        await chat.say("the weather?")
        await chat.done("You said the weather?")
        async with chat.page.expect_download() as waiting:
            await chat.page.get_by_role("button", name="Export").click()
        file = tmp_path / "run.html"
        await (await waiting.value).save_as(file)
        await chat.page.goto(file.as_uri())
        assert await chat.page.locator("h1").inner_text() == "the weather?"

    assert [c for c in talk(export) if "file:" not in c] == []


def test_a_key_opens_the_page_and_a_wrong_one_does_not() -> None:
    async def log_in(chat: Chat) -> None:
        key = chat.page.get_by_label("Key")
        await key.fill("a-wrong-key")
        await chat.page.keyboard.press("Enter")
        await chat.page.get_by_text("the key is wrong").wait_for()
        await chat.page.get_by_label("Key").fill("the-right-key")
        await chat.page.keyboard.press("Enter")
        await chat.say("hello")
        await chat.done("You said hello")
        assert "antiphon_session" not in await chat.page.evaluate("document.cookie")

    complaints = talk(log_in, keys=("the-right-key",))

    assert [c for c in complaints if "401" not in c] == []


PLAN = """{"tasks": [
    {"id": "lima", "tool": "weather", "arguments": {"city": "Lima"}},
    {"id": "cusco", "tool": "weather", "arguments": {"city": "Cusco"}},
    {"id": "both", "prompt": "Compare ${lima} and ${cusco}"}
]}"""


def test_a_plan_is_drawn_and_its_tasks_show_how_far_they_are() -> None:
    async def plan(chat: Chat) -> None:
        await chat.say("compare the weather")
        await chat.page.locator(".plan .node.completed").nth(2).wait_for()
        assert await chat.count(".plan .node", 3)
        assert await chat.count(".plan .edge", 2)

    def said(conversation: Conversation) -> Answer:
        asked = conversation.messages[-1].text
        return PLAN if "Compare" not in asked else "Both are clear."

    planner = PlanAndExecute(
        agent=Agent(name="planner", model=ScriptedModel(said), tools=[weather])
    )

    assert talk(plan, planner) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(scheme: str) -> None:
    async def look(chat: Chat) -> None:
        await chat.say("book a table")
        await chat.page.get_by_role("button", name="Approve").wait_for()
        assert await chat.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await chat.page.get_by_role("button", name="Conversations").click()
        assert await chat.count(".side-bar.open .sessions button", 1)

    assert talk(look, width=360, scheme=scheme) == []


def test_the_keyboard_is_enough() -> None:
    async def type_all(chat: Chat) -> None:
        await chat.page.wait_for_function("document.activeElement.tagName === 'TEXTAREA'")
        await chat.page.keyboard.type("hello")
        await chat.page.keyboard.press("Enter")
        await chat.done("You said hello")
        await chat.page.evaluate("document.activeElement.blur()")
        await chat.page.keyboard.press("?")
        assert await chat.count("dialog[open]", 1)
        await chat.page.keyboard.press("Escape")
        await chat.page.keyboard.press("n")
        await chat.page.get_by_text("Talk with clerk").wait_for()

    assert talk(type_all) == []
