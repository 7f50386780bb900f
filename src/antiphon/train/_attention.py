"""Attention of rows that share their beginning, without a mask over the whole of them.

Each branch looks at what it shares and at itself: one small product a branch in place of one of
all tokens with all, which is mostly hidden.  A branch is told by the positions, as
`antiphon.train._share` writes them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from antiphon.encode._numpy import np
from antiphon.train._libraries import library

BY_BRANCHES = "antiphon_branches"
"""The name of this attention, for transformers."""

_MORE = ("sliding_window", "softcap", "s_aux")
"""What some models' layers want of attention: a window, bounded products, a sink."""


@dataclass(frozen=True, slots=True)
class Tree:
    """What one group of rows shares, and what each says next."""

    n_shared: int
    """Tokens that all branches see; 0 where there is one branch only."""
    lengths: tuple[int, ...]
    """Tokens of each branch."""


def trees(position_ids: Any) -> list[Tree] | None:
    """The trees of a row, one behind the other; nothing where a branch has branches.

    Args:
        position_ids: The row's, shape ``(T,)``.
    """
    positions = np.asarray(position_ids)
    begins = [0, *(np.flatnonzero(np.diff(positions) != 1) + 1).tolist(), len(positions)]
    found: list[tuple[int, list[int]]] = []
    for begin, end in itertools.pairwise(begins):
        position = int(positions[begin])
        if position == 0:
            found.append((0, [end - begin]))
            continue
        n_shared, lengths = found[-1]
        if len(lengths) == 1:
            n_shared, lengths = position, [lengths[0] - position]
        if position != n_shared or lengths[0] < 0:
            return None
        found[-1] = (n_shared, [*lengths, end - begin])
    return [Tree(n_shared, tuple(lengths)) for n_shared, lengths in found]


def register() -> None:
    """Make the attention known to transformers; again does nothing."""
    transformers = library("transformers")
    transformers.AttentionInterface.register(BY_BRANCHES, attend_by_branches)
    transformers.AttentionMaskInterface.register(BY_BRANCHES, _mask)


def _mask(*, attention_mask: Any = None, **options: Any) -> Any:
    """The mask of padded rows; a row alone needs none, its positions tell."""
    if attention_mask is None:
        return None
    make: Any = library("transformers.masking_utils").sdpa_mask
    return make(attention_mask=attention_mask, **options)


def attend_by_branches(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    *,
    position_ids: Any = None,
    **options: Any,
) -> tuple[Any, None]:
    """Attention as transformers calls it; of several rows, or of one with a mask, as sdpa.

    Args:
        module: The layer.
        query: Shape ``(B, H, T, D)``.
        key: Shape ``(B, H_kv, T, D)``.
        value: The same shape.
        attention_mask: What the rows' tokens see, where their positions do not tell.
        position_ids: Shape ``(B, T)``.
        options: ``scaling``, what products are multiplied by, and what a layer may want beside.

    Returns:
        What is attended to, shape ``(B, T, H, D)``.

    Raises:
        NotImplementedError: The layer wants more of attention than products and branches.
    """
    if attention_mask is not None or len(query) > 1:
        sdpa: Any = library("transformers.integrations.sdpa_attention").sdpa_attention_forward
        return sdpa(module, query, key, value, attention_mask, **options)
    row = None if position_ids is None else _trees_of(tuple(position_ids[0].tolist()))
    if row is None or any(options.get(name) is not None for name in _MORE):
        raise NotImplementedError("this attention tells branches by positions, and no more")
    torch, scaling = library("torch"), options.get("scaling")
    groups = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    # One cut of the whole: its gradient is put together once.
    sizes = [n for tree in row for n in (tree.n_shared, *tree.lengths)]
    parts = iter(zip(*(x.split(sizes, dim=2) for x in (query, key, value)), strict=True))

    def attend(query: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        n, n_seen = query.shape[2], sum(x.shape[2] for x in keys)
        own = None if n == n_seen else torch.ones(n, n_seen, dtype=torch.bool).tril(n_seen - n)
        return torch.nn.functional.scaled_dot_product_attention(
            query,
            torch.cat(list(keys), dim=2),
            torch.cat(list(values), dim=2),
            attn_mask=None if own is None else own.to(query.device),
            is_causal=own is None,
            scale=scaling,
        )

    made: list[Any] = []
    for tree in row:
        shared_query, shared_key, shared_value = next(parts)
        if tree.n_shared:
            made.append(attend(shared_query, [shared_key], [shared_value]))
        for _ in tree.lengths:
            own_query, own_key, own_value = next(parts)
            made.append(attend(own_query, [shared_key, own_key], [shared_value, own_value]))
    return torch.cat(made, dim=2).transpose(1, 2).contiguous(), None


@lru_cache(maxsize=8)
def _trees_of(positions: tuple[int, ...]) -> list[Tree] | None:
    return trees(positions)
