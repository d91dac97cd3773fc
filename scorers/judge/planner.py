"""Asks what the scorers want to know: unites, packs, asks, caches, and asks again for what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from scorers.errors import BudgetExhausted, JudgeError, PromptTooLong
from scorers.interaction import Field, Interaction
from scorers.judge.cache import VerdictCache
from scorers.judge.client import Endpoint, add_usage
from scorers.judge.form import CUT, Asked, Call, interpret, render
from scorers.judge.material import Material
from scorers.judge.observer import Observer
from scorers.judge.options import JudgeOptions
from scorers.judge.packing import pack
from scorers.judge.question import WHOLE, Answer, Embedding, Labelled, Labelling, Listing, Question
from scorers.judge.reader import read_json
from scorers.judge.tokens import estimate_tokens
from scorers.outcome import Failed, FailedReason, Usage

_T = TypeVar("_T", bound=Asked)
_MAX_ROUNDS = 6
"""Rounds of questions that depend on answers; our own scorers need at most three."""
_MAX_SPLITS = 4
_SMALLEST_WINDOW = 200
_NO_ROOM = "the texts beside the contexts are over the judge's window (judge.window_tokens)"
WINDOWED = "windowed"
"""The flag of an answer that was put together from windows of the contexts."""

Collect = Callable[[Mapping[str, Answer]], Iterable[tuple[str, Question]]]
"""Gives (owner, question) for all that is still wanted, given the answers so far; equal keys are equal questions."""


@dataclass(slots=True)
class Asking:
    """All that was learned about one interaction: answers by key, and what each owner's calls cost.

    A call that answers several owners is paid by the first of them, so that usages add up.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)


class Planner:
    """Asks one judge. Holds no state of an interaction; many interactions may be asked about at once."""

    def __init__(
        self,
        *,
        chat: Endpoint,
        embeddings: Endpoint | None,
        cache: VerdictCache,
        options: JudgeOptions,
        observer: Observer,
        secret: bytes,
    ) -> None:
        self._chat = chat
        self._embeddings = embeddings
        self._cache = cache
        self._options = options
        self._observer = observer
        self._secret = secret

    async def ask(
        self,
        interaction: Interaction,
        collect: Collect,
        *,
        deadline: float,
        known: Mapping[str, Answer] | None = None,
        use_cache: bool = True,
    ) -> Asking:
        """Ask until `collect` wants nothing more, starting from what is `known`.

        Failures become answers with a `failure`; never raises them.
        """
        session = _Session(self, Material.of(interaction, secret=self._secret), deadline, use_cache=use_cache)
        session.asking.answers.update(known or {})
        for _ in range(_MAX_ROUNDS):
            wanted = _unite(collect(session.asking.answers), session.asking.answers)
            if not wanted:
                break
            await session.round(wanted)
        return session.asking


def _unite(
    wanted: Iterable[tuple[str, Question]], answers: Mapping[str, Answer]
) -> dict[str, tuple[str, Question]]:
    united: dict[str, tuple[str, Question]] = {}
    for owner, question in wanted:
        if question.key not in answers:
            united.setdefault(question.key, (owner, question))
    return united


