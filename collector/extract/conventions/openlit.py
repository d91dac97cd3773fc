"""OpenLIT: prompts and completions as flat text, in span events or in attributes."""

from __future__ import annotations

from collector.extract.messages import ASSISTANT, USER, Message, flat_prompt, messages
from collector.extract.readers import replies_of
from collector.extract.values import as_text, looks_encoded, unwrap
from collector.extract.view import Source, View


class OpenLIT:
    """The flat forms of `gen_ai.prompt` and `gen_ai.completion`, as span event or attribute."""

    name = "openlit"
    content_switch = "call openlit.init(capture_message_content=True)"
    hints = ("gen_ai.",)

    def read(self, source: Source) -> View | None:
        prompt = completion = None
        for event in source.span.events:
            if event.name == "gen_ai.content.prompt":
                prompt = as_text(event.attributes.get("gen_ai.prompt")) or prompt
            elif event.name == "gen_ai.content.completion":
                completion = as_text(event.attributes.get("gen_ai.completion")) or completion
        prompt = prompt or source.text("gen_ai.prompt")
        completion = completion or source.text("gen_ai.completion")
        if prompt is None and completion is None:
            return None
        view = View(self.name)
        if prompt is not None:
            view.messages = self._prompt(prompt, source.max_chars)
        if completion is not None:
            inner = unwrap(completion, source.max_chars) if looks_encoded(completion) else completion
            if isinstance(inner, dict | list):
                view.replies = messages(inner, source.max_chars) or replies_of(inner, source.max_chars)
            else:
                view.replies = (Message(ASSISTANT, (completion,)),)
        return view

    def _prompt(self, text: str, max_chars: int) -> tuple[Message, ...]:
        if looks_encoded(text):
            found = messages(text, max_chars)
            if found:
                return found
        return flat_prompt(text) or (Message(USER, (text,)),)
