"""A grader is worth its rejections: every exercise with its solution, each slip, and noise."""

import inspect
import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.strategies import BAD_ANSWERS
from tfbook.exercises import _SECTIONS as SECTIONS
from tfbook.exercises import check, exercise, exercises
from tfbook.exercises.authoring import ask, example_answer
from tfbook.exercises.code import LATE, Code, CodeExercise, OutOfTimeError, bounded, slip
from tfbook.exercises.compound import Blanks, Bytes, Number, Ordering
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Choice, Expression, Integer, Shape

ALL = exercises()
CODE = [e for e in ALL if isinstance(e, CodeExercise)]
BAD = [*BAD_ANSWERS, "\x00", "\ud800"]
ODD = [
    None,
    True,
    1.5,
    float("nan"),
    float("inf"),
    b"4",
    {},
    {"a": 1},
    object(),
    [[]],
    ["a"],
    (0,),
    10**400,
    range(3),
]


def judged_rightly(asked: Exercise) -> None:
    truth, mistakes = asked.key()
    assert asked.check(truth).correct
    for mistake in mistakes:
        verdict = asked.check(example_answer(asked, mistake))
        assert not verdict.correct
        assert verdict.mistake == mistake.name, (asked.id, asked.seed, mistake.name)
        assert verdict.message == mistake.diagnosis


@pytest.mark.parametrize("asked", ALL, ids=lambda e: e.id)
def test_the_solution_is_accepted_and_every_slip_diagnosed_as_itself(asked: Exercise) -> None:
    judged_rightly(asked)
    several = isinstance(asked.kind, Choice) and asked.kind.many  # there each option is diagnosed for itself
    assert len(asked.key()[1]) >= (6 if isinstance(asked, CodeExercise) else 2 if several else 3)


@pytest.mark.parametrize("asked", [e for e in ALL if e.again], ids=lambda e: e.id)
def test_redrawn_numbers_are_judged_as_rightly_and_reproducibly(asked: Exercise) -> None:
    prompts = set()
    for seed in range(60):
        other = exercise(asked.id, seed)
        assert (other.id, other.section, other.seed) == (asked.id, asked.section, seed)
        assert other.mistakes
        judged_rightly(other)
        assert exercise(asked.id, seed).truth == other.truth
        assert check(asked.id, other.truth, seed).correct
        prompts.add(other.prompt)
    assert len(prompts) > 2


def test_there_is_enough_to_practise() -> None:
    by_section = {section: exercises(section) for section in SECTIONS}
    assert len(ALL) >= 60 and len(CODE) >= 14
    assert all(len(found) >= 5 for section, found in by_section.items() if section != "self-test")
    assert len(by_section["self-test"]) == 4
    for section, found in by_section.items():
        if section != "self-test":
            assert sum(isinstance(e, CodeExercise) for e in found) >= 2, section
            assert any("bug" in e.title.lower() for e in found), section
    assert len({e.id for e in ALL}) == len(ALL)
    assert sum(e.again is not None for e in ALL) >= 15


def test_the_right_option_is_not_always_at_the_same_place() -> None:
    single = [e.truth for e in ALL if isinstance(e.kind, Choice) and not e.kind.many]
    assert len({tuple(t) for t in single}) > 2


@pytest.mark.parametrize("asked", [e for e in ALL if e.run], ids=lambda e: e.id)
def test_what_a_prediction_is_compared_with_runs(asked: Exercise, capsys: pytest.CaptureFixture[str]) -> None:
    exec(asked.run, {})
    printed = capsys.readouterr().out
    assert float(re.search(r"[\d.]+", printed).group()) == pytest.approx(float(asked.truth), rel=0.3)
    assert asked.run in asked.check(asked.truth).message


@pytest.mark.parametrize("asked", ALL, ids=lambda e: e.id)
def test_the_texts_are_there(asked: Exercise) -> None:
    assert asked.prompt and asked.hints and asked.solution and asked.section in SECTIONS
    assert all(len(mistake.diagnosis) > 15 for mistake in asked.key()[1])


@pytest.mark.parametrize("asked", ALL, ids=lambda e: e.id)
@pytest.mark.parametrize("answer", [*BAD, *ODD], ids=lambda a: repr(a)[:20])
def test_bad_input_is_never_accepted_and_gets_a_sentence(asked: Exercise, answer: object) -> None:
    verdict = asked.check(answer)
    if asked.key()[0] == answer:
        return
    assert not verdict.correct
    assert len(verdict.message) > 15


