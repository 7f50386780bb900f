"""The model that is trained: loaded, given an adapter, checked for packing, saved.

A GGUF file is loaded with its weights dequantised, so that an adapter corrects the weights that it
will run on.
"""

import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from antiphon.encode import EncodedRow, unpack
from antiphon.errors import AntiphonError, DataError, UsageError, clip
from antiphon.train._attention import BY_BRANCHES, register
from antiphon.train._collate import Collator
from antiphon.train._gguf import BASE_CONFIG, read_adapter
from antiphon.train._libraries import library
from antiphon.train._settings import TrainSettings
from antiphon.train._share import branches

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
)
_COMPARED_TOKENS = 256


def source_of(spec: str) -> str:
    """The directory, hub id or GGUF file of a model's spec.

    Raises:
        UsageError: The spec names a model that cannot be trained.
    """
    kind, slash, name = spec.partition("/")
    if slash and kind in ("hf", "gguf"):
        return name
    if Path(spec).exists():
        return spec
    raise UsageError(
        f"{clip(spec)} cannot be trained; give hf/<directory or hub id>, gguf/<file> or a directory"
    )


def load_model(settings: TrainSettings) -> Any:
    """The model to train, with an adapter where one is asked for.

    Raises:
        UsageError: The spec names a model that cannot be trained.
        DataError: The model cannot be loaded.
        MissingExtraError: torch, transformers or peft is not installed.
    """
    torch, transformers = library("torch"), library("transformers")
    source = source_of(settings.model)
    options: dict[str, Any] = {"dtype": _dtype(torch, settings)}
    where = source
    if source.endswith(".gguf"):
        where = str(Path(source).parent)
        options |= {
            "gguf_file": Path(source).name,
            "quantization_config": transformers.GgufConfig(dequantize=True),
        }
    transformers.set_seed(settings.seed)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(where, **options)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"the model cannot be loaded: {clip(reason, 200)}", path=source) from error
    return _with_adapter(model, settings) if settings.lora_rank else model


def _dtype(torch: Any, settings: TrainSettings) -> Any:
    if settings.dtype != "auto":
        return getattr(torch, settings.dtype)
    on_device = torch.accelerator.is_available()
    # A whole model keeps its own numbers in float32 and computes in bfloat16 (TrainingArguments).
    return torch.bfloat16 if on_device and settings.lora_rank else torch.float32


def _with_adapter(model: Any, settings: TrainSettings) -> Any:
    peft = library("peft")
    if settings.gradient_checkpointing:
        model.enable_input_require_grads()
    if settings.adapter is not None:
        return _with_earlier(peft, model, settings.adapter, settings.lora_rank)
    lora = peft.LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.alpha,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return peft.get_peft_model(model, lora)


def _with_earlier(peft: Any, model: Any, adapter: Path, rank: int) -> Any:
    begin = _with_gguf if adapter.suffix == ".gguf" else _with_saved
    try:
        known, begun = begin(peft, model, adapter)
    except AntiphonError:
        raise
    except (OSError, ValueError, RuntimeError, library("safetensors").SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"this is no adapter to begin with: {clip(reason, 200)}", path=adapter
        ) from error
    if known != rank:
        raise UsageError(f"the adapter in {adapter} has the rank {known}, not {rank}")
    return begun


def _with_saved(peft: Any, model: Any, adapter: Path) -> tuple[int, Any]:
    """The rank of an adapter that peft saved, and a model with it."""
    rank: int = peft.LoraConfig.from_pretrained(str(adapter)).r
    return rank, peft.PeftModel.from_pretrained(model, str(adapter), is_trainable=True)


def _with_gguf(peft: Any, model: Any, file: Path) -> tuple[int, Any]:
    """The rank of an adapter in GGUF, which peft does not read, and a model with it."""
    names = [name for name, _ in model.named_modules()]
    earlier = read_adapter(file, model.config.to_dict(), names)
    lora = peft.LoraConfig(
        r=earlier.rank,
        lora_alpha=earlier.alpha,
        target_modules=sorted({key.rpartition(".")[0] for key in earlier.matrices}),
        task_type="CAUSAL_LM",
    )
    begun = peft.get_peft_model(model, lora)
    from_numpy = library("torch").from_numpy
    weights = {f"base_model.model.{k}.weight": from_numpy(m) for k, m in earlier.matrices.items()}
    peft.set_peft_model_state_dict(begun, weights)
    return earlier.rank, begun


def check_vocabulary(model: Any, rows: Sequence[EncodedRow]) -> None:
    """See to it that the model knows every token.

    Raises:
        UsageError: It does not; the rows are of another vocabulary.
    """
    weight = model.get_input_embeddings().weight
    # What DeepSpeed spreads over processes is empty, and says its shape there.
    known = int(getattr(weight, "ds_shape", weight.shape)[0])
    highest = max(int(row.input_ids.max(initial=0)) for row in rows)
    if highest >= known:
        raise UsageError(
            f"the rows hold token {highest} and the model knows {known}; "
            "encode them with the model's own tokenizer"
        )


