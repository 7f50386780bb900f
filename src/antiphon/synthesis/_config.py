"""What a synthesis is told: one TOML or YAML file, in which a key that means nothing is an error.

    seed = 7
    out = "build/clerk"

    [[toolset]]
    python = ["antiphon.tools.builtin:DEMO_TOOLS"]
    catalogs = ["demo"]

    [tasks]
    count = 200

Paths in the file are relative to its folder.
"""

import difflib
import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, MissingExtraError, UsageError, clip

KINDS: dict[str, float] = {
    "single": 4,
    "parallel": 1,
    "dependent": 2,
    "multi_turn": 1,
    "missing": 1,
    "no_tool": 2,
    "recovery": 0.5,
    "failing": 0.5,
}
"""Every kind of task and how often it is drawn, in proportion."""

RULES = "rules"
"""The teacher and writer that needs no model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetConfig:
    """Tools that are offered together."""

    python: tuple[str, ...] = ()
    """Real tools, ``MODULE:NAME`` or ``path.py:NAME``; they are executed."""
    world: str = ""
    """``MODULE:FUNCTION`` that makes fresh tools for each conversation, for tools with a state."""
    specs: tuple[str, ...] = ()
    """Files of tool specs; what they answer is made by the model ``models.simulator``."""
    catalogs: tuple[str, ...] = ()
    """Files of invented tools, or questions about real ones, for synthesis by rule; ``demo`` is the
    one in the package."""
    simulate: bool = False
    """Whether python tools that a catalog describes are answered by rule instead of executed."""
    offered: tuple[int, int] = (3, 6)
    """The fewest and the most tools on offer at once."""
    exact: bool = False
    """Whether exactly the real tools are on offer, all of them in their order, and the catalogs
    only hold questions about them; without real tools, exactly those of the catalogs."""
    odd_values: float = 0.0
    """How often a word of a vocabulary gives its place to one that nobody would expect there, of
    another vocabulary or made up: values are then read, not known."""
    variants: int = 0
    """How many tools about other things are made of each tool of the catalogs that is about one;
    they are answered by rule."""
    weight: float = 1.0
    """How often this set is drawn, in proportion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksConfig:
    """Which tasks are made."""

    count: int = 100
    """How many."""
    kinds: dict[str, float] = field(default_factory=lambda: dict(KINDS))
    """Kinds and how often each is drawn, in proportion."""
    share: int = 4
    """How many tasks in a row have the same tools on offer, under the same names."""
    merge: float = 0.0
    """The share of tasks that are joined with another one into a longer one."""
    evolve: int = 0
    """How often a model is asked to make its task harder."""
    personas: tuple[str, ...] = ()
    """Who asks, for a writer that is a model."""
    scenarios: tuple[str, ...] = ()
    """What it is about, for a writer that is a model."""
    seeds: tuple[str, ...] = ()
    """Requests that show a writer that is a model what is wanted."""
    max_turns: int = 4
    """The most user messages of a conversation with a simulated user."""
    thoughts: float = 0.0
    """The share of groups in which the rule-based teacher writes a short thought before it acts."""
    hold_out: tuple[str, ...] = ()
    """Benchmarks whose questions and values are kept out, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsConfig:
    """Who writes, answers, asks on, and stands in for tools: model specs, or ``rules``."""

    teacher: str = RULES
    """Who acts."""
    writer: str = ""
    """Who writes the tasks; by rule where the sets have catalogs, else the teacher."""
    user: str = ""
    """Who plays the user of a task that a model wrote; the writer by default."""
    simulator: str = ""
    """Who answers for tools of ``specs``; the writer by default."""
    temperature: float | None = None
    """Sampling temperature of the teacher."""
    writer_temperature: float | None = 1.0
    """Sampling temperature of the writer and the user."""
    max_tokens: int | None = 2048
    """The most tokens of one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The agent that does the tasks."""

    instructions: tuple[str, ...] = ("",)
    """System messages, of which each group of tasks draws one."""
    max_steps: int = 10
    """The most model calls of a turn."""
    approve: bool = False
    """Whether calls of tools that need a person's consent are executed; else they end the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """When no further row is begun.  What is under way then is finished."""

    calls: int | None = None
    """The most model calls, of all stages and of earlier runs together."""
    tokens: int | None = None
    """The most tokens, read and written, likewise."""
    cost: float | None = None
    """The most money by `prices`, likewise."""
    seconds: float | None = None
    """The longest one run of the command may take."""
    prices: str = ""
    """A file of prices; see `antiphon.models.read_prices`."""
    concurrency: int = 32
    """How many rows are worked on at once."""
    max_failures: int = 10
    """How many rows may fail, because of a model that cannot be asked, before the stage ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthConfig:
    """A whole synthesis."""

    toolset: tuple[ToolsetConfig, ...]
    """The sets of tools; each group of tasks draws one."""
    seed: int = 0
    """The same seed draws the same tasks."""
    out: str = "synth"
    """The folder that everything is written to."""
    tasks: TasksConfig = field(default_factory=TasksConfig)
    """Which tasks are made."""
    models: ModelsConfig = field(default_factory=ModelsConfig)
    """Who does it."""
    agent: AgentConfig = field(default_factory=AgentConfig)
    """How the tasks are done."""
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    """When it ends."""
    folder: str = "."
    """Where the file lies, which its paths are relative to; not a key of the file."""

    @property
    def writer(self) -> str:
        """Who writes the tasks."""
        if self.models.writer:
            return self.models.writer
        by_rule = any(s.catalogs for s in self.toolset) or self.models.teacher == RULES
        return RULES if by_rule else self.models.teacher

    def path(self, name: str) -> Path:
        """A path of the file."""
        return Path(self.folder) / name


def read_config(path: Path | str) -> SynthConfig:
    """Read a file.

    Args:
        path: Its name ends in ``.toml``, ``.yaml`` or ``.yml``.

    Raises:
        DataError: It cannot be read, or is not what a synthesis is told; the key is named.
        MissingExtraError: It is YAML and there is no reader.
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DataError(f"cannot be read: {str(reason).lower()}", path=path) from error
    content = _toml(text, source) if source.suffix == ".toml" else _yaml(text, source)
    try:
        config = config_from(content)
    except UsageError as error:
        raise DataError(str(error), path=path) from error
    return replace(config, folder=str(source.parent))


