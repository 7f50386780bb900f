"""The desk: a lending library with rules, and people who want something of it.

In the manner of τ-bench (arXiv 2406.12045): an agent with tools and a policy talks with a user, and
what counts is the state that the library is in when the conversation ends, and that the user was
told what they have to know.  The user goes by a script, or is played by a model that is given the
person's wishes.  Everything here is invented; the state is small enough to be read in one sitting.
"""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from antiphon.errors import ToolError
from antiphon.evaluation._cases import Outcome
from antiphon.evaluation._run import Mode
from antiphon.evaluation._worlds import Talk, missing_texts, state_error
from antiphon.messages import Conversation, Message, ToolCall
from antiphon.models import Model, complete
from antiphon.tools import Tool, tool

POLICY = """\
You work at the desk of a lending library and help one member at a time with the tools.
- Ask for the member's name or number, and look the member up, before you change anything.
- A member may have at most 3 reservations. A book that is on the shelf is not reserved but lent.
- A loan can be renewed twice at most, and not while somebody else has reserved the book.
- A member who owes more than 10 can neither borrow, reserve nor renew before it is paid.
- A fee can be waived once a year, and only if it is 5 or less.
- Tell the member what you did and what they have to know: dates, amounts, numbers.
- What the rules forbid you refuse and say why; what no tool can do you say you cannot do."""

_DAYS_OF_A_LOAN = 21
_MAX_USER_TURNS = 8

_USER = """\
You are a person at the desk of a library. {wishes}
Say only what this person says next, in one or two short sentences, and give details when you are
asked for them. When all of it is settled or was refused for good, say only: DONE"""


