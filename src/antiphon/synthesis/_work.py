"""What is done to a row of each stage: a task is written, a task is done.

The objects here can be sent to another process, and open there what all of its rows share.
"""

import json
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from antiphon.batch import RowFunction
from antiphon.datasets import read_tools
from antiphon.errors import DataError
from antiphon.messages import JsonObject, ToolSpec
from antiphon.models import Model, ModelSettings, load_model
from antiphon.synthesis._ask import Meter, Metered
from antiphon.synthesis._catalog import Catalog, load_catalog
from antiphon.synthesis._config import RULES, SynthConfig, ToolsetConfig
from antiphon.synthesis._draw import Drawer
from antiphon.synthesis._kinds import BY_RULE, Drawn, askable, merged
from antiphon.synthesis._run import Stage, run_task
from antiphon.synthesis._task import Offered, Task
from antiphon.synthesis._variants import with_variants
from antiphon.synthesis._worlds import real_tools, tools_for
from antiphon.synthesis._writer import Dropped, write_task
from antiphon.tools import Tool

_REDRAWS = 60
_CHAINS = 0.3
"""How often the two tools that a group needs are those of a chain, where other pairs are linked."""
_KIN = 0.4
"""How often a tool that does the same with other things is on offer beside one that is needed."""

# ---- writing tasks ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteTasks:
    """The stage that writes tasks; can be sent to another process."""

    config: SynthConfig
    """The synthesis."""
    held_out: tuple[str, ...] = ()
    """Values and questions that no task may have."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[RowFunction]:
        """Read the catalogs, and open the writer."""
        config = self.config
        sets = [_Toolset.load(config, one, frozenset(self.held_out)) for one in config.toolset]
        writer = None if config.writer == RULES else load_model(config.writer)
        try:
            yield _TaskWriter(config, sets, writer).row
        finally:
            if writer is not None:
                await writer.close()


@dataclass(frozen=True, slots=True)
class _Toolset:
    config: ToolsetConfig
    catalog: Catalog
    real: Mapping[str, Tool[..., Any]]
    specs: Mapping[str, ToolSpec]

    @classmethod
    def load(cls, config: SynthConfig, one: ToolsetConfig, held_out: frozenset[str]) -> "_Toolset":
        catalog = load_catalog([n if n == "demo" else config.path(n) for n in one.catalogs])
        names = tuple(_in_folder(config, name) for name in one.python)
        if one.variants:
            catalog = with_variants(catalog, one.variants, random.Random(f"{config.seed}/variants"))
        return cls(
            one,
            replace(_without(catalog, held_out), odd=one.odd_values),
            real_tools(names, one.world, config.seed),
            {s.name: s for name in one.specs for s in _read_specs(config.path(name))},
        )

    def fresh(self, config: SynthConfig, task: Task) -> Mapping[str, Tool[..., Any]]:
        """The real tools in their first state for a task."""
        if not self.config.world:
            return self.real
        names = tuple(_in_folder(config, name) for name in self.config.python)
        return real_tools(names, self.config.world, task.seed)

    @property
    def ids(self) -> list[str]:
        """Everything that may be offered: ids of the catalog, names of real tools and of specs."""
        return list(dict.fromkeys([*self.real, *self.catalog.tools, *self.specs]))

    @property
    def exact(self) -> list[str]:
        """What an exact set offers."""
        return list(self.real or self.catalog.tools or self.specs)


def _in_folder(config: SynthConfig, name: str) -> str:
    """A tool's name, with a file's path relative to the config."""
    module, colon, rest = name.rpartition(":")
    place = module if colon else rest
    if not place.endswith(".py"):
        return name
    return f"{config.path(place)}{colon}{rest if colon else ''}"


def _read_specs(path: Path) -> list[ToolSpec]:
    try:
        content: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {(error.strerror or '').lower()}", path=path) from error
    except ValueError as error:
        raise DataError(f"is not JSON: {error}", path=path) from error
    return list(read_tools(content))


def _without(catalog: Catalog, held_out: frozenset[str]) -> Catalog:
    """A catalog without values and questions that are kept for measuring.

    A vocabulary of which nothing would be left stays; `verification` finds what is asked with it.
    """
    if not held_out:
        return catalog
    slots: dict[str, tuple[str, ...]] = {}
    for name, values in catalog.slots.items():
        left = tuple(value for value in values if value not in held_out)
        slots[name] = left or values
    pairs = tuple(pair for pair in catalog.no_tool if pair[0] not in held_out)
    return replace(catalog, slots=slots, no_tool=pairs)


@dataclass(frozen=True, slots=True)
class _TaskWriter:
    config: SynthConfig
    sets: Sequence[_Toolset]
    writer: Model | None

    async def row(self, row: JsonObject) -> JsonObject:
        index = int(str(row["index"]))
        task = self._blank(index)
        draw = random.Random(f"{self.config.seed}/task/{index}")
        if self.writer is None:
            return _with_usage(self._by_rule(task, draw), Meter())
        meter = Meter()
        models = self.config.models
        settings = ModelSettings(
            temperature=models.writer_temperature, max_tokens=models.max_tokens, seed=task.seed
        )
        kinds = self.config.tasks.kinds
        task = replace(task, kind=draw.choices(list(kinds), list(kinds.values()))[0])
        made = await write_task(
            task, self.config.tasks, Metered(self.writer, meter), settings, draw
        )
        if isinstance(made, Dropped):
            return {"id": task.id, "dropped": made.reason, "usage": meter.to_row()}
        return _with_usage(made, meter)

    def _blank(self, index: int) -> Task:
        """A task that has tools and instructions, and asks nothing yet."""
        config = self.config
        group = index // config.tasks.share
        draw = random.Random(f"{config.seed}/group/{group}")
        number = draw.choices(range(len(self.sets)), [s.config.weight for s in self.sets])[0]
        return Task(
            id=f"task-{index:06d}",
            kind="",
            turns=[],
            tools=_offers(self.sets[number], draw, by_rule=self.writer is None),
            group=group,
            instructions=draw.choice(config.agent.instructions or ("",)),
            toolset=number,
            seed=random.Random(f"{config.seed}/answers/{index}").getrandbits(31),
            writer=config.writer,
            thoughts=draw.random() < config.tasks.thoughts,
        )

    def _by_rule(self, task: Task, draw: random.Random) -> Task:
        drawer = Drawer(self.sets[task.toolset].catalog, draw)
        kinds = self.config.tasks.kinds
        wanted = draw.choices(list(kinds), list(kinds.values()))[0]
        drawn = self._drawn(drawer, wanted, task)
        if draw.random() < self.config.tasks.merge:
            more = draw.choice(["single", "dependent"])
            drawn = merged(drawn, self._drawn(drawer, more, task)) or drawn
        return replace(
            task, kind=drawn.kind, turns=drawn.turns, script=drawn.script, faults=drawn.faults
        )

    def _drawn(self, drawer: Drawer, kind: str, task: Task) -> Drawn:
        """A task of a kind, or of another one where the tools do not allow it."""
        kinds = self.config.tasks.kinds
        offers = askable(drawer, task.tools)
        for _ in range(_REDRAWS):
            drawn = BY_RULE[kind](drawer, offers)
            if drawn is not None:
                return drawn
            kind = drawer.random.choices(list(kinds), list(kinds.values()))[0]
        raise DataError(
            f"toolset[{task.toolset}] allows none of the kinds {', '.join(kinds)}; "
            "add chains, missing or no_tool to its catalogs, or other kinds to tasks.kinds"
        )


def _with_usage(task: Task, meter: Meter) -> JsonObject:
    row = task.to_row()
    row["usage"] = meter.to_row()
    return row


def _offers(one: _Toolset, draw: random.Random, *, by_rule: bool) -> list[Offered]:
    """The tools of a group: both of a chain where there is one, and others."""
    drawer = Drawer(one.catalog, draw)
    chosen = one.exact if one.config.exact else _chosen(one, draw, by_rule=by_rule)
    offered = drawer.offers(
        chosen, one.real, simulate=one.config.simulate, in_order=one.config.exact
    )
    names = {o.name for o in offered}
    for id in chosen:
        if id in one.specs and id not in names and id not in one.real:
            offered.append(Offered(id, "model", one.specs[id].to_openai()))
    return offered


def _chosen(one: _Toolset, draw: random.Random, *, by_rule: bool) -> list[str]:
    ids = one.ids
    size = min(len(ids), draw.randint(*one.config.offered))
    chosen: list[str] = []
    chains, links = one.catalog.chains, one.catalog.links
    if size > 1 and chains and (not links or draw.random() < _CHAINS):
        chain = draw.choice(chains)
        chosen = list(dict.fromkeys([chain.first, chain.second]))
    elif size > 1 and links:
        # Every first tool is as likely as the others, however many it can be joined to.
        link = draw.choice(links[draw.choice(list(links))])
        chosen = [link.first, link.second]
    elif by_rule:
        chosen = [draw.choice(list(one.catalog.tools))]
    for id in tuple(chosen):
        kin = one.catalog.kin.get(id, ())
        if kin and len(chosen) < size and draw.random() < _KIN:
            chosen.append(draw.choice(kin))
    others = [id for id in ids if id not in chosen]
    return chosen + draw.sample(others, max(0, min(len(others), size - len(chosen))))


# ---- doing tasks ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunTasks:
    """The stage that does tasks; can be sent to another process."""

    config: SynthConfig
    """The synthesis."""
    held_out: tuple[str, ...] = ()
    """Values that no simulated tool may answer with."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[RowFunction]:
        """Load the tools and open the models."""
        config = self.config
        sets = [_Toolset.load(config, one, frozenset(self.held_out)) for one in config.toolset]
        models = _Models(config)
        stage = Stage(
            config,
            [one.catalog for one in sets],
            models.opened(config.models.teacher),
            models.opened(config.models.user or config.writer),
            models.opened(config.models.simulator or config.writer)
            if any(one.specs for one in sets)
            else None,
        )
        try:
            yield _TaskRunner(stage, sets).row
        finally:
            await models.close()