def _toml(text: str, path: Path) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"is not TOML: {_lower(str(error))}", path=path) from error


def _yaml(text: str, path: Path) -> Any:
    if path.suffix not in (".yaml", ".yml"):
        raise DataError("must be TOML or YAML; name it .toml, .yaml or .yml", path=path)
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError as error:
        raise MissingExtraError(f"the YAML file {str(path)!r}", "yaml") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(
            f"is not YAML: {_lower(' '.join(str(error).split()))}", path=path
        ) from error


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def config_from(content: object) -> SynthConfig:
    """A synthesis from the values of a file.

    Raises:
        UsageError: A key is unknown, missing, or of the wrong type; it is named.
    """
    if not isinstance(content, Mapping):
        raise UsageError(f"a synthesis is a table of keys, got {clip(content)}")
    given = dict(cast("Mapping[str, Any]", content))
    if "folder" in given:
        raise UsageError(_unknown("folder", SynthConfig, ""))
    _check_keys(given, SynthConfig, "")
    config = _validated(given)
    _check(config)
    return config


def _check_keys(given: Mapping[str, Any], kind: type, where: str) -> None:
    """Name the first key that is not a field, at any depth."""
    known = {item.name: item.type for item in fields(kind)}
    for key, value in given.items():
        if key not in known:
            raise UsageError(_unknown(key, kind, where))
        inner = _TABLES.get((kind, key))
        if inner is None:
            continue
        for index, item in enumerate(
            cast("list[Any]", value) if isinstance(value, list) else [value]
        ):
            place = f"{where}{key}[{index}]." if isinstance(value, list) else f"{where}{key}."
            if isinstance(item, Mapping):
                _check_keys(cast("Mapping[str, Any]", item), inner, place)


_TABLES: dict[tuple[type, str], type] = {
    (SynthConfig, "toolset"): ToolsetConfig,
    (SynthConfig, "tasks"): TasksConfig,
    (SynthConfig, "models"): ModelsConfig,
    (SynthConfig, "agent"): AgentConfig,
    (SynthConfig, "limits"): LimitsConfig,
}


def _unknown(key: str, kind: type, where: str) -> str:
    known = [item.name for item in fields(kind) if item.name != "folder"]
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no key {where + key!r}; known here: {', '.join(known)}{hint}"


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(SynthConfig)


def _validated(given: Mapping[str, Any]) -> SynthConfig:
    from pydantic import ValidationError

    try:
        return _adapter().validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"key {where!r}: {_lower(first['msg'])}, got {clip(first.get('input'))}"
        ) from error


def _check(config: SynthConfig) -> None:
    if not config.toolset:
        raise UsageError("there is no [[toolset]]; name tools in at least one")
    for index, one in enumerate(config.toolset):
        if not (one.python or one.world or one.specs or one.catalogs):
            raise UsageError(
                f"toolset[{index}] has no tools; give python, world, specs or catalogs"
            )
        low, high = one.offered
        if not 1 <= low <= high:
            raise UsageError(f"toolset[{index}].offered must be [fewest, most], got {one.offered}")
        if not 0 <= one.odd_values <= 1:
            raise UsageError(f"toolset[{index}].odd_values must be a share, got {one.odd_values}")
        if one.variants < 0:
            raise UsageError(f"toolset[{index}].variants must be at least 0, got {one.variants}")
    unknown = [kind for kind in config.tasks.kinds if kind not in KINDS]
    if unknown:
        raise UsageError(f"no kind of task {unknown[0]!r}; known: {', '.join(KINDS)}")
    if sum(config.tasks.kinds.values()) <= 0 or min(config.tasks.kinds.values()) < 0:
        raise UsageError("tasks.kinds must be numbers of at least 0, and one must be more")
    for name, least in (("count", 1), ("share", 1), ("max_turns", 1), ("evolve", 0)):
        if getattr(config.tasks, name) < least:
            raise UsageError(f"tasks.{name} must be at least {least}")
    bare = next((i for i, one in enumerate(config.toolset) if not one.catalogs), None)
    if config.writer == RULES and bare is not None:
        raise UsageError(
            f"tasks are written by rule from catalogs, and toolset[{bare}] has none; "
            "add catalogs = [...], or name a model as models.writer"
        )
    simulator = config.models.simulator or config.writer
    if simulator == RULES and any(one.specs for one in config.toolset):
        raise UsageError(
            "tools of which only the spec is known are answered by a model; name it as "
            "models.simulator"
        )
    if config.models.teacher == RULES and config.writer != RULES:
        raise UsageError(
            "the teacher 'rules' can only do tasks that are written by rule; "
            "name a model as models.teacher"
        )


def describe(value: Any) -> Any:
    """A config as JSON, for a digest of what decides the result."""
    if is_dataclass(value):
        return {item.name: describe(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple | list):
        return [describe(item) for item in cast("list[Any]", value)]
    return value