class Library:
    """The library's state, and the tools that change it.  The tools obey; the rules are the
    agent's.

    Args:
        state: Members, books and loans, as in ``data/desk.json``.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state: dict[str, Any] = copy.deepcopy(dict(state))

    def state(self) -> dict[str, Any]:
        """The state, whatever numbers new loans got."""
        loans = sorted(
            self._state["loans"].values(), key=lambda loan: sorted(map(str, loan.items()))
        )
        return {**self._state, "loans": loans}

    def tools(self) -> list[Tool[..., Any]]:
        """The tools, as the desk has them."""
        functions: list[Callable[..., Any]] = [self.find_member, self.find_book, self.lend_book]
        functions += [self.reserve_book, self.cancel_reservation, self.renew_loan]
        functions += [self.return_book, self.pay_fee, self.waive_fee]
        return [tool(function, threaded=False) for function in functions]

    def _member(self, member_id: str) -> dict[str, Any]:
        if member_id not in self._state["members"]:
            raise ToolError(f"no member {member_id!r}; find the member by name first")
        return self._state["members"][member_id]

    def _book(self, book_id: str) -> dict[str, Any]:
        if book_id not in self._state["books"]:
            raise ToolError(f"no book {book_id!r}; find the book by title first")
        return self._state["books"][book_id]

    def find_member(self, name_or_id: str) -> dict[str, Any]:
        """Look up a member: loans, reservations, what is owed.

        Args:
            name_or_id: The member's whole name, or number, e.g. "M3".
        """
        for id, member in self._state["members"].items():
            if name_or_id.lower() in (id.lower(), member["name"].lower()):
                loans = {k: v for k, v in self._state["loans"].items() if v["member"] == id}
                return {"id": id, **member, "loans": loans}
        raise ToolError(f"nobody called {name_or_id!r} is a member; ask for the name as written")

    def find_book(self, title: str) -> list[dict[str, Any]]:
        """Find books by words of their title.

        Args:
            title: One or more words.
        """
        words = title.lower().split()
        found = [
            {"id": id, **book}
            for id, book in self._state["books"].items()
            if all(word in book["title"].lower() for word in words)
        ]
        if not found:
            raise ToolError(f"no book has {title!r} in its title")
        return found

    def lend_book(self, member_id: str, book_id: str) -> dict[str, Any]:
        """Lend a book that is on the shelf.

        Args:
            member_id: The member's number.
            book_id: The book's number.
        """
        self._member(member_id)
        book = self._book(book_id)
        if book["on_shelf"] < 1:
            raise ToolError(f"no copy of {book['title']!r} is on the shelf; it can be reserved")
        book["on_shelf"] -= 1
        id = f"L{max(int(loan[1:]) for loan in self._state['loans']) + 1}"
        self._state["loans"][id] = {
            "member": member_id,
            "book": book_id,
            "days_left": _DAYS_OF_A_LOAN,
            "renewals": 0,
        }
        return {"loan": id, "days": _DAYS_OF_A_LOAN}

    def reserve_book(self, member_id: str, book_id: str) -> dict[str, Any]:
        """Reserve a book for when it comes back.

        Args:
            member_id: The member's number.
            book_id: The book's number.
        """
        member, book = self._member(member_id), self._book(book_id)
        if book_id in member["reservations"]:
            raise ToolError("this member has reserved it already")
        member["reservations"].append(book_id)
        waiting = sum(book_id in m["reservations"] for m in self._state["members"].values())
        return {"reserved": book["title"], "place_in_queue": waiting}

    def cancel_reservation(self, member_id: str, book_id: str) -> str:
        """Cancel a reservation.

        Args:
            member_id: The member's number.
            book_id: The book's number.
        """
        member = self._member(member_id)
        if book_id not in member["reservations"]:
            raise ToolError(f"this member has not reserved {book_id!r}")
        member["reservations"].remove(book_id)
        return "cancelled"

    def renew_loan(self, loan_id: str) -> dict[str, Any]:
        """Give a loan another 21 days from today.

        Args:
            loan_id: The loan's number, e.g. "L2".
        """
        loan = self._loan(loan_id)
        loan["renewals"] += 1
        loan["days_left"] = _DAYS_OF_A_LOAN
        return {"loan": loan_id, "days": _DAYS_OF_A_LOAN}

    def return_book(self, loan_id: str) -> str:
        """Take back a book.

        Args:
            loan_id: The loan's number.
        """
        loan = self._loan(loan_id)
        self._book(loan["book"])["on_shelf"] += 1
        del self._state["loans"][loan_id]
        return "returned"

    def _loan(self, loan_id: str) -> dict[str, Any]:
        if loan_id not in self._state["loans"]:
            raise ToolError(f"no loan {loan_id!r}; find the member to see the loans")
        return self._state["loans"][loan_id]

    def pay_fee(self, member_id: str, amount: float) -> dict[str, Any]:
        """Take money for what a member owes.

        Args:
            member_id: The member's number.
            amount: How much is paid.
        """
        member = self._member(member_id)
        if not 0 < amount <= member["owes"]:
            raise ToolError(f"the member owes {member['owes']:g}; pay more than 0 and at most that")
        member["owes"] = round(member["owes"] - amount, 2)
        return {"owes": member["owes"]}

    def waive_fee(self, member_id: str) -> dict[str, Any]:
        """Cancel all that a member owes.

        Args:
            member_id: The member's number.
        """
        member = self._member(member_id)
        member["owes"] = 0
        member["waived_this_year"] = True
        return {"owes": 0}


@dataclass(frozen=True, slots=True)
class DeskCase:
    """One person with wishes."""

    id: str
    """The case's name."""
    kind: str
    """``serve``: it is done; ``refuse``: the rules forbid it; ``mixed``: some of both."""
    wishes: str
    """What the person wants, for a model that plays them."""
    says: tuple[str, ...]
    """What the person says, one after the other, where nobody plays them."""
    changes: tuple[ToolCall, ...]
    """Calls that bring the library into the state it should be left in."""
    told: tuple[str, ...] = ()
    """What some answer must hold."""
    user: Model | None = None
    """Who plays the person."""

    async def judged(self, mode: Mode) -> Outcome:
        """Talk, and look at the library.

        Raises:
            ModelError: The model, or the user's, cannot be asked.
        """
        library, talk = Library(first_state()), Talk(mode, POLICY)
        turn = 0
        said = self.says[0]
        while said:
            error = await talk.turn(said, library.tools())
            if error:
                return talk.outcome(self.id, self.kind, turn=turn, error=error)
            turn += 1
            said = await self._next(turn, talk.history)
        error = state_error(library.state(), self._wanted())
        if not error and missing_texts(self.told, talk.answers):
            error = "not_told"
        return talk.outcome(self.id, self.kind, turn=turn, error=error)

    def _wanted(self) -> dict[str, Any]:
        library = Library(first_state())
        for call in self.changes:
            getattr(library, call.name)(**call.arguments)
        return library.state()

    async def _next(self, turn: int, history: Sequence[Message]) -> str:
        if self.user is None:
            return self.says[turn] if turn < len(self.says) else ""
        if turn >= _MAX_USER_TURNS:
            return ""
        lines = [
            f"{'You' if m.role == 'user' else 'Desk'}: {m.text}"
            for m in history
            if m.role in ("user", "assistant") and m.text
        ]
        prompt = "\n".join([*lines, "You:"])
        system = Message.system(_USER.format(wishes=self.wishes))
        conversation = Conversation((system, Message.user(prompt)))
        text = (await complete(self.user, conversation)).message.text
        return "" if "DONE" in text else text.strip().removeprefix("You:").strip()


@cache
def _content() -> dict[str, Any]:
    text = files("antiphon.evaluation").joinpath("data/desk.json").read_text("utf-8")
    return json.loads(text)


def first_state() -> dict[str, Any]:
    """The state that every case begins in."""
    return _content()["state"]


def desk_cases(user: Model | None = None) -> tuple[DeskCase, ...]:
    """The cases of the desk.

    Args:
        user: Plays the people; by script where there is none.
    """
    cases = [
        DeskCase(
            id=one["id"],
            kind=one["kind"],
            wishes=one["wishes"],
            says=tuple(one["says"]),
            changes=tuple(ToolCall(c["name"], c["arguments"]) for c in one["changes"]),
            told=tuple(one.get("told", ())),
        )
        for one in _content()["cases"]
    ]
    return tuple(replace(case, user=user) for case in cases)
