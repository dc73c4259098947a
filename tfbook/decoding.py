"""Generation: the prompt at once or in chunks, then one token at a time.

A step is the same for every model: hand it the ids that the cache has not seen, take the
logits of the last position, choose a token. Without a cache the whole sequence is handed over
each time; a test holds the two equal.

Sources: top-p, Holtzman et al. 2019 (arXiv 1904.09751); min-p, Nguyen et al. 2024 (arXiv 2407.01082).
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from tfbook.model import Decoder, EncoderDecoder, KVCache

LONG = 64  # tokens from which on a progress bar is shown


@torch.inference_mode()
def prefill(
    model: Decoder,
    ids: Tensor,
    cache: KVCache,
    chunk: int | None = None,
    padding_mask: Tensor | None = None,
) -> Tensor:
    """Fill the cache with ids (B, T), at once or `chunk` positions at a time; logits (B, V) of the last."""
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk} is not positive; give at least 1, or None for one call")
    if ids.shape[1] == 0:
        raise ValueError("ids have length 0; give a prompt of at least one token")
    states = None
    for start in range(0, ids.shape[1], chunk or ids.shape[1]):
        part = slice(start, start + (chunk or ids.shape[1]))
        states = model.states(ids[:, part], cache, None if padding_mask is None else padding_mask[:, part])
    assert states is not None
    logits: Tensor = model.head(states[:, -1])  # the head for one position, not for all
    return logits


def stream(
    model: Decoder | EncoderDecoder,
    ids: Tensor,
    max_new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    stop: Iterable[int] = (),
    pad_id: int = 0,
    padding_mask: Tensor | None = None,
    source_ids: Tensor | None = None,
    source_padding_mask: Tensor | None = None,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
    chunk: int | None = None,
) -> Iterator[Tensor]:
    """Yield the tokens one step at a time, (B,) each.

    Temperature 0 is greedy. A row that has produced a `stop` token goes on with `pad_id`; when
    all rows have, the stream ends. Prompts of unequal length are padded on the left, with
    `padding_mask` (B, T) True at real tokens.
    """
    _check_request(model, ids, max_new_tokens, padding_mask, source_ids)
    if not 0 <= pad_id < model.config.vocab_size:
        raise ValueError(f"pad_id={pad_id} is not in the vocabulary of {model.config.vocab_size}")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk} is not positive; give at least 1, or None for one call")
    if source_padding_mask is not None and source_ids is None:
        raise ValueError("source_padding_mask is given without source_ids")
    sampler = Sampler(temperature, top_k, top_p, min_p, generator)
    stops = torch.tensor(sorted(set(stop)), dtype=ids.dtype, device=ids.device)
    finished = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    weight = model.head.weight
    cache = None
    if use_cache:
        total = ids.shape[1] + max_new_tokens
        cache = KVCache(model.config, len(ids), total, dtype=_dtype_of_keys(weight), device=weight.device)
    new = ids
    for _ in range(max_new_tokens):
        logits = _last_logits(model, new, cache, padding_mask, source_ids, source_padding_mask, chunk)
        token = sampler.choose(logits).masked_fill(finished, pad_id)
        yield token
        finished = finished | torch.isin(token, stops)
        if bool(finished.all()):
            return
        new = token[:, None] if use_cache else torch.cat((new, token[:, None]), dim=1)
        if padding_mask is not None:
            real = torch.ones_like(new[:, -1:], dtype=torch.bool)
            padding_mask = real if use_cache else torch.cat((padding_mask, real), dim=1)


def generate(
    model: Decoder | EncoderDecoder,
    ids: Tensor,
    max_new_tokens: int,
    *,
    progress: bool | None = None,
    **how: Any,
) -> Tensor:
    """The prompt and what follows it: (B, T) -> (B, T + n), n at most `max_new_tokens`.

    Takes the arguments of `stream`. Shows a progress bar when long, or as `progress` says.
    """
    steps = stream(model, ids, max_new_tokens, **how)
    hidden = max_new_tokens < LONG if progress is None else not progress
    tokens = list(tqdm(steps, total=max_new_tokens, disable=hidden, unit="token", leave=False))
    return torch.cat([ids, *(token[:, None] for token in tokens)], dim=1)


class Sampler:
    """Chooses tokens from logits (B, V). Filters apply in the order top-k, top-p, min-p.

    top_p keeps the smallest set of most likely tokens whose probability reaches top_p, always at
    least one; min_p keeps tokens at least min_p times as likely as the likeliest.
    Raises ValueError for a setting out of range.
    """

    def __init__(
        self,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        if not 0 <= temperature < float("inf"):
            raise ValueError(
                f"temperature={temperature} is out of range; give 0 (greedy) or a positive number"
            )
        if top_k is not None and top_k < 1:
            raise ValueError(f"top_k={top_k} keeps no token; give at least 1, or None for all")
        for name, value in (("top_p", top_p), ("min_p", min_p)):
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}={value} is out of range; give a number from 0 to 1, or None")
        self.temperature, self.top_k, self.top_p, self.min_p = temperature, top_k, top_p, min_p
        self.generator = generator

    def choose(self, logits: Tensor) -> Tensor:
        """logits (B, V) -> tokens (B,)."""
        if self.temperature == 0:
            return logits.argmax(dim=-1)
        probabilities = self.filtered(logits).softmax(dim=-1)
        return torch.multinomial(probabilities, 1, generator=self.generator)[:, 0]

    def filtered(self, logits: Tensor) -> Tensor:
        """The logits over the temperature, with -inf at the tokens that the filters remove."""
        # Footgun: dividing first overflows at small temperatures; the largest logit becomes 0 before.
        logits = (logits.float() - logits.float().amax(dim=-1, keepdim=True)) / max(self.temperature, 1e-30)
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            keep = torch.zeros_like(logits, dtype=torch.bool)
            keep.scatter_(-1, logits.topk(self.top_k).indices, True)
            logits = logits.masked_fill(~keep, float("-inf"))
        if self.top_p is not None and self.top_p < 1:
            ordered, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
            # Footgun: a token stays while the mass *before* it is below top_p. Comparing the sum that
            # includes it drops the one that reaches top_p, and at top_p = 0 drops all.
            before = ordered.cumsum(dim=-1) - ordered
            removed = before >= self.top_p
            removed[..., 0] = False
            logits = logits.masked_fill(torch.zeros_like(removed).scatter(-1, order, removed), float("-inf"))
        if self.min_p is not None:
            floor = logits.softmax(dim=-1)
            logits = logits.masked_fill(floor < self.min_p * floor.amax(dim=-1, keepdim=True), float("-inf"))
        return logits


@torch.inference_mode()
def _last_logits(
    model: Decoder | EncoderDecoder,
    new: Tensor,
    cache: KVCache | None,
    padding_mask: Tensor | None,
    source_ids: Tensor | None,
    source_padding_mask: Tensor | None,
    chunk: int | None,
) -> Tensor:
    """The logits (B, V) behind the newest id, computed with the cache where there is one."""
    if isinstance(model, EncoderDecoder):
        assert source_ids is not None
        states = model.states(source_ids, new, source_padding_mask, cache)
    elif cache is not None:
        return prefill(model, new, cache, chunk, padding_mask)
    else:
        states = model.states(new, None, padding_mask)
    logits: Tensor = model.head(states[:, -1])
    return logits


def _dtype_of_keys(weight: Tensor) -> torch.dtype:
    """What the model's maps will return: under autocast not the type of their weights."""
    kind = weight.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def _check_request(
    model: Decoder | EncoderDecoder,
    ids: Tensor,
    max_new_tokens: int,
    padding_mask: Tensor | None,
    source_ids: Tensor | None,
) -> None:
    if not isinstance(model, Decoder | EncoderDecoder):
        raise TypeError(f"{type(model).__name__} does not generate; give a Decoder or an EncoderDecoder")
    if isinstance(model, EncoderDecoder) != (source_ids is not None):
        raise ValueError("source_ids belong to an EncoderDecoder, and it needs them")
    if isinstance(model, EncoderDecoder) and padding_mask is not None:
        raise ValueError(
            "padding_mask is for a Decoder's prompt; an EncoderDecoder takes source_padding_mask"
        )
    if ids.dim() != 2 or 0 in ids.shape:
        raise ValueError(
            f"ids have shape {tuple(ids.shape)}; give a prompt (batch, length) of at least one token"
        )
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens={max_new_tokens} is not positive; give at least 1")
    if ids.shape[1] + max_new_tokens > model.config.max_length + 1:
        room = model.config.max_length + 1 - ids.shape[1]
        raise ValueError(
            f"a prompt of {ids.shape[1]} and max_new_tokens={max_new_tokens} exceed "
            f"max_length={model.config.max_length}; ask for at most {max(room, 0)}"
        )
    if padding_mask is not None and not bool(padding_mask[:, -1].all()):
        # Footgun: tokens are appended on the right, so they would follow the padding.
        raise ValueError("padding_mask ends in padding; pad prompts on the left")