@pytest.mark.parametrize("asked", [e for e in ALL if not isinstance(e.kind, Code)], ids=lambda e: e.id)
def test_two_hundred_random_answers_are_rejected(asked: Exercise) -> None:
    draw = random.Random(251)
    rejected = 0
    for _ in range(200):
        answer = random_answer(asked.kind, asked.truth, draw)
        value = asked.kind.read(answer)
        verdict = asked.check(answer)
        assert verdict.correct == asked.kind.same(value, asked.truth), answer
        assert len(verdict.message) > 15
        rejected += not verdict.correct
    assert rejected > 100 or isinstance(asked.kind, Choice | Ordering)


def random_answer(kind: Any, truth: Any, draw: random.Random) -> Any:
    """A readable answer, near the right one often enough to matter."""
    match kind:
        case Integer() | Bytes():
            near = [
                truth + draw.choice([-7, 7]) * max(truth // 50, 1),
                truth * draw.randint(2, 9),
                draw.randint(1, 10**9),
            ]
            return abs(draw.choice(near))
        case Number():
            return float(truth) * draw.choice([0.5, 0.8, 1.3, 2, 3, -1, 100])
        case Expression():
            names = list(kind.symbols)
            terms = [f"{draw.randint(1, 9)} {draw.choice(names)}" for _ in range(3)]
            return " + ".join(terms) + f"**{draw.randint(1, 3)}"
        case Shape():
            return tuple(draw.choice([8, 12, 64, 512, 768, 1]) for _ in range(draw.randint(1, 5)))
        case Choice(by_key=options, many=many):
            return draw.sample(list(options), draw.randint(1, len(options)) if many else 1)
        case Ordering(by_key=items):
            return draw.sample(list(items), len(items))
        case Blanks(blanks=blanks):
            return [random_answer(b.kind, t, draw) for b, t in zip(blanks, truth, strict=True)]
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("id", "answers"),
    [
        (
            "mha-shape-path",
            [
                "8,12,512,64",
                "(8, 12, 512, 64)",
                "[8 12 512 64]",
                "8x12x512x64",
                "torch.Size([8, 12, 512, 64])",
                [8, 12, 512, 64],
                torch.Size([8, 12, 512, 64]),
            ],
        ),
        (
            "mha-parameters",
            [
                "1050624",
                "1,050,624",
                "4*512^2+4*512",
                "4·512² + 4·512",
                1050624,
                1050624.0,
                torch.tensor(1050624),
            ],
        ),
        (
            "gqa-parameters",
            [
                "2d^2+2 d n_kv d_h+2d+2n_kv d_h",
                "2*(d + n_kv*d_h)*(d + 1)",
                "2dHd_h + 2dn_{kv}d_h + 2 H d_h + 2nkv dh",
                "2d² + 2d·n_kv·d_h + 2(d + n_kv d_h)",
            ],
        ),
        ("mha-reduce-to-one", ["b", "B", ["b"], {"b"}]),
        ("mha-read-a-claim", ["a, b, d", "d b a", ["a", "b", "d"], {"a", "b", "d"}]),
    ],
)
def test_equivalent_notations_are_accepted(id: str, answers: list[object]) -> None:
    for answer in answers:
        assert check(id, answer).correct, answer


def einsum_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int) -> Tensor:
    q, k, v = (torch.einsum("btd,dhe->bhte", x, w.unflatten(1, (n_heads, -1))) for w in (w_q, w_k, w_v))
    p = torch.softmax(torch.einsum("bhte,bhse->bhts", q, k) * q.shape[-1] ** -0.5, -1)
    return torch.einsum("bhts,bhse,hed->btd", p, v, w_o.unflatten(0, (n_heads, -1)))


def looped_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int) -> Tensor:
    total = torch.zeros_like(x)
    for part in torch.arange(w_q.shape[1]).chunk(n_heads):
        q, k, v = x @ w_q[:, part], x @ w_k[:, part], x @ w_v[:, part]
        total += F.scaled_dot_product_attention(q, k, v) @ w_o[part]
    return total


def sliced_heads(x: Tensor, n_heads: int) -> Tensor:
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


