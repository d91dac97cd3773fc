"""A groundwatch's web side alone, with cases to review: for tests in a browser, of the API, and for screenshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from collector.pipeline.clock import Clock, ManualClock
from collector.records.decision import Fate
from collector.records.diagnosis import Cause, Diagnosis
from collector.review.case import Case, CaseDecision, CaseResult, Feedback, Origin, OutcomeKind, Pick, Reason
from collector.review.memory import MemoryStore
from collector.review.options import Options as ReviewOptions
from collector.review.sqlite import SqliteStore
from collector.review.store import ReviewStore
from collector.telemetry.instruments import Telemetry
from collector.web.access import Token
from collector.web.app import Site, build
from collector.web.health import Health
from collector.web.options import Options
from collector.web.passwords import Lines
from collector.web.review.api import TakesFeedback
from collector.web.review.site import Review
from collector.web.status import Status, Worst
from scorers.interaction import Interaction, Passage, Turn
from scorers.outcome import Label, Usage, Verdict

NOON = 1_700_000_000.0

_CONTEXTS = (
    Passage(
        "The warranty covers manufacturing defects for two years from the date of purchase. It does not cover damage "
        "by water or by drops.",
        id="warranty-2",
        score=0.91,
        metadata={"file": "warranty.md", "page": 2},
    ),
    Passage(
        "Returns are free within 30 days if the box is unopened.", id="returns-1", score=0.74, metadata={"page": 1}
    ),
    Passage("Our shops are open from Monday to Saturday.", id="shops-1", score=0.31),
)
_RESPONSE = (
    "The warranty lasts two years from the day you bought the phone. Damage by water is covered too. "
    "You can return it within 30 days, and a repair takes five working days."
)
_VERDICTS = (
    Verdict("The warranty lasts two years from the date of purchase.", Label.SUPPORTED, "passage 1 says so", (1,)),
    Verdict("Damage by water is covered", Label.CONTRADICTED, "passage 1 says that it is not", (1,)),
    Verdict("The phone can be returned within 30 days.", Label.SUPPORTED, "if the box is unopened", (2,)),
    Verdict("A repair takes five working days.", Label.UNSUPPORTED, "no passage speaks of repairs", ()),
)


@contextmanager
def opened(path: Path) -> Iterator[SqliteStore]:
    """The real store in a file, at the time of the cases."""
    store = SqliteStore(path, ReviewOptions(), clock=ManualClock(), telemetry=Telemetry())
    store.open()
    try:
        yield store
    finally:
        store.close()


def scored(metric: str, value: float, kind: str = "judged", **more: object) -> CaseResult:
    usage = Usage(1, 812, 96, 0.000179) if kind == "judged" else None
    return CaseResult(metric, kind, OutcomeKind.SCORED, score=value, version="1", fingerprint=f"{metric}-{kind}-1",
                      usage=usage, **more)  # type: ignore[arg-type]  # fields of CaseResult  # fmt: skip


def warranty(
    number: int, *, order: float | None = None, reason: Reason = Reason.CONTROL, low: float = 0.5
) -> Case:
    """A case of the shop, with all that a page can show. `order`: its place in the order drawn."""
    relevance = {
        "passages": [
            {"rank": 1, "label": "relevant", "reason": "it is the warranty"},
            {"rank": 2, "label": "relevant", "reason": "it is about returns"},
            {"rank": 3, "label": "irrelevant", "reason": ""},
        ]
    }
    case_id = f"case-{number:016x}"
    pick = Pick(reason, NOON, 0.05 if order is not None else None, order, "")
    return Case(
        id=case_id,
        interaction=Interaction(
            id=case_id,
            question=f"Is water damage covered, and how long do I have to return phone number {number}?",
            contexts=_CONTEXTS,
            response=_RESPONSE,
            history=(Turn("user", "Hello"), Turn("assistant", "Hi, how can I help?")),
        ),
        picks=(pick,),
        ended_unix=NOON + number * 60,
        results=(
            scored("faithfulness", low, verdicts=_VERDICTS),
            scored("faithfulness", low + 0.1, verdicts=_VERDICTS, attempt=1),
            scored("passage_relevance", 2 / 3, evidence=relevance),
            scored("response_relevancy", 0.88, evidence={"questions": ["What does the warranty cover?"]}),
            scored("groundedness", 0.41, "local", tier="fast"),
            scored("passage_relevance", 0.55, "local", tier="fast", evidence={"passages": [0.8, 0.5, 0.1]}),
            scored("context_count", 0.3, "local", tier="fast", quality=False),
        ),
        decision=CaseDecision(Fate.QUEUED, 0.05, "base"),
        diagnosis=Diagnosis(Cause.UNSUPPORTED, Cause.UNDETERMINED),
        segments={"service": "shop", "tenant": "acme" if number % 2 else "bolt"},
        origin=Origin(
            service="shop",
            service_version=f"1.{number % 3}",
            prompt_version="support-v7",
            environment="production",
            model="gpt-4o-mini",
            convention="openinference",
            trace_ids=(f"{number:032x}",),
            span_id="b7ad6b7169203331",
            session="session_1a2b",
            user="user_9f",
        ),
        judge_model="judge-1",
        feedback=(Feedback(NOON + 5, 0.0, "that is wrong, mine was refused"),),
    )


def queue_of(number: int) -> list[Case]:
    """Cases of the control part, their order drawn being that of their numbers."""
    return [warranty(one, order=one / (number + 1)) for one in range(1, number + 1)]


def site(
    cases: Sequence[Case] = (),
    *,
    options: Options | None = None,
    store: ReviewStore | None = None,
    clock: Clock | None = None,
    token: Token = lambda: None,
    users: Lines | None = None,
    loopback: bool = True,
    feedback: TakesFeedback | None = None,
    status: Callable[[], Status] | None = None,
) -> tuple[Site, ReviewStore]:
    """The application and the store behind it."""
    clock = clock or ManualClock()
    store = store or MemoryStore(clock)
    for case in cases:
        store.put(case)
    store.flush()

    async def render(accept: str, encoding: str, scraper: str) -> tuple[bytes, dict[str, str]]:
        return b"x 1\n", {"content-type": "text/plain; version=0.0.4"}

    async def otlp(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("otlp")(scope, receive, send)

    worst = [
        Worst("".join(case.origin.trace_ids[:1]), case.id, "shop", "faithfulness", "judged", 0.1, NOON)
        for case in cases
    ]
    plain = Status(
        version="1", uptime_seconds=61, ready=True, reasons={}, judge="judge-1", funnel={"interactions found": 3},
        worst=[*worst[:3], Worst("ab" * 16, "kept-nowhere", "shop", "faithfulness", "judged", 0.2, NOON)],
    )  # fmt: skip
    app = build(
        options=options or Options(),
        health=Health(),
        status=status or (lambda: plain),
        explain=lambda trace_id: [],
        render_metrics=render,
        otlp=otlp,
        token=token,
        loopback=loopback,
        users=users,
        review=Review(store=store, clock=clock, feedback=feedback),
    )
    return app, store


def hostile(text: str, *, number: int = 1) -> Case:
    """A case with `text` in every field that a trace, a judge or a user fills."""
    made = warranty(number, order=0.1)
    verdict = Verdict(text, Label.CONTRADICTED, text, (1,))
    evil = scored(text, 0.1, detail=text, label=text, flags=(text,), evidence={text: [text], "passages": [
        {"rank": 1, "label": text, "reason": text}]}, verdicts=(verdict,))  # fmt: skip
    local = scored(text, 0.2, "local", tier=text, verdicts=(verdict,))
    return replace(
        made,
        interaction=Interaction(
            id=made.id,
            question=text,
            contexts=(Passage(text, id=text, score=0.5, metadata={text: text}),),
            response=f"{text} {text}",
            reference=text,
            history=(Turn(text, text),),
        ),
        picks=(replace(made.picks[0], detail=text),),
        results=(replace(evil, version=text, fingerprint=text), local,
                 CaseResult(text, "judged", OutcomeKind.FAILED, reason=text, detail=text, fingerprint="2")),
        decision=CaseDecision(Fate.QUEUED, 0.05, text),
        marks=(text,),
        segments={text: text},
        origin=Origin(
            service=text, service_version=text, prompt_version=text, environment=text, model=text, convention=text,
            trace_ids=(text,), span_id=text, response_id=text, session=text, user=text, tenant=text, error=text,
            attributes={text: text},
        ),
        judge_model=text,
        feedback=(Feedback(NOON, 0.5, text, text, text),),
    )  # fmt: skip
