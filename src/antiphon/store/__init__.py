"""Where runs are kept as they happen, so that one that was broken off can be gone on from.

Start with `_store.py`: what a Store does.  `_sql.py` does it in two tables, each entry durable
before what it tells is shown; `_sqlite.py` holds them in a file, `_postgres.py` in a server.
`_rebuild.py` makes a Trajectory from a run's entries, whole or broken off.  This room knows events
and messages, no agent and no model.
"""

from antiphon.store._open import open_store
from antiphon.store._postgres import PostgresStore
from antiphon.store._rebuild import Entry, rebuild
from antiphon.store._sqlite import SqliteStore
from antiphon.store._store import Journal, PatientJournal, RunInfo, Store

__all__ = [
    "Entry",
    "Journal",
    "PatientJournal",
    "PostgresStore",
    "RunInfo",
    "SqliteStore",
    "Store",
    "open_store",
    "rebuild",
]