def sdpa_weights(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    identity = torch.eye(key.shape[2]).expand(*key.shape[:2], -1, -1)
    return F.scaled_dot_product_attention(query, key, identity, attn_mask=mask, enable_gqa=True)


class WrappedRMSNorm(torch.nn.RMSNorm):
    def __init__(self, d: int, eps: float) -> None:
        super().__init__(d, eps)


def looped_cross_attention(x: Tensor, memory: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Tensor:
    output = torch.zeros(*x.shape[:2], w_v.shape[1])
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            scores = torch.stack([(x[b, t] @ w_q) @ (m @ w_k) for m in memory[b]]) / w_q.shape[1] ** 0.5
            output[b, t] = (scores.softmax(0)[:, None] * (memory[b] @ w_v)).sum(0)
    return output


def looped_top_p(probabilities: Tensor, p: float) -> Tensor:
    kept, total = torch.zeros_like(probabilities), 0.0
    for i in sorted(range(len(probabilities)), key=lambda i: -probabilities[i]):
        if total >= p:
            break
        kept[i], total = probabilities[i], total + float(probabilities[i])
    return kept / kept.sum()


def preallocated_step(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    grown = [torch.empty(old.shape[0], old.shape[1] + 1, old.shape[2]) for old in (keys, values)]
    for new, old, w in zip(grown, (keys, values), (w_k, w_v), strict=True):
        new[:, :-1], new[:, -1:] = old, x @ w
    return F.scaled_dot_product_attention(x @ w_q, *grown), *grown


@pytest.mark.parametrize(
    ("id", "function"),
    [
        ("mha-split-heads", sliced_heads),
        ("mha-from-scratch", einsum_attention),
        ("mha-from-scratch", looped_attention),
        ("gqa-repair", sdpa_weights),
        ("ffn-code", lambda x, w1, b1, w2, b2: F.linear(F.relu(F.linear(x, w1.T, b1)), w2.T, b2)),
        (
            "swiglu-code",
            lambda x, w1, w3, w2: torch.einsum("btf,fd->btd", (x @ w1) * (x @ w1).sigmoid() * (x @ w3), w2),
        ),
        ("layer-norm-code", lambda x, gain, bias, eps: F.layer_norm(x, x.shape[-1:], gain, bias, eps)),
        ("rms-norm-code", WrappedRMSNorm),
        (
            "pre-ln-block-code",
            lambda x, attention, feed_forward, norm_1, norm_2: (
                (y := x.add(attention(norm_1(x)))) + feed_forward(norm_2(y))
            ),
        ),
        (
            "causal-mask-code",
            lambda queries, keys: torch.arange(keys) <= torch.arange(keys - queries, keys)[:, None],
        ),
        (
            "masked-attention-code",
            lambda query, key, value, mask: F.scaled_dot_product_attention(query, key, value, attn_mask=mask),
        ),
        ("cross-attention-code", looped_cross_attention),
        (
            "parameter-count-code",
            lambda vocab, d, n_layers, d_ff, d_kv, tied: (
                d * (vocab * (2 - tied) + 1 + n_layers * 2 * (d + d_kv + d_ff + 1))
            ),
        ),
        (
            "pass-flops-code",
            lambda batch, length, d, n_layers, vocab: sum(
                batch * (n_layers * (24 * d * d + 4 * length * d) + 2 * vocab * d) for _ in range(length)
            ),
        ),
        ("kv-bytes-code", lambda *sizes: 2 * math.prod(sizes)),
        (
            "next-token-loss-code",
            lambda logits, ids: -logits.log_softmax(-1)[:, :-1].gather(2, ids[:, 1:, None]).mean(),
        ),
        ("top-p-code", looped_top_p),
        ("cached-step-code", preallocated_step),
    ],
)
def test_differently_written_solutions_are_accepted(id: str, function: Callable[..., Tensor]) -> None:
    assert check(id, function).correct, check(id, function)


def spoiled(reference: Callable[..., Tensor], how: str) -> Callable[..., Any]:
    """The reference with one of the faults that any code can have."""

    def function(*given: Any) -> Any:
        match how:
            case "changes its input":
                output = reference(*given)
                given[0].mul_(2)
                return output
            case "raises":
                raise RuntimeError("my own fault")
            case "returns nan":
                return reference(*given) * float("nan")
            case "returns a list":
                return reference(*given).tolist()
            case "returns float64":
                return reference(*given).double()
            case "returns the input":
                return given[0]
            case "slightly off":
                return reference(*given) * 1.001 + 1e-3
        return None

    return function


# Spoiling a result, a class or a tuple takes other means than spoiling a tensor.
TENSOR_CODE = [
    e
    for e in CODE
    if e.kind.task.use is None
    and e.kind.home.rsplit(".", 1)[1] != "account_code"
    and e.id != "causal-mask-code"
]


@pytest.mark.parametrize("asked", TENSOR_CODE, ids=lambda e: e.id)
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("changes its input", "changes its input in place"),
        ("raises", "raised `RuntimeError: my own fault`"),
        ("returns nan", "`nan`"),
        ("returns a list", "expected a tensor, and got"),
        ("returns float64", "got torch.float64"),
        ("returns the input", "expected"),
        ("slightly off", "expected"),
        ("returns nothing", "returns nothing yet"),
    ],
)
def test_code_mutants_are_killed_and_told_why(asked: CodeExercise, how: str, told: str) -> None:
    def with_names(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__signature__ = inspect.signature(asked.kind.task.reference)
        return function

    verdict = asked.check(with_names(spoiled(asked.kind.task.reference, how)))
    assert not verdict.correct and told in verdict.message, verdict


def test_code_is_run_once_a_case_and_judged_by_what_it_did_then() -> None:
    calls = 0

    def moody(x: Tensor, n_heads: int) -> Tensor:
        nonlocal calls
        calls += 1
        return sliced_heads(x, n_heads) + (calls == 2)

    verdict = check("mha-split-heads", moody)
    assert not verdict.correct and "expected" in verdict.message
    assert calls == 4


def test_whatever_the_readers_code_raises_or_returns_is_judged() -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def leave(x: Tensor, n_heads: int) -> Tensor:
        raise SystemExit(3)

    def sulk(x: Tensor, n_heads: int) -> Tensor:
        raise SpeechlessError

    assert "SystemExit: 3" in check("mha-split-heads", leave).message
    assert "SpeechlessError" in check("mha-split-heads", sulk).message
    assert "on meta" in check("mha-split-heads", lambda x, n_heads: x.to("meta")).message
    assert "sparse" in check("mha-split-heads", lambda x, n_heads: x.to_sparse()).message


def test_a_wrong_formula_is_shown_where_it_is_wrong() -> None:
    verdict = check("gqa-parameters", "2d^2 + 2 d d_h^2 + 2d + 2 n_kv d_h")  # right wherever n_kv = d_h
    given = re.search(
        r"At d = (\d+), H = (\d+), n_kv = (\d+), d_h = (\d+) your formula gives ([\d,]+)", verdict.message
    )
    assert given
    d, _, n_kv, d_h, told = (int(number.replace(",", "")) for number in given.groups())
    assert told == 2 * d**2 + 2 * d * d_h**2 + 2 * d + 2 * n_kv * d_h
    assert told != 2 * d**2 + 2 * d * n_kv * d_h + 2 * d + 2 * n_kv * d_h


def test_a_partial_choice_does_not_give_the_rest_away() -> None:
    message = check("mha-read-a-claim", "c").message
    assert "**c**" in message and "3 more options are right" in message
    assert "**a**" not in message and "**b**" not in message and "**d**" not in message


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("while True: pass", "OutOfTimeError"),
        ("while True:\n try: x = 1\n except Exception: pass", "OutOfTimeError"),
        ("import torch; torch.ones(2**33)", "memory"),
        ("x = []\nwhile True: x.append(bytes(2**26))", "MemoryError"),
        ("def f(): f()\nf()", "RecursionError"),
    ],
)
def test_time_and_memory_are_bounded(code: str, told: str) -> None:
    with (
        pytest.raises((OutOfTimeError, MemoryError, RuntimeError, RecursionError)) as caught,
        bounded(1, 2**29),
    ):
        exec(code, {})
    assert told in f"{caught.type.__name__}: {caught.value}"
    torch.ones(2**20)  # the limits are lifted again


