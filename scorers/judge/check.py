"""Does this judge work at all? A question whose answer is known, and embeddings whose order is known."""

from __future__ import annotations

from dataclasses import dataclass

from scorers.errors import JudgeError
from scorers.interaction import Interaction
from scorers.judge.client import Endpoint
from scorers.judge.form import Call, interpret, render
from scorers.judge.material import Material
from scorers.judge.question import Prompt
from scorers.judge.reader import read_json
from scorers.judge.wire import Rung
from scorers.judged.arithmetic import cosine
from scorers.judged.base import refusal_question

_EVASIVE = Interaction("check", response="That is a good question, and one could look at it from many sides.")
_PAIRS = (
    "How many days of paid leave does an employee get?",
    "How much paid vacation do employees have?",
    "The volcano erupted twice in the last century.",
)
_LEAST_GAP = 0.02


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found. `problems` are sentences for a person, with the cure; empty when all is well.

    `rung` is how the endpoint takes the form of replies; `similar` and `unrelated` the cosines of the known pairs.
    """

    problems: tuple[str, ...]
    rung: Rung | None = None
    similar: float | None = None
    unrelated: float | None = None

    @property
    def ok(self) -> bool:
        return not self.problems


async def check(chat: Endpoint, embeddings: Endpoint | None, *, secret: bytes, deadline: float) -> CheckReport:
    """Ask once, embed once. Never raises a `JudgeError`."""
    problems: list[str] = []
    rung: Rung | None = None
    call = Call((refusal_question(Prompt.load("noncommittal")),), Material.of(_EVASIVE, secret=secret))
    form = render(call)
    try:
        reply, _ = await chat.chat(form, output_tokens=max(256, form.output_tokens), deadline=deadline)
    except JudgeError as error:
        problems.append(f"the judge {chat.address.model!r} gave no answer: {error}")
    else:
        rung = chat.dialect.rung
        read = interpret(call, form.names, read_json(reply.text, expected=form.names))
        if not any(answer.labels for answer in read.answers.values()):
            problems.append(
                f"the judge {chat.address.model!r} answered, but not in the form asked for; "
                "take a model that follows instructions, or an endpoint that enforces a JSON schema"
            )
    similar = unrelated = None
    if embeddings is not None:
        try:
            (first, second, other), _ = await embeddings.embed(_PAIRS, deadline=deadline)
        except JudgeError as error:
            problems.append(f"the embedding model {embeddings.address.model!r} gave no vectors: {error}")
        else:
            similar, unrelated = cosine(first, second), cosine(first, other)
            if similar is None or unrelated is None or similar - unrelated < _LEAST_GAP:
                problems.append(
                    f"the embedding model {embeddings.address.model!r} does not tell a paraphrase ({similar}) "
                    f"from an unrelated sentence ({unrelated}), so response_relevancy would mean nothing: "
                    "take another model"
                )
    return CheckReport(tuple(problems), rung, similar, unrelated)
