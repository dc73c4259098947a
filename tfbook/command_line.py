"""The accounts of a model from the command line.

    python -m tfbook params    --config config.json
    python -m tfbook kv-cache  --config llama-3-8b --batch 4 --length 8192 --dtype bf16
    python -m tfbook shapes    --config gpt2 --batch 8 --length 512 --markdown
    python -m tfbook flops     --config gpt2 --length 1 --past 511 --bandwidth "3.35 TB" --peak 989e12
    python -m tfbook capacity  --config llama-3-8b --memory "80 GB" --length 8192
    python -m tfbook presets
    python -m tfbook exercises --list
    python -m tfbook exercises --show kv-whole --seed 7 --key
    python -m tfbook exercises --export quiz.json --seed 7

`--config` takes a Hugging Face config.json, a folder that holds one, or the name of a preset. Sizes are
bytes, GiB (2^30) and GB (10^9) apart. Bad input ends with exit status 2 and one sentence on
standard error.

`--json` prints one object. Its keys are stable, its numbers are whole numbers of what the key
says (bytes, parameters, FLOPs) except seconds, rates and intensities:

    params    parameters, active_parameters, matmul_parameters, items {path: parameters}
    kv-cache  bytes, bytes_per_token, bytes_per_token_per_layer, bytes_per_token_beyond_window,
              cross_bytes, cross_bytes_per_source_token, state_bytes, expanded_bytes, items {path: bytes}
    shapes    rows [{name, where, shape, symbols, elements, parameters, blocks, note}]
    flops     flops, items {path: FLOPs}, training {exact, six_n_d, not_multiplied, attention} or null,
              decode {weight_bytes, cache_bytes, flops, memory_seconds, compute_seconds, intensity, ridge,
              tokens_per_second, bound} or null
    capacity  memory, weights, cache_per_sequence, sequences, free, cache_overtakes_at_batch,
              cache_overtakes_at_length (null where never)
    presets   {name: {title, source}}
    exercises {format, seed, exercises [{id, section, title, kind, prompt, hints, redrawn, the options,
              items or blanks of its kind, and with --key answer, slips, solution}]}

`exercises --seed` draws other numbers, the same for the same seed: another sheet for every student.
`--export` writes the exercises to a file and, with `--key`, the answer key with them.
"""

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tfbook import __version__
from tfbook.accounting import (
    PRESETS,
    capacity,
    count_parameters,
    decode_bound,
    format_bytes,
    forward_flops,
    forward_shapes,
    kv_cache,
    parse_bytes,
    preset,
    read_huggingface_config,
    training_flops,
)
from tfbook.accounting.shapes import HEADS, NUMERIC
from tfbook.accounting.tables import markdown_table, text_table
from tfbook.accounting.units import DTYPE_BITS
from tfbook.config import TransformerConfig
from tfbook.validation import short


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0, or 2 for bad input, told in one sentence."""
    options = _parser().parse_args(arguments)
    try:
        told, printed = options.run(options)
    except (ValueError, TypeError, OSError) as error:
        print(f"tfbook: {error}", file=sys.stderr)
        return 2
    try:
        print(json.dumps(told, indent=1) if options.json else printed, flush=True)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
    except OSError as error:  # a full disk, say
        print(f"tfbook: the result could not be written: {error}", file=sys.stderr)
        sys.stdout = None  # or Python tries once more on leaving
        return 2
    return 0


Result = tuple[dict[str, Any], str]


def _params(options: argparse.Namespace) -> Result:
    account = count_parameters(_config(options))
    told = {
        "parameters": account.total,
        "active_parameters": account.active,
        "matmul_parameters": account.matmul,
        "items": dict(account.items()),
    }
    lines = [f"{account.total:,} parameters"]
    if account.active != account.total:
        share = account.active / account.total
        lines.append(f"{account.active:,} of them are used by one token ({share:.1%})")
    lines.append(f"{account.matmul:,} are multiplied in one token's matrix products")
    return told, _page(lines, str(account), account.to_markdown(), options)


def _kv_cache(options: argparse.Namespace) -> Result:
    config = _config(options)

    def size(expanded: bool) -> Any:
        return kv_cache(
            config,
            options.batch,
            options.length,
            options.dtype,
            source_length=options.source_length,
            group_size=options.group_size,
            expanded=expanded,
        )

    need, expanded = size(False), size(True)
    told = {
        "bytes": need.bytes,
        "bytes_per_token": need.bytes_per_token,
        "bytes_per_token_per_layer": need.bytes_per_token_per_layer,
        "bytes_per_token_beyond_window": need.bytes_per_token_beyond_window,
        "cross_bytes": need.cross_bytes,
        "cross_bytes_per_source_token": need.cross_bytes_per_source_token,
        "state_bytes": need.state_bytes,
        "expanded_bytes": expanded.bytes,
        "items": dict(need.account.items()),
    }
    asked = f"B = {options.batch}, T = {options.length:,}, {options.dtype}"
    lines = [
        f"{need.bytes:,} bytes = {format_bytes(need.bytes)} for {asked}",
        f"{need.bytes_per_token:,} bytes per token, {need.bytes_per_token_per_layer:,} per token per layer",
    ]
    if need.bytes_per_token_beyond_window != need.bytes_per_token:
        beyond = need.bytes_per_token_beyond_window
        lines.append(f"{beyond:,} bytes per token once the window of {config.window:,} is full")
    if expanded.bytes != need.bytes:
        lines.append(
            f"{format_bytes(expanded.bytes)} where keys and values are stored for every query head "
            f"({expanded.bytes / need.bytes:.4g} times as much)"
        )
    return told, _page(lines, str(need.account), need.account.to_markdown(), options)


def _shapes(options: argparse.Namespace) -> Result:
    rows = forward_shapes(_config(options), options.batch, options.length, options.source_length)
    keys = ("name", "where", "shape", "symbols", "elements", "parameters", "note")
    told = [{key: getattr(row, key) for key in keys} | {"blocks": row.times} for row in rows]
    cells = [row.cells for row in rows]
    total = f"{sum(row.parameters * row.times for row in rows):,} parameters in all"
    return {"rows": told}, _page(
        [total], text_table(HEADS, cells, NUMERIC), markdown_table(HEADS, cells, NUMERIC), options
    )


def _flops(options: argparse.Namespace) -> Result:
    config = _config(options)
    account = forward_flops(
        config,
        options.batch,
        options.length,
        options.past,
        source_length=options.source_length,
        last_only=options.last_only,
        skip_masked=options.skip_masked,
    )
    lines = [f"{account.total:,} FLOPs of matrix products (a multiply-add is 2)"]
    training = None
    if not options.past and config.layout != "encoder-decoder":
        rule = training_flops(config, options.batch, options.length)
        training = dataclasses.asdict(rule)
        share = rule.six_n_d / rule.exact
        lines.append(
            f"{rule.exact:,} for a training step; the rule 6 N D says {rule.six_n_d:,} ({share:.1%})"
        )
    if (options.bandwidth is None) != (options.peak is None):
        raise ValueError("--bandwidth and --peak belong together; give both, or neither")
    decode = None
    if options.bandwidth is not None:
        bound = decode_bound(
            config,
            options.bandwidth,
            options.peak,
            options.batch,
            options.past + options.length,
            dtype=options.dtype,
            source_length=options.source_length,
        )
        names = ("memory_seconds", "compute_seconds", "intensity", "ridge", "tokens_per_second")
        decode = {name: getattr(bound, name) for name in ("weight_bytes", "cache_bytes", "flops", "bound")}
        decode |= {name: float(getattr(bound, name)) for name in names}
        lines.append(
            f"a decoding step reads {format_bytes(bound.weight_bytes + bound.cache_bytes)}: at most "
            f"{float(bound.tokens_per_second):,.1f} tokens/s, bound by {bound.bound} "
            f"({float(bound.intensity):.3g} FLOPs a byte; the hardware's balance is {float(bound.ridge):.3g})"
        )
    told = {"flops": account.total, "items": dict(account.items()), "training": training, "decode": decode}
    return told, _page(lines, str(account), account.to_markdown(), options)


def _capacity(options: argparse.Namespace) -> Result:
    found = capacity(
        _config(options),
        options.memory,
        options.length,
        options.dtype,
        kv_dtype=options.kv_dtype,
        reserve=options.reserve,
        source_length=options.source_length,
    )
    rows = [
        ("memory", found.memory),
        ("weights", found.weights),
        (f"cache of one sequence of {options.length:,}", found.cache_per_sequence),
        (
            "free beside the sequences that fit"
            if found.free >= 0
            else "missing for the weights and the reserve",
            abs(found.free),
        ),
    ]
    cells = [(name, f"{size:,}", format_bytes(size)) for name, size in rows]
    longest = found.cache_overtakes_at_length
    when = "never" if longest is None else f"at {longest:,} tokens"
    lines = [
        f"{found.sequences:,} sequences of {options.length:,} tokens fit",
        f"the cache is as large as the weights at batch {found.cache_overtakes_at_batch:,} of this length, "
        f"and in one sequence {when}",
    ]
    heads = ("", "bytes", "")
    tables = text_table(heads, cells, (1,)), markdown_table(heads, cells, (1,))
    return dataclasses.asdict(found), _page(lines, *tables, options)


def _presets(options: argparse.Namespace) -> Result:
    told = {name: {"title": entry.title, "source": entry.source} for name, entry in PRESETS.items()}
    cells = [(name, entry.title, entry.source) for name, entry in PRESETS.items()]
    heads = ("preset", "model", "source")
    return told, _page(
        [f"{len(told)} presets"], text_table(heads, cells), markdown_table(heads, cells), options
    )


def _exercises(options: argparse.Namespace) -> Result:
    from tfbook.exercises import exercise, exercises  # the commands about models need none
    from tfbook.exercises.export import FORMAT, as_data, kind_name, quiz

    if options.show and (options.export or options.section or options.list):
        raise ValueError("--show prints one exercise; leave out --export, --section and --list")
    try:
        if options.show:
            asked = exercise(options.show, options.seed)
            data = as_data(asked, options.key)
            told = {"format": FORMAT, "seed": options.seed, "exercises": [data]}
            lines = [f"{asked.id} ({asked.section}, {data['kind']}): {asked.title}", "", asked.prompt]
            lines += _choices(data) + [f"Hint: {hint}" for hint in asked.hints if options.key]
            if options.key:
                lines += ["", f"Answer: {data['answer']}", "", asked.solution, ""]
                lines += [
                    f"Slip {slip['name']} ({slip['answer']}): {slip['diagnosis']}" for slip in data["slips"]
                ]
            return told, "\n".join(lines)
        told = quiz(options.section, options.seed, options.key)
        found = exercises(options.section)
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    if options.export:
        Path(options.export).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return told, f"{len(found)} exercises written to {options.export}"
    heads = ("exercise", "section", "kind", "numbers", "title")
    cells = [
        (one.id, one.section, kind_name(one.kind), "drawn" if one.again else "fixed", one.title)
        for one in found
    ]
    return told, _page(
        [f"{len(found)} exercises"], text_table(heads, cells), markdown_table(heads, cells), options
    )


def _choices(data: dict[str, Any]) -> list[str]:
    """The options, items or blanks of an exercise, a line each."""
    lettered = data.get("options") or data.get("items") or {}
    lines = [f"  {key}  {text}" for key, text in lettered.items()]
    for blank in data.get("blanks", []):
        lines += [f"  {blank['label']}: ______", *_choices(blank)]
    return lines


def _page(lines: list[str], text: str, markdown: str, options: argparse.Namespace) -> str:
    return "\n".join(lines) + "\n\n" + (markdown if options.markdown else text)


def _config(options: argparse.Namespace) -> TransformerConfig:
    if options.config in PRESETS:
        return preset(options.config)
    if not Path(options.config).exists():
        told = f"--config {short(options.config)} is neither a file nor a preset"
        raise ValueError(f"{told}; `python -m tfbook presets` lists those")
    return read_huggingface_config(options.config)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"tfbook: {message}; see `{self.prog} --help`\n")


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?([0-9]{1,18}|[0-9]{1,3}(,[0-9]{3}){1,6})", text):
        raise argparse.ArgumentTypeError(f"{short(text)} is no whole number")
    return int(text.replace(",", ""))


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _rate(text: str) -> int:
    return _size(text.removesuffix("/s"))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{short(text)} is no number") from None


# The options of the commands, each said once.
_OPTIONS: dict[str, dict[str, Any]] = {
    "--batch": {"type": _whole, "default": 1, "help": "B, sequences (1)"},
    "--length": {"type": _whole, "default": 1, "help": "T, tokens of each (1)"},
    "--source-length": {"type": _whole, "help": "S, the encoder's input in an encoder-decoder"},
    "--dtype": {
        "choices": DTYPE_BITS,
        "default": "fp16",
        "metavar": "TYPE",
        "help": "of weights and cache (fp16)",
    },
    "--kv-dtype": {"choices": DTYPE_BITS, "metavar": "TYPE", "help": "of the cache, where it differs"},
    "--group-size": {"type": _whole, "help": "numbers of a quantised cache that share a 16-bit scale"},
    "--past": {"type": _whole, "default": 0, "help": "tokens that are in the cache already (0)"},
    "--last-only": {"action": "store_true", "help": "logits of the last position alone"},
    "--skip-masked": {"action": "store_true", "help": "count only the pairs that the causal mask allows"},
    "--bandwidth": {"type": _rate, "metavar": "SIZE", "help": "of memory per second, such as '3.35 TB'"},
    "--peak": {"type": _number, "help": "FLOPs per second, such as 989e12"},
    "--memory": {"type": _size, "required": True, "metavar": "SIZE", "help": "such as '80 GB' or '24 GiB'"},
    "--list": {"action": "store_true", "help": "list them (this is also what happens without options)"},
    "--show": {"metavar": "ID", "help": "print one exercise"},
    "--export": {"metavar": "FILE", "help": "write them as JSON"},
    "--section": {"help": "only those of a section, such as 2.5.6"},
    "--seed": {"type": _whole, "help": "draw other numbers"},
    "--key": {"action": "store_true", "help": "with answers, slips and solutions"},
    "--reserve": {"type": _size, "default": 0, "metavar": "SIZE", "help": "memory kept free (0)"},
}
_COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], Result], str, tuple[str, ...]]] = {
    "params": (_params, "the parameters, item by item", ()),
    "kv-cache": (
        _kv_cache,
        "the key/value cache",
        ("--batch", "--length", "--source-length", "--dtype", "--group-size"),
    ),
    "shapes": (_shapes, "the forward pass, row by row", ("--batch", "--length", "--source-length")),
    "flops": (
        _flops,
        "what a pass computes, and what bounds decoding",
        (
            *("--batch", "--length", "--source-length", "--past", "--last-only", "--skip-masked"),
            *("--bandwidth", "--peak", "--dtype"),
        ),
    ),
    "capacity": (
        _capacity,
        "how many sequences fit",
        ("--memory", "--length", "--source-length", "--dtype", "--kv-dtype", "--reserve"),
    ),
    "presets": (_presets, "the models known by name", ()),
    "exercises": (
        _exercises,
        "the book's exercises, for teachers",
        ("--list", "--show", "--export", "--section", "--seed", "--key"),
    ),
}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m tfbook", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"tfbook {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for name, (run, told, options) in _COMMANDS.items():
        command = commands.add_parser(name, help=told, description=told)
        command.set_defaults(run=run)
        if name not in ("presets", "exercises"):
            command.add_argument(
                "--config",
                required=True,
                metavar="FILE|PRESET",
                help="a config.json, its folder, or a preset",
            )
        for option in options:
            command.add_argument(option, **_OPTIONS[option])
        how = command.add_mutually_exclusive_group()
        how.add_argument("--json", action="store_true", help="one object, for programs")
        how.add_argument("--markdown", action="store_true", help="tables in Markdown")
    return parser