class _Session:
    """One interaction being asked about."""

    def __init__(self, planner: Planner, material: Material, deadline: float, *, use_cache: bool) -> None:
        self.asking = Asking()
        self._planner = planner
        self._chat = planner._chat
        self._options = planner._options
        self._observer = planner._observer
        self._cache = planner._cache if use_cache and planner._options.cache_entries else None
        self._material = material
        self._deadline = deadline
        self._memo: dict[tuple[str, str], Labelled] = {}
        self._contents: dict[object, str] = {}
        self._by_rank = dict(material.passages)
        self._calls_left = planner._options.max_calls
        self._most_output = min(planner._options.max_output_tokens, planner._chat.window_tokens // 2)

    async def round(self, wanted: Mapping[str, tuple[str, Question]]) -> None:
        owners = {key: owner for key, (owner, _) in wanted.items()}
        questions = [question for _, question in wanted.values()]
        gathered: dict[str, Answer] = {}
        open_questions: list[Asked] = []
        embeddings: list[Embedding] = []
        for question in questions:
            if isinstance(question, Embedding):
                embeddings.append(question)
                continue
            if isinstance(question, Listing):
                open_questions.append(question)
                continue
            labels = self._look_up(question)
            if labels:
                gathered[question.key] = Answer(labels=labels)
            if rest := _without(question, labels):
                open_questions.append(rest)
        calls = pack(
            open_questions,
            self._material,
            fused=self._options.plan == "fused",
            max_output_tokens=self._most_output,
        )
        for call in calls[max(0, self._calls_left) :]:
            gathered.update(_failed(call, self._too_many()))
        calls = calls[: max(0, self._calls_left)]
        asked = [self._paid(call, owners[call.questions[0].key]) for call in calls]
        asked += [self._embed(question, owners[question.key]) for question in embeddings]
        for answers in await _all(asked):
            for key, answer in answers.items():
                gathered[key] = _merged(gathered.get(key), answer)
        for question in questions:
            self.asking.answers[question.key] = self._settled(question, gathered.get(question.key))

    def _settled(self, question: Question, answer: Answer | None) -> Answer:
        """The final answer: whole, or with the failure that says why it is not."""
        answer = answer or Answer()
        if isinstance(question, Labelling):
            missing = [item_id for item_id in question.ids if item_id not in answer.labels]
            if missing and answer.failure is None:
                detail = f"{len(missing)} of {len(question.ids)} labels of {question.prompt.name} are missing"
                answer = replace(answer, failure=Failed(FailedReason.BAD_REPLY, detail))
            if not missing and answer.failure is not None:
                answer = replace(answer, failure=None)
            self._remember(question, answer)
        return answer

    # --- labels that are known already ------------------------------------------------------------------

    def _cache_key(self, question: Labelling, item_id: str, text: str) -> bytes:
        needs = question.needs - {Field.CONTEXTS} if question.by_passage else question.needs
        what = (needs, question.passages)
        if what not in self._contents:
            content = self._material.content(needs, question.passages)
            self._contents[what] = self._planner._cache.key(content).hex()
        if question.by_passage:  # such a verdict holds for the passage whatever else was retrieved, at any rank
            text = self._by_rank.get(int(item_id), "")
        return self._planner._cache.key(
            question.prompt.digest, self._chat.address.model, "|".join(question.labels), text, self._contents[what]
        )

    def _look_up(self, question: Labelling) -> dict[str, Labelled]:
        labels: dict[str, Labelled] = {}
        for item_id, text in _texts(question):
            labelled = self._memo.get((question.key, text))
            if labelled is None and self._cache is not None:
                labelled = self._cache.get(self._cache_key(question, item_id, text))
                self._observer.cache(hit=labelled is not None)
            if labelled is not None:
                labels[item_id] = labelled
        return labels

    def _remember(self, question: Labelling, answer: Answer) -> None:
        if self._cache is None:
            return
        for item_id, text in _texts(question):
            labelled = answer.labels.get(item_id)
            if labelled is not None and "cached" not in labelled.flags:
                self._cache.put(self._cache_key(question, item_id, text), labelled)

    # --- asking ----------------------------------------------------------------------------------------

    def _pay(self, owner: str, usage: Usage | None) -> None:
        if usage is not None and usage.calls:
            before = self.asking.usage.get(owner)
            self.asking.usage[owner] = usage if before is None else add_usage(before, usage)

    async def _embed(self, question: Embedding, owner: str) -> dict[str, Answer]:
        endpoint = self._planner._embeddings
        if endpoint is None:
            failure = Failed(FailedReason.JUDGE_UNREACHABLE, "no embeddings endpoint is configured")
            return {question.key: Answer(failure=failure)}
        vectors: list[tuple[float, ...]] = []
        size = self._options.embeddings.batch_size if self._options.embeddings is not None else len(question.texts)
        for start in range(0, len(question.texts), size):
            try:
                batch, usage = await endpoint.embed(question.texts[start : start + size], deadline=self._deadline)
            except JudgeError as error:
                self._pay(owner, error.spent)
                return {question.key: Answer(failure=Failed(error.reason, str(error)))}
            self._pay(owner, usage)
            vectors += batch
        return {question.key: Answer(vectors=tuple(vectors))}

    def _too_many(self) -> BudgetExhausted:
        most = self._options.max_calls
        return BudgetExhausted(f"this interaction takes more than {most} judge calls (judge.max_calls)")

    async def _paid(self, call: Call, owner: str) -> dict[str, Answer]:
        return await self._answer(call, _Tries(owner, self._options.reasks, _MAX_SPLITS))

    async def _answer(self, call: Call, tries: _Tries) -> dict[str, Answer]:
        """Answers to one call's questions, re-asked and cut in windows as needed."""
        form = render(call)
        most = self._most_output
        output_tokens = most if tries.roomy else min(form.output_tokens, most)
        prompt_tokens = estimate_tokens(form.system) + estimate_tokens(form.user)
        if prompt_tokens + output_tokens > self._chat.window_tokens and tries.splits:
            return await self._split(call, prompt_tokens, output_tokens, tries)
        if self._calls_left <= 0:
            return _failed(call, self._too_many())
        self._calls_left -= 1
        try:
            reply, usage = await self._chat.chat(form, output_tokens=output_tokens, deadline=self._deadline)
        except PromptTooLong as error:
            self._pay(tries.owner, error.spent)
            if not tries.splits:
                return _failed(call, error)
            self._chat.window_tokens = max(1024, min(self._chat.window_tokens, prompt_tokens) * 3 // 4)
            return await self._split(call, prompt_tokens, output_tokens, tries)
        except JudgeError as error:
            self._pay(tries.owner, error.spent)
            return _failed(call, error)
        self._pay(tries.owner, usage)
        read = interpret(call, form.names, read_json(reply.text, expected=form.names))
        for key, labels in read.inline.items():
            self._memo.update({(key, text): labelled for text, labelled in labels.items()})
        answers = dict(read.answers)
        await self._ask_again(call, answers, tries, truncated=reply.truncated)
        for question in call.questions:
            answer = answers.get(question.key)
            if isinstance(question, Listing) and (answer is None or CUT in answer.flags):
                detail = f"no whole list of {question.prompt.name} in the reply"
                answers.setdefault(question.key, Answer())
                if answers[question.key].failure is None:
                    answers[question.key] = Answer(failure=Failed(FailedReason.BAD_REPLY, detail))
        return answers

    async def _ask_again(self, call: Call, answers: dict[str, Answer], tries: _Tries, *, truncated: bool) -> None:
        """Fill `answers` with what a reply left out, each question alone; smaller where the reply was cut."""
        again: list[Call] = []
        for question in call.questions:
            answer = answers.get(question.key)
            if isinstance(question, Listing):
                if answer is not None and CUT not in answer.flags:
                    continue
                answers.pop(question.key, None)  # the end of the list is not known: its beginning is no answer
                again += self._listing_again(question, call.material, tries, truncated=truncated)
            elif rest := _without(question, answer.labels if answer is not None else {}):
                pieces = _halves(rest) if truncated else [rest]
                again += [Call((piece,), call.material) for piece in pieces]
        if not again or not tries.reasks:
            return
        self._observer.reask(len(again))
        fewer = replace(tries, reasks=tries.reasks - 1, roomy=tries.roomy or truncated)
        by_key: dict[str, list[Answer]] = {}
        for part in await _all(self._answer(piece, fewer) for piece in again):
            for key, answer in part.items():
                by_key.setdefault(key, []).append(answer)
        for question in call.questions:
            if parts := by_key.get(question.key):
                joined = _joined(parts) if isinstance(question, Listing) else _merged(None, *parts)
                answers[question.key] = _merged(answers.get(question.key), joined)

    def _listing_again(
        self, question: Listing, material: Material, tries: _Tries, *, truncated: bool
    ) -> list[Call]:
        """The same listing with more room, or, where there is no more, over the two halves of its text."""
        if truncated and tries.roomy and question.windowed is not None:
            half = estimate_tokens(material.texts.get(question.windowed, "")) * 6 // 10 + 8
            return [Call((question,), window) for window in material.windows(question.windowed, half)]
        return [Call((question,), material)]

    async def _split(self, call: Call, prompt_tokens: int, output_tokens: int, tries: _Tries) -> dict[str, Answer]:
        """A call that is over the judge's window: one question at a time, then one window at a time."""
        tries = replace(tries, splits=tries.splits - 1)
        if len(call.questions) > 1 or call.fused:
            alone = [Call((question,), call.material) for question in call.questions]
            parts = await _all(self._answer(single, tries) for single in alone)
            return {key: answer for part in parts for key, answer in part.items()}
        (question,) = call.questions
        cut: Field | None = Field.CONTEXTS if isinstance(question, Labelling) else question.windowed
        if cut is None or cut not in question.needs:
            return _failed(call, PromptTooLong(_NO_ROOM))
        material = call.material
        if isinstance(question, Labelling) and question.passages is not None:
            material = replace(material, passages=tuple(p for p in material.passages if p[0] in question.passages))
        rest = prompt_tokens - estimate_tokens(material.render({cut}))
        room = self._chat.window_tokens - output_tokens - max(0, rest)
        if room < _SMALLEST_WINDOW:
            return _failed(call, PromptTooLong(_NO_ROOM))
        windows = [replace(call, questions=(_in(question, w),), material=w) for w in material.windows(cut, room)]
        if len(windows) > self._calls_left:
            return _failed(call, self._too_many())
        answered = await _all(self._answer(window, tries) for window in windows)
        by_window = [part.get(question.key, _NOTHING) for part in answered]
        if isinstance(question, Listing):
            return {question.key: _joined(by_window)}
        asked = [_in(question, window.material).ids for window in windows]
        return {question.key: _combined(question, by_window, asked)}


@dataclass(frozen=True, slots=True)
class _Tries:
    """Who pays, and what may still be tried. `roomy`: replies get the largest output size."""

    owner: str
    reasks: int
    splits: int
    roomy: bool = False


_NOTHING = Answer()


async def _all(asked: Iterable[Coroutine[object, object, dict[str, Answer]]]) -> list[dict[str, Answer]]:
    """All answers, asked at once and in this order: the first one here, so that one alone takes no task."""
    coroutines = list(asked)
    if len(coroutines) < 2:
        return [await one for one in coroutines]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in coroutines[1:]]
        first = await coroutines[0]
    return [first, *(task.result() for task in tasks)]


def _texts(question: Labelling) -> list[tuple[str, str]]:
    return [(item.id, item.text) for item in question.items] or [(WHOLE, "")]


def _without(question: Labelling, labels: Mapping[str, Labelled]) -> Labelling | None:
    """The question about what `labels` do not answer, with no other passages than that is about; None when they
    answer all."""
    if not question.items:
        return None if WHOLE in labels else question
    items = tuple(item for item in question.items if item.id not in labels)
    if len(items) == len(question.items):
        return question
    if not items:
        return None
    passages = tuple(int(item.id) for item in items) if question.by_passage else question.passages
    return replace(question, items=items, passages=passages)


def _in(question: _T, window: Material) -> _T:
    """The question as it is asked of one window: about passages, only of those that are in it."""
    if not isinstance(question, Labelling) or not question.by_passage:
        return question
    ranks = {str(rank) for rank, _ in window.passages}
    return replace(question, items=tuple(item for item in question.items if item.id in ranks))


def _halves(question: Labelling) -> list[Labelling]:
    middle = (len(question.items) + 1) // 2
    if middle in (0, len(question.items)):
        return [question]
    return [replace(question, items=question.items[:middle]), replace(question, items=question.items[middle:])]


def _failed(call: Call, error: JudgeError) -> dict[str, Answer]:
    return {question.key: Answer(failure=Failed(error.reason, str(error))) for question in call.questions}


def _merged(first: Answer | None, *others: Answer) -> Answer:
    """Parts of one answer put together: labels united, the failure of what is still missing kept."""
    if len(others) == 1 and (first is None or first == _NOTHING):
        return others[0]
    whole = first or _NOTHING
    for other in others:
        whole = Answer(
            entries=other.entries or whole.entries,
            labels={**whole.labels, **other.labels},
            vectors=other.vectors or whole.vectors,
            failure=other.failure or whole.failure,
            flags=tuple(dict.fromkeys((*whole.flags, *other.flags))),
        )
    return whole


def _joined(parts: Sequence[Answer]) -> Answer:
    """One list over the parts of a text; none where a part has none, since it might have held the most."""
    failure = next((part.failure for part in parts if part.failure is not None), None)
    entries = {text.casefold(): text for part in parts for text in part.entries}
    flags = dict.fromkeys(flag for part in parts for flag in part.flags) | ({WINDOWED: None} if parts[1:] else {})
    return Answer(entries=() if failure else tuple(entries.values()), failure=failure, flags=tuple(flags))


def _combined(question: Labelling, parts: Sequence[Answer], asked: Sequence[Collection[str]]) -> Answer:
    """Of labels, the first in precedence that any window gave; `asked` are the ids that each was asked about.

    A window without a label leaves that label missing, since it might have been the decisive one; but a label
    of the highest precedence stands whatever the others say.
    """
    failure = next((part.failure for part in parts if part.failure is not None), None)
    labels: dict[str, Labelled] = {}
    for item_id in question.ids:
        told = [part.labels.get(item_id) for part, ids in zip(parts, asked, strict=True) if item_id in ids]
        given = [labelled for labelled in told if labelled is not None]
        best = min(given, key=lambda labelled: question.labels.index(labelled.label), default=None)
        whole = len(given) == len(told)
        if best is not None and (whole or best.label == question.labels[0]):
            cited = tuple(sorted({rank for one in given if one.label == best.label for rank in one.passages}))
            flags = (*best.flags, WINDOWED) if len(told) > 1 else best.flags
            labels[item_id] = replace(best, passages=cited, flags=flags)
    return Answer(labels=labels, failure=failure)