def test_a_loop_without_end_costs_one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfbook.exercises.code.bounded", lambda: bounded(0.2))
    calls = 0

    def endless(queries: int, keys: int) -> Tensor:
        nonlocal calls
        calls += 1
        while True:
            pass

    assert LATE in check("causal-mask-code", endless).message
    assert calls == 1


def test_no_reader_is_accused_of_what_another_did() -> None:
    def twice(draw: random.Random) -> dict[str, int]:
        return {"n": draw.randint(1, 4)}

    def make(n: int) -> Exercise:
        texts = {"id": "x", "title": "x", "prompt": "x", "hints": ("x",), "solution": "x"}
        return ask("2.5.1", Integer(), 100, ("a", n, "first slip"), ("b", 2, "second slip"), **texts)

    with pytest.raises(ValueError, match="x: the slips a and b lead to one answer"):
        make(2)
    other = drawn(make, twice, n=1)
    assert all(other.again(seed).mistakes[0].answer != 2 for seed in range(50))
    with pytest.raises(ValueError, match="no numbers tell the slips apart"):
        drawn(make, lambda draw: {"n": 2}, n=1).again(0)


@pytest.mark.parametrize(
    ("id", "answer", "told"),
    [
        ("account-error", "0.14", None),
        ("account-embedding-share", "22.4", None),
        ("account-embedding-share", "22 %", None),
        ("account-embedding-share", "36.7", "tables of their own"),
        ("ffn-share", "66.7", "Two thirds holds for"),
        ("rms-by-hand", "1.667", "RMSNorm subtracts no mean"),
        ("layout-who-reads", "6;4;9", None),
        ("kv-per-token", "320 KB", "powers of 1024"),
        ("norm-find-bug", "2;c", "Line 2 is not where it goes wrong"),
        ("norm-formulas", ["c", "a"], "Here the residual path is normalized too"),
        ("build-step-order", "cdaeb", None),
        ("build-step-order", "c → d → a → e → b", None),
        ("norm-growth", "400", "too large"),
    ],
)
def test_answers_that_readers_gave(id: str, answer: object, told: str | None) -> None:
    verdict = check(id, answer)
    assert verdict.correct == (told is None), verdict
    assert told is None or told in verdict.message
    assert "more option is right" not in verdict.message


