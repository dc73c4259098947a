"""A chat as ipywidgets, for a live kernel: what was said, a line to type in, a button."""

from typing import Any

import ipywidgets as ipw


def build_chat_widget(chat: Any) -> ipw.VBox:
    """The widget of a `tfbook.chat.Chat`. The answer appears while it is written."""
    said, state = ipw.HTML(chat.html()), ipw.Label()
    line = ipw.Text(
        placeholder="Ask something, then press Enter",
        continuous_update=False,
        layout={"width": "40em", "max_width": "100%"},
    )

    def answer(change: dict[str, Any]) -> None:
        text, answered = change["new"], ""
        if not text.strip():
            return
        line.value, line.disabled = "", True
        try:
            for piece in chat.stream(text):
                answered += piece
                said.value = chat.html((text, answered))
            state.value = f"{chat.cache.length} of {chat.cache.max_length} tokens are in the cache"
        except ValueError as error:
            state.value = str(error)
        said.value, line.disabled = chat.html(), False

    line.observe(answer, "value")
    return ipw.VBox([said, line, state])
