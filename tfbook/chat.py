"""A conversation with a chat model, whose past stays in the key/value cache from turn to turn.

Each turn is written in the markers that SmolLM2-Instruct was trained on (ChatML):
`<|im_start|>user`, the text, `<|im_end|>`, then `<|im_start|>assistant`, and the model goes on.
Only what is new is read: the earlier turns are in the cache.
"""

from collections.abc import Iterator
from html import escape
from typing import Any

import torch
from torch import Tensor

from tfbook.decoding import Sampler, prefill
from tfbook.interactive.form import html_would_win, in_kernel
from tfbook.model import Decoder, KVCache

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
START, END = "<|im_start|>", "<|im_end|>"


class Chat:
    """A conversation; as the last line of a cell it shows itself, with a line to type in where a kernel runs.

    `turns` has the texts so far, (asked, answered); `cache.length` tells how many tokens are in the
    cache. An answer ends by itself, after `longest` tokens, or where the model's context is full.
    """

    def __init__(
        self,
        model: Decoder,
        tokenizer: Any,
        system: str = SYSTEM,
        temperature: float = 0.0,
        longest: int = 200,
        context: int = 2048,
    ) -> None:
        self.model, self.tokenizer, self.system, self.longest = model, tokenizer, system, longest
        self.end = tokenizer.token_to_id(END)
        if self.end is None:
            raise ValueError(f"the tokenizer has no {END}; give that of a chat model, such as smollm2-135m")
        weight = model.head.weight
        context = min(context, model.config.max_length)
        self.cache = KVCache(model.config, 1, context, weight.dtype, weight.device)
        self.sampler = Sampler(temperature)
        self.turns: list[tuple[str, str]] = []

    def say(self, text: str) -> str:
        """The whole answer to a text. Raises ValueError where the text does not fit into the context."""
        return "".join(self.stream(text))

    def stream(self, text: str) -> Iterator[str]:
        """The answer in pieces, as they are generated. A turn that is broken off leaves no trace."""
        ids = self._turn(text)
        room = self.cache.max_length - self.cache.length - ids.shape[1]
        if room < 1:
            told = f"{self.cache.length} are filled and this turn has {ids.shape[1]} more"
            raise ValueError(f"the context holds {self.cache.max_length} tokens, {told}; begin a new chat")
        kept, answer = self.cache.length, None
        written: list[int] = []
        said = ""
        try:
            logits = prefill(self.model, ids, self.cache)
            while len(written) < min(self.longest, room):
                token = self.sampler.choose(logits)
                if token.item() == self.end:
                    break
                written.append(int(token.item()))
                whole = self.tokenizer.decode(written)
                if not whole.endswith("\ufffd"):  # a character of several bytes may come in several tokens
                    yield whole[len(said) :]
                    said = whole
                logits = prefill(self.model, token[:, None], self.cache)
            answer = said
        finally:
            if answer is None:
                self.cache.crop(kept)
            else:
                self.turns.append((text.strip(), answer))

    def _turn(self, text: str) -> Tensor:
        """What the cache has not seen before this turn's answer: (1, T) ids."""
        if not text.strip():
            raise ValueError("the text is empty; ask something")
        for marker in (START, END):
            # Footgun: left whole, a marker that someone types would speak for the model.
            text = text.replace(marker, marker.replace("|", "\u200b|"))
        before = f"{END}\n" if self.turns else f"{START}system\n{self.system}{END}\n"
        whole = f"{before}{START}user\n{text.strip()}{END}\n{START}assistant\n"
        return torch.tensor([self.tokenizer.encode(whole).ids], device=self.model.head.weight.device)

    def html(self, *unfinished: tuple[str, str]) -> str:
        """The conversation so far, and turns still being answered."""
        said = "".join(
            f"<dt>You</dt><dd>{escape(asked)}</dd><dt>Model</dt><dd>{escape(answered)}</dd>"
            for asked, answered in (*self.turns, *unfinished)
        )
        return f'<dl class="tfb-chat">{said}</dl>'

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": "\n".join(f"> {asked}\n{said}" for asked, said in self.turns)}
        if not html_would_win():
            note = "This was said when the page was made. In a running notebook there is a line to type in."
            bundle["text/html"] = f'{self.html()}<p class="tfb-note">{note}</p>'
        if in_kernel():
            from tfbook.interactive.chat_widget import build_chat_widget  # needs ipywidgets

            bundle = dict(build_chat_widget(self)._repr_mimebundle_()) | bundle
        return bundle