def attended_first(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, ...]:
    scores = (x @ w_q) @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])
    return scores.softmax(-1) @ values, torch.cat([keys, x @ w_k], 1), torch.cat([values, x @ w_v], 1)


class Detached(torch.nn.Module):
    def __init__(self, d: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(d)), eps

    def forward(self, x: Tensor) -> Tensor | None:
        return self.weight.data * x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()


class Silent(Detached):
    def forward(self, x: Tensor) -> None:
        return None


class WithBuffer(Detached):
    def __init__(self, d: int, eps: float) -> None:
        super().__init__(d, 0.0)
        self.register_buffer("epsilon", torch.tensor(eps))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x / (x.square().mean(-1, keepdim=True) + self.epsilon).sqrt()


@pytest.mark.parametrize(
    ("id", "answer", "told"),
    [
        ("cached-step-code", attended_first, "append its key and value **before**"),
        ("cached-step-code", lambda *given: [part[0] for part in preallocated_step(*given)], "the output should have shape"),
        ("cached-step-code", lambda *given: list(preallocated_step(*given)), None),
        ("rms-norm-code", Detached, "no gradient reaches"),
        ("rms-norm-code", Silent, "returns nothing yet"),
        ("rms-norm-code", WithBuffer, None),
        ("rms-norm-code", lambda d, eps: torch.nn.RMSNorm(d, 1e-5), "typed a number in place of the argument"),
        ("rms-norm-code", lambda d, eps: torch.nn.Identity(), "The module has no parameter"),
        ("ffn-code", lambda x, w1, b1, w2, b2: F.relu6(x @ w1 + b1) @ w2 + b2, "expected"),
        ("kv-bytes-code", lambda *sizes: 2.0 * math.prod(sizes), "expected an int, and got float"),
        ("kv-bytes-code", lambda *sizes: 10**5000, "a very large number"),
    ],
)  # fmt: skip
def test_code_that_readers_wrote(id: str, answer: object, told: str | None) -> None:
    if id == "kv-bytes-code":
        answer.__signature__ = inspect.signature(exercise(id).kind.task.reference)
    verdict = check(id, answer)
    assert verdict.correct == (told is None), verdict
    assert told is None or told in verdict.message


def test_code_with_other_arguments_is_told_the_signature() -> None:
    assert "split_heads(x, n_heads)" in check("mha-split-heads", lambda x: x).message
    assert "hand over the function itself" in check("mha-split-heads", torch.ones(2)).message
    assert "open this chapter as a notebook" in check("mha-split-heads", "def split_heads").message


def test_unknown_ids_and_sections_name_what_there_is() -> None:
    with pytest.raises(KeyError, match="use one of mha-shape-path"):
        exercise("nothing")
    with pytest.raises(KeyError, match=r"use one of 2\.5\.1"):
        exercises("9.9")
    with pytest.raises(ValueError, match="stands 0 times"):
        slip("x", exercise("mha-split-heads").kind.task.reference, ("not there", ""), diagnosis="")


def test_the_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    """Print, for every exercise, what is accepted and what each answer is told."""
    with capsys.disabled():
        print()
        for asked in ALL:
            _, mistakes = asked.key()
            caught = [asked.check(example_answer(asked, m)).mistake == m.name for m in mistakes]
            kind, told = type(asked.kind).__name__, f"{sum(caught)}/{len(caught)}"
            print(f"  {asked.section} {asked.id:<26} {kind:<10} slips diagnosed {told}")
            assert all(caught)
