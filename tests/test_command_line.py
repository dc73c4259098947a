"""`python -m tfbook`: readable tables, stable JSON, one sentence and status 2 for bad input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tfbook import __version__
from tfbook.accounting import PRESETS, capacity, count_parameters, forward_flops, kv_cache, preset
from tfbook.command_line import main
from tfbook.exercises import check, exercise, exercises


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, error = capsys.readouterr()
    assert not error
    return out


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    return json.loads(run(capsys, *arguments, "--json"))


def test_json_says_what_python_says(capsys: pytest.CaptureFixture[str]) -> None:
    config = preset("gemma-3-1b")
    name = ("--config", "gemma-3-1b")
    account = count_parameters(config)
    params = told(capsys, "params", *name)
    assert params == {
        "parameters": account.total,
        "active_parameters": account.active,
        "matmul_parameters": account.matmul,
        "items": dict(account.items()),
    }
    size = kv_cache(config, 2, 3000, "bf16")
    cache = told(capsys, "kv-cache", *name, "--batch", "2", "--length", "3,000", "--dtype", "bf16")
    assert (
        cache["items"] == dict(size.account.items())
        and sum(cache["items"].values()) == cache["bytes"] == size.bytes
    )
    assert cache["expanded_bytes"] == kv_cache(config, 2, 3000, "bf16", expanded=True).bytes
    for key in (
        "bytes_per_token",
        "bytes_per_token_per_layer",
        "bytes_per_token_beyond_window",
        "cross_bytes",
        "state_bytes",
    ):
        assert cache[key] == getattr(size, key)
    rows = told(capsys, "shapes", *name, "--batch", "2", "--length", "5")["rows"]
    assert sum(row["parameters"] * row["blocks"] for row in rows) == account.total
    assert rows[0]["shape"] == [2, 5, 1152]
    flops = told(capsys, "flops", *name, "--length", "7")
    assert flops["flops"] == forward_flops(config, 1, 7).total == sum(flops["items"].values())
    assert flops["training"]["exact"] == 3 * flops["flops"] and flops["decode"] is None
    decode = told(capsys, "flops", *name, "--past", "99", "--bandwidth", "3.35 TB/s", "--peak", "989e12")[
        "decode"
    ]
    assert decode["bound"] == "memory" and decode["flops"] == forward_flops(config, 1, 1, 99).total
    found = capacity(config, 8 * 10**9, 100)
    room = told(capsys, "capacity", *name, "--memory", "8 GB", "--length", "100")
    assert room == {key: getattr(found, key) for key in room} and room["sequences"] == found.sequences
    assert told(capsys, "presets").keys() == PRESETS.keys()


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_prints_its_tables(capsys: pytest.CaptureFixture[str], name: str) -> None:
    encoder = preset(name).layout == "encoder"
    for command, *options in [
        ("params",),
        ("shapes", "--length", "4"),
        ("flops", "--length", "4"),
        *(
            []
            if encoder
            else [("kv-cache", "--length", "4"), ("capacity", "--memory", "80 GB", "--length", "4")]
        ),
    ]:
        text = run(capsys, command, "--config", name, *options)
        assert len(text.splitlines()) > 3
        markdown = run(capsys, command, "--config", name, *options, "--markdown")
        assert "| --: |" in markdown


def test_exercises_for_teachers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    listed = run(capsys, "exercises", "--list")
    assert f"{len(exercises())} exercises" in listed and "kv-whole" in listed
    assert "kv-whole" not in run(capsys, "exercises", "--section", "2.5.1")
    shown = run(capsys, "exercises", "--show", "kv-whole", "--seed", "7")
    asked = exercise("kv-whole", 7)
    assert asked.prompt in shown and str(asked.truth) not in shown
    key = run(capsys, "exercises", "--show", "kv-whole", "--seed", "7", "--key")
    assert str(asked.truth) in key and asked.mistakes[0].diagnosis in key
    file = tmp_path / "quiz.json"
    run(capsys, "exercises", "--export", str(file), "--seed", "7")
    sheet = json.loads(file.read_text("utf-8"))
    assert sheet["format"] == "tfbook-quiz-1" and len(sheet["exercises"]) == len(exercises())
    assert all("answer" not in one and "solution" not in one for one in sheet["exercises"])
    run(capsys, "exercises", "--export", str(file), "--seed", "7", "--key")
    for one in json.loads(file.read_text("utf-8"))["exercises"]:
        if one["kind"] != "code":
            answer = one["answer"]
            assert check(one["id"], answer, 7).correct, one
        assert len(one["slips"]) >= 1 and one["solution"]
    assert told(capsys, "exercises", "--show", "ffn-hull")["exercises"][0]["options"].keys() == {
        "a",
        "b",
        "c",
        "d",
    }


def test_a_file_and_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PRESETS["gpt2"].config))
    by_name = run(capsys, "params", "--config", "gpt2")
    assert run(capsys, "params", "--config", str(tmp_path)) == by_name
    assert run(capsys, "params", "--config", str(tmp_path / "config.json")) == by_name
    assert "124,439,808 parameters" in by_name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("kv-cache --config nope", "--config 'nope' is neither a file nor a preset"),
        ("kv-cache --config gpt2 --length -4", "length=-4 is not positive"),
        ("kv-cache --config gpt2 --length many", "argument --length: 'many' is no whole number"),
        ("kv-cache --config gpt2 --dtype fp7", "argument --dtype: invalid choice: 'fp7'"),
        ("kv-cache --config bert-base-uncased", "layout='encoder' keeps no key/value cache"),
        ("kv-cache --config gpt2 --group-size 8", "scales belong to int8, int4 or fp8"),
        ("capacity --config gpt2 --memory 80G --length 5", "does not say which unit; write GB or GiB"),
        ("flops --config gpt2 --peak 1e12", "--bandwidth and --peak belong together"),
        ("flops --config gpt2 --peak fast", "argument --peak: 'fast' is no number"),
        ("flops --config gpt2 --bandwidth 1kB --peak nan", "peak=nan is no number from 1 on"),
        ("params", "the following arguments are required: --config"),
        ("params --config gpt2 --json --markdown", "not allowed with argument"),
        ("kv-cache --config gpt2 --batch 1,0", "argument --batch: '1,0' is no whole number"),
        ("shapes --config gpt2 --source-length 3", "only an encoder-decoder has a source"),
        ("exercises --show kv-whole --export q.json", "--show prints one exercise"),
        ("exercises --show nope", "exercise 'nope' does not exist"),
        ("exercises --section 9", "section '9' has no exercises"),
        ("exercises --export /nowhere/quiz.json", "No such file or directory"),
        ("frobnicate", "invalid choice: 'frobnicate'"),
        ("", "the following arguments are required: COMMAND"),
        ("params --config gpt2 --batch 3", "unrecognized arguments: --batch 3"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    try:
        status = main(arguments.split())
    except SystemExit as leaving:  # by argparse
        status = leaving.code
    out, error = capsys.readouterr()
    assert (status, out) == (2, "")
    assert error.startswith("tfbook: ") and said in error and error.count("\n") == 1


def test_bad_files_are_one_sentence_and_status_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for content in (b"", b"\x00\xff", b"[]", b"{}", b'{"model_type": "llama"}', b"[" * 100_000):
        file = tmp_path / "config.json"
        file.write_bytes(content)
        assert main(["params", "--config", str(file)]) == 2
        out, error = capsys.readouterr()
        assert not out and error.count("\n") == 1 and "Traceback" not in error


def test_as_a_program() -> None:
    def started(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tfbook", *arguments], capture_output=True, text=True, check=False
        )

    version = started("--version")
    assert (version.returncode, version.stdout) == (0, f"tfbook {__version__}\n")
    assert "kv-cache" in started("--help").stdout
    bad = started("params", "--config", "nope")
    assert bad.returncode == 2 and "Traceback" not in bad.stderr
    closed = (
        f"{sys.executable} -m tfbook shapes --config deepseek-v3 --json | head -1; exit ${{PIPESTATUS[0]}}"
    )
    piped = subprocess.run(["bash", "-c", closed], capture_output=True, text=True, check=False)
    assert piped.returncode == 0 and "Traceback" not in piped.stderr


def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tfbook", "params", "--config", "gpt2"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (
        ended.returncode == 2 and "could not be written" in ended.stderr and "Traceback" not in ended.stderr
    )


def test_the_command_line_needs_no_torch() -> None:
    code = "import sys; from tfbook.command_line import main; main(['params', '--config', 'gpt2']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
