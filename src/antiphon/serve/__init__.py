"""A model or an agent behind HTTP, in the dialects that clients speak.

Start with `_app.py`: what happens to a request.  A dialect (`_chat.py`, `_responses.py`,
`_messages.py`, `_completions.py`) reads an `Ask` (`_ask.py`) and writes an answer's pieces
(`_answer.py`); `_guard.py` says who may ask and how much, `_slots.py` how many at once,
`_settings.py` how all of it is set up, `_server.py` listens.  `_agents.py` has runs of an agent.
"""

from antiphon.serve._agents import Runnable
from antiphon.serve._served import Served
from antiphon.serve._server import Server
from antiphon.serve._settings import ServeSettings, read_settings
from antiphon.serve._telemetry import ServerTelemetry

__all__ = ["Runnable", "ServeSettings", "Served", "Server", "ServerTelemetry", "read_settings"]
