"""Faults to plant in the model, one at a time. Each is a fragment of a file and what replaces it.

To add one: a name, the file under `tfbook/`, a fragment that stands there exactly once, and the
faulty text. `test_mutations.py` applies it to a copy of the package and runs the suite.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    name: str
    file: str
    old: str
    new: str


ATTENTION, MASKS, CACHE = "model/attention.py", "model/masks.py", "model/cache.py"
BLOCK, STACK, POSITIONS = "model/block.py", "model/transformer.py", "model/positions.py"
NORM, FFN, LOSS, DECODING = "model/normalization.py", "model/feedforward.py", "model/loss.py", "decoding.py"

MUTATIONS = [
    Mutation("no scale on the fused path", ATTENTION, "enable_gqa=grouped\n", "enable_gqa=grouped, scale=1.0\n"),
    Mutation("no scale on the plain path", ATTENTION, "query / math.sqrt(query.shape[-1]) @", "query @"),
    Mutation("softmax over the queries", ATTENTION, "scores.softmax(dim=-1,", "scores.softmax(dim=-2,"),
    Mutation("values from keys", ATTENTION, "split_heads(self.value(source), self.n_kv_heads)", "split_heads(self.key(source), self.n_kv_heads)"),
    Mutation("no output map", ATTENTION, "output: Tensor = self.output(merge_heads(", "output: Tensor = (lambda z: z)(merge_heads("),
    Mutation("split without transpose", ATTENTION, "x.view(batch, length, n_heads, width // n_heads).transpose(1, 2)", "x.reshape(batch, n_heads, length, width // n_heads)"),
    Mutation("merge without transpose", ATTENTION, "return x.transpose(1, 2).flatten(2)", "return x.reshape(x.shape[0], x.shape[2], -1)"),
    Mutation("key heads tiled, not interleaved", ATTENTION, "key = key.repeat_interleave(group, dim=1)", "key = key.repeat(1, group, 1, 1)"),
    Mutation("dropout in eval mode", ATTENTION, "self.dropout if self.training else 0.0", "self.dropout"),
    Mutation("mask inverted", ATTENTION, "return mask.view(shape)", "return ~mask.view(shape)"),
    Mutation("masked rows not zeroed", ATTENTION, "weights = weights.masked_fill(~mask, 0.0)", "weights = weights * 1.0"),
    Mutation("rotation of queries only", ATTENTION, "rotate(query, rotation), rotate(key, rotation)", "rotate(query, rotation), key"),
    Mutation("mask aligned to the first key", MASKS, "every_pair.tril(diagonal=keys - queries)", "every_pair.tril()"),
    Mutation("mask off by one, into the future", MASKS, "diagonal=keys - queries", "diagonal=keys - queries + 1"),
    Mutation("mask off by one, into the past", MASKS, "diagonal=keys - queries", "diagonal=keys - queries - 1"),
    Mutation("mask transposed", MASKS, ".tril(diagonal=keys - queries)", ".triu(diagonal=keys - queries)"),
    Mutation("padding ignored", MASKS, "return padding if mask is None else mask & padding", "return mask"),
    Mutation("padding without causality", MASKS, "else mask & padding", "else padding"),
    Mutation("positions restart in each chunk", CACHE, "torch.arange(self.length, self.length + new,", "torch.arange(0, new,"),
    Mutation("positions count the padding", CACHE, "(real.cumsum(dim=1) - 1).clamp(min=0)", "torch.ones_like(real).cumsum(dim=1) - 1"),
    Mutation("cache written one place late", CACHE, "end] = value.detach()", "end] = value.detach().roll(1, dims=2)"),
    Mutation("cache never advances", CACHE, "self.length += new", "self.length += 0"),
    Mutation("reorder forgets the values", CACHE, "for buffer in self.keys + self.values:", "for buffer in self.keys:"),
    Mutation("padding forgotten by the cache", CACHE, "self.padded = self.padded or", "self.padded = False and"),
    Mutation("no residual in Pre-LN", BLOCK, "return x + self._drop(sublayer(norm(x)))", "return self._drop(sublayer(norm(x)))"),
    Mutation("the residual is normalised too", BLOCK, "return x + self._drop(sublayer(norm(x)))", "return norm(x) + self._drop(sublayer(norm(x)))"),
    Mutation("Post-LN normalises inside", BLOCK, "norm(x + self._drop(sublayer(x)))", "x + norm(self._drop(sublayer(x)))"),
    Mutation("cross-attention kept in no cache", BLOCK, "cache.cross[self.layer] = (keys.detach(), values.detach())", "cache.cross[self.layer] = None"),
    Mutation("mask only in eval mode", STACK, "mask = attention_mask(new, past + new, self.causal,", "mask = attention_mask(new, past + new, self.causal and not self.training,"),
    Mutation("tied weights copied", STACK, "head.weight = stack.tokens.weight", "head.weight = nn.Parameter(stack.tokens.weight.detach().clone())"),
    Mutation("no final norm", STACK, "return x if self.final_norm is None else self.final_norm(x)", "return x"),
    Mutation("no embedding scale", STACK, "x = x * math.sqrt(self.config.d_model)", "x = x * 1.0"),
    Mutation("rotations of neighbouring pairs", POSITIONS, "left * cos - right * sin, right * cos + left * sin), dim=-1)", "left * cos + right * sin, right * cos - left * sin), dim=-1)"),
    Mutation("phases in the model's own precision", POSITIONS, "angles.cos(), angles.sin()", "angles.bfloat16().cos().float(), angles.bfloat16().sin().float()"),
    Mutation("eps outside the root", NORM, "(wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()", "1 / (wide.square().mean(-1, keepdim=True).sqrt() + self.eps)"),
    Mutation("the mean removed in RMSNorm", NORM, "scaled = wide *", "scaled = (wide - wide.mean(-1, keepdim=True)) *"),
    Mutation("no nonlinearity", FFN, "hidden = self.activation(self.up(x))", "hidden = self.up(x)"),
    Mutation("gate and map exchanged", FFN, "hidden = self.activation(self.up(x))", "hidden = self.activation((self.gate or self.up)(x))"),
    Mutation("labels not shifted", LOSS, "labels[:, :-1] = ids[:, 1:]", "labels[:, :-1] = ids[:, :-1]"),
    Mutation("top-p keeps one token more", DECODING, "removed = before >= self.top_p", "removed = before > self.top_p"),
    Mutation("finished rows go on", DECODING, ".masked_fill(finished, pad_id)", ""),
    Mutation("chunks skip a token", DECODING, "part = slice(start, start + (chunk or ids.shape[1]))", "part = slice(start, start + (chunk or ids.shape[1] + 1) - 1)"),
]  # fmt: skip