def check_packing(model: Any, row: EncodedRow) -> None:
    """See to it that the examples of a packed row do not see each other in this model.

    Raises:
        UsageError: They do; the model does not tell them apart by their positions.
    """
    torch = library("torch")
    parts = [part.input_ids[:_COMPARED_TOKENS].tolist() for part in unpack(row)[:2]]
    positions = [i for part in parts for i in range(len(part))]

    def logits(ids: list[int], places: list[int]) -> Any:
        device = next(model.parameters()).device
        return model(
            input_ids=torch.tensor([ids], device=device),
            position_ids=torch.tensor([places], device=device),
            use_cache=False,
        ).logits[0]

    was_training = model.training
    model.eval()
    with torch.no_grad(), _gathered(model):
        together = logits(parts[0] + parts[1], positions)[len(parts[0]) :].float()
        alone = logits(parts[1], list(range(len(parts[1])))).float()
    model.train(was_training)
    scale = float(alone.abs().max())
    rounding = torch.finfo(next(model.parameters()).dtype).eps
    if float((together - alone).abs().max()) > max(1e-4, 64 * rounding) * max(1.0, scale):
        raise UsageError(
            f"{type(model).__name__} lets the examples of a packed row see each other; "
            "train without packing"
        )


def share_in(model: Any, row: EncodedRow) -> Literal["", "bool", "float"]:
    """Have a model keep branches apart, and see to it that it does.

    On a CPU its attention goes by branches, where it knows nothing else.  Elsewhere, and where that
    fails, it takes a mask: one kernel for the whole row.

    Args:
        model: The model.
        row: A row with branches.

    Returns:
        The kind of mask that its rows need; none where positions tell.

    Raises:
        UsageError: It does not; rows cannot share their beginnings.
    """
    torch = library("torch")
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    attention = str(getattr(model.config, "_attn_implementation", ""))
    if attention not in ("sdpa", "eager"):
        raise UsageError(f"sharing needs sdpa or eager attention, got {clip(attention)}")
    last = branches(row)[-1]
    where = next(model.parameters()).device

    def logits(given: EncodedRow, place: int, kind: Literal["", "bool", "float"]) -> Any:
        made = Collator(0, packed=True, mask=kind)([given])
        inputs = {k: v.to(where) for k, v in made.items() if k not in ("labels", "loss_weights")}
        with torch.no_grad(), _gathered(model):
            return model(**inputs, use_cache=False).logits[0, place].float()

    rounding = torch.finfo(next(model.parameters()).dtype).eps
    was_training = model.training
    model.eval()
    alone = logits(last, len(last) - 1, "")
    limit = max(1e-4, 64 * rounding) * max(1.0, float(alone.abs().max()))

    def keeps_apart(kind: Literal["", "bool", "float"]) -> bool:
        together = logits(row, len(row) - 1, kind)
        return float((together - alone).abs().max()) <= limit

    found: Literal["", "bool", "float"] | None = None
    if attention == "sdpa" and where.type == "cpu":
        register()
        base.set_attn_implementation(BY_BRANCHES)
        with suppress(NotImplementedError):
            found = "" if keeps_apart("") else None
        if found is None:
            base.set_attn_implementation(attention)
    kind: Literal["bool", "float"] = "bool" if attention == "sdpa" else "float"
    if found is None and keeps_apart(kind):
        found = kind
    model.train(was_training)
    if found is None:
        raise UsageError(
            f"{type(model).__name__} does not heed a mask of its own; train without sharing"
        )
    return found


@contextmanager
def _gathered(model: Any) -> Generator[None]:
    """Give each module its weights while it computes, where DeepSpeed spread them at loading.

    DeepSpeed does so itself in training, which has not begun.  Every process takes part.
    """
    hooks: list[Any] = []
    for module in model.modules():
        spread = [p for p in module.parameters(recurse=False) if hasattr(p, "ds_shape")]
        if spread:
            whole = library("deepspeed").zero.GatheredParameters(spread)
            hooks.append(module.register_forward_pre_hook(partial(_enter, whole)))
            hooks.append(module.register_forward_hook(partial(_leave, whole), always_call=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _enter(context: Any, *_: Any) -> None:
    context.__enter__()


def _leave(context: Any, *_: Any) -> None:
    context.__exit__(None, None, None)


def save_beside(model: Any, source: str, out: Path) -> None:
    """Write what belongs beside weights: the base's tokenizer, and its configuration to an adapter.

    Args:
        model: The trained model, unwrapped.
        source: What it was loaded from.
        out: The directory of its weights.
    """
    base = Path(source)
    if base.is_dir():
        for name in _TOKENIZER_FILES:
            if (base / name).exists():
                shutil.copyfile(base / name, out / name)
    elif base.suffix != ".gguf":
        library("transformers").AutoTokenizer.from_pretrained(source).save_pretrained(str(out))
    if hasattr(model, "get_base_model"):
        text = model.get_base_model().config.to_json_string(use_diff=False)
        (out / BASE_CONFIG).write_text(text, "utf-8")
