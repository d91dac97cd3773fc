"""Laminar: `lmnr.span.type`, inputs and outputs as JSON in `lmnr.span.input` and `lmnr.span.output`."""

from __future__ import annotations

from collector.extract.messages import messages
from collector.extract.readers import replies_of
from collector.extract.view import Role, Source, View

_ROLES = {
    "DEFAULT": Role.CHAIN,
    "PIPELINE": Role.CHAIN,
    "EXECUTOR": Role.CHAIN,
    "CACHED": Role.CHAIN,
    "LLM": Role.LLM,
    "TOOL": Role.TOOL,
    "EVALUATOR": Role.GUARD,
    "EVALUATION": Role.GUARD,
    "HUMAN_EVALUATOR": Role.GUARD,
}


class Laminar:
    """Spans of Laminar's decorators and of the libraries it instruments, whose content stands in `gen_ai.*`."""

    name = "laminar"
    content_switch = (
        "call @observe without ignore_input and ignore_output, and Laminar.initialize() without a mask"
    )
    hints = ("lmnr.span.",)

    def read(self, source: Source) -> View | None:
        kind = source.text("lmnr.span.type") if "lmnr" in source.roots else None
        if kind is None:
            return None
        role = _ROLES.get(kind.upper(), Role.CHAIN)
        view = View(
            self.name,
            role,
            source.payload("lmnr.span.input", quoted=True),
            source.payload("lmnr.span.output", quoted=True),
        )
        if role is Role.LLM:
            view.messages = messages(view.input.value, source.max_chars) if view.input is not None else None
            view.replies = replies_of(view.output.value, source.max_chars) if view.output is not None else None
        return view