class _Models:
    """Models by spec, each opened once."""

    def __init__(self, config: SynthConfig) -> None:
        self._config = config
        self._open: dict[str, Model] = {}

    def opened(self, spec: str) -> Model | None:
        if spec == RULES:
            return None
        if spec not in self._open:
            self._open[spec] = load_model(spec)
        return self._open[spec]

    async def close(self) -> None:
        for model in self._open.values():
            await model.close()


@dataclass(frozen=True, slots=True)
class _TaskRunner:
    stage: Stage
    sets: Sequence[_Toolset]

    async def row(self, row: JsonObject) -> JsonObject:
        task = Task.from_row(row)
        real = self.sets[task.toolset].fresh(self.stage.config, task)
        return (await run_task(task, self.stage, real)).to_row()


class TaskTools:
    """The tools of tasks in their first state, for making calls again.

    Args:
        config: The synthesis that made the tasks.
        held_out: The values that its tools could not answer with; without them they would answer
            otherwise.

    Raises:
        AntiphonError: A tool or a catalog cannot be read.
    """

    def __init__(self, config: SynthConfig, held_out: Sequence[str] = ()) -> None:
        self._config = config
        kept_out = frozenset(held_out)
        self._sets = [_Toolset.load(config, one, kept_out) for one in config.toolset]

    def of(self, task: Task) -> dict[str, Tool[..., Any]]:
        """The tools of a task that are executed or answered by rule, by name.

        Raises:
            UsageError: A tool that was real is no longer in the config.
        """
        one = self._sets[task.toolset]
        offered = [o for o in task.tools if o.source != "model"]
        bare = replace(task, tools=offered, faults=[])
        real = one.fresh(self._config, task)
        tools = tools_for(bare, real, one.catalog, None, ModelSettings())
        return {tool.name: tool for tool in tools}
