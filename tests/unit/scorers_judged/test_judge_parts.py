"""Keys, proxies, options, catalog, run_local and the contract suite."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from scorers import catalog
from scorers.config import (
    CustomOptions,
    FactualCorrectnessOptions,
    PlainOptions,
    ResponseRelevancyOptions,
    ScorerOptions,
)
from scorers.errors import BadScorerOptions, JudgeAuth, UnknownScorer
from scorers.interaction import Damage, Field, Interaction
from scorers.judge.cache import VerdictCache
from scorers.judge.keys import key_provider
from scorers.judge.limits import Concurrency
from scorers.judge.options import JudgeOptions, KeyOptions
from scorers.judge.prices import Price, cost_usd
from scorers.judge.question import Labelled
from scorers.judge.tokens import estimate_tokens
from scorers.judge.transport import make_transport, proxy_from
from scorers.judge.wire import embeddings_body, error_of
from scorers.judged.rubric import RubricOptions
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Result, Score
from scorers.run import fingerprint, run_local
from scorers.scorer import Direction, Kind, ScorerInfo, Tier
from scorers.testing import check_judged, check_local, interaction


class Now:
    """A clock that is told the time."""

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self) -> float:
        return self.value


# --- keys ----------------------------------------------------------------------------------------------------
async def test_a_file_is_read_again_when_it_is_old_or_its_key_was_rejected(tmp_path: Path) -> None:
    path, now = tmp_path / "key", Now()
    path.write_text("one\n")
    keys = key_provider(KeyOptions(file=path, refresh_seconds=10), environ={}, monotonic=now)
    assert await keys.key() == "one"
    path.write_text("two")
    assert await keys.key() == "one"
    assert await keys.key(rejected="zero") == "one", "another call has brought a newer key already"
    assert await keys.key(rejected="one") == "two"
    path.write_text("three")
    now.value = 11
    assert await keys.key() == "three"


async def test_a_key_that_can_not_be_read_says_where_it_was_sought(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    for options, words in (
        (KeyOptions(file=tmp_path / "none"), "can not be read"),
        (KeyOptions(file=empty), "is empty"),
        (KeyOptions(command=("false",)), "ended with code 1"),
        (KeyOptions(command=("printf", "a\\nb")), "can not stand in a header"),
        (KeyOptions(command=(str(tmp_path / "none"),)), "can not be started"),
    ):
        with pytest.raises(JudgeAuth, match=words):
            await key_provider(options, environ={}, monotonic=Now()).key()


async def test_a_command_runs_once_for_many_waiting_calls(tmp_path: Path) -> None:
    script, log = tmp_path / "token", tmp_path / "log"
    script.write_text(f"#!/bin/sh\necho x >> {log}\necho key\n")
    script.chmod(0o700)
    keys = key_provider(KeyOptions(command=(str(script),)), environ={}, monotonic=Now())
    assert await asyncio.gather(*(keys.key() for _ in range(5))) == ["key"] * 5
    assert log.read_text() == "x\n"


async def test_an_environment_variable_must_be_there() -> None:
    keys = key_provider(KeyOptions(env="K"), environ={"K": " k "}, monotonic=Now())
    assert await keys.key() == "k"
    with pytest.raises(BadScorerOptions, match="'K'"):
        key_provider(KeyOptions(env="K"), environ={}, monotonic=Now())


# --- options -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "api.openai.com"},
        {"base_url": "https://user:secret@host/v1"},
        {"base_url": "https://host/v1?key=secret"},
        {"model": ""},
        {"plan": "cheap"},
        {"api_key": {"file": "/a", "env": "B"}},
        {"api_key": "sk-literal"},
        {"unknown": 1},
        {"headers": {"x-a": "b\nc: d"}},
        {"budget": {"day": {"usd": -1}}},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        JudgeOptions.model_validate({"base_url": "https://host/v1", "model": "m", **wrong})


def test_every_option_is_described() -> None:
    for model in (JudgeOptions, KeyOptions, RubricOptions, Price):
        for name, field in model.model_fields.items():
            assert field.description or name == "type", f"{model.__name__}.{name}"


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.example/v1", "http://p:1"),
        ({"https_proxy": "http://p:1"}, "http://api.example/v1", None),
        ({"ALL_PROXY": "http://p:2"}, "http://api.example/v1", "http://p:2"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "localhost,.example"}, "http://api.example/v1", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "ample"}, "http://api.example/v1", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, "http://api.example/v1", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "127.0.0.1:8080"}, "http://127.0.0.1:8080/v1", None),
        ({}, "http://api.example/v1", None),
    ],
)
def test_proxies_of_an_environment(environ: dict[str, str], url: str, proxy: str | None) -> None:
    assert proxy_from(environ, url) == proxy


# --- prices, tokens, cache, errors ---------------------------------------------------------------------------
def test_costs() -> None:
    prices = {"m": Price(input_usd_per_million=2, output_usd_per_million=8, cached_input_usd_per_million=1)}
    assert cost_usd(prices, "m", input_tokens=1_000_000, output_tokens=500_000, cached_tokens=500_000) == 5.5
    assert cost_usd(prices, "other", input_tokens=1, output_tokens=1) is None
    assert cost_usd(prices, "m", input_tokens=10, output_tokens=0, cached_tokens=99) == pytest.approx(1e-5)


def test_tokens_of_scripts_err_to_the_high_side() -> None:
    assert estimate_tokens("four letters") == 4
    assert 8 <= estimate_tokens("숙박비 한도는 얼마") <= 12
    assert estimate_tokens("лимит") == 4
    assert estimate_tokens("\ud800") >= 1


def test_half_of_a_surrogate_pair_is_sent_as_a_question_mark_and_all_else_as_it_is() -> None:
    texts = ['숙박비 \u2028 "</s>" \x7f', "half \ud800 of a pair"]
    sent = json.loads(embeddings_body(model="m", texts=texts))
    assert sent == {"model": "m", "input": [texts[0], "half ? of a pair"], "encoding_format": "float"}
    assert json.loads(embeddings_body(model="m", texts=texts[:1]))["input"] == texts[:1]


def test_the_cache_forgets_by_age_and_by_size_and_knows_borders() -> None:
    now = Now()
    cache = VerdictCache(secret=b"s", max_entries=2, ttl_seconds=10, monotonic=now)
    assert cache.key("ab", "c") != cache.key("a", "bc")
    keys = [cache.key(str(number)) for number in range(3)]
    for key in keys:
        cache.put(key, Labelled("yes", "a reason that is not kept", (1,)))
    assert cache.get(keys[0]) is None
    assert cache.get(keys[2]) == Labelled("yes", "", (1,), ("cached",))
    now.value = 10
    assert cache.get(keys[2]) is None
    assert len(cache) == 1
    nothing = VerdictCache(secret=b"s", max_entries=0, ttl_seconds=10, monotonic=now)
    nothing.put(keys[0], Labelled("yes"))
    assert len(nothing) == 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 30.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e99"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    error = error_of(429, headers, b"", unix_seconds=0.0)
    assert getattr(error, "retry_after_seconds", "missing") == seconds


def test_errors_never_quote_the_body() -> None:
    for status in (400, 401, 404, 429, 500, 302):
        assert "secret" not in str(error_of(status, {}, b'{"error": "secret text of a trace"}', unix_seconds=0.0))


# --- catalog -------------------------------------------------------------------------------------------------
def test_names_of_metrics_stand_for_their_scorers() -> None:
    made = catalog.judged(["noise_sensitivity_relevant", "noise_sensitivity_irrelevant", "context_precision"])
    assert [scorer.info.name for scorer in made] == ["noise_sensitivity", "passage_relevance"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownScorer, match=r"'faithfullness'.*faithfulness"):
        catalog.judged(["faithfullness"])
    with pytest.raises(UnknownScorer, match="needs its text"):
        catalog.judged(["rubric"])
    with pytest.raises(UnknownScorer, match="'nobody'"):
        catalog.make_judged(CustomOptions(name="nobody"))


def test_response_relevancy_is_left_out_without_embeddings_and_said_so() -> None:
    scorers = catalog.judged(catalog.DEFAULT_JUDGED)
    kept, left_out = catalog.runnable(scorers, embeddings=False)
    assert left_out == ["response_relevancy"]
    assert len(kept) == len(scorers) - 1
    assert catalog.runnable(scorers, embeddings=True) == (scorers, [])


def test_metrics_of_all_scorers_are_told_apart() -> None:
    metrics = [metric for scorer in catalog.judged(catalog.judged_names()) for metric in scorer.info.gives]
    assert len(set(metrics)) == len(metrics)


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[None]:
    """A package that offers scorers, as a user would install it."""
    (tmp_path / "their_scorers.py").write_text(
        "from scorers.judged.noncommittal import Noncommittal\n"
        "class Own(Noncommittal):\n"
        "    def __init__(self, *, level: int = 1) -> None:\n"
        "        super().__init__()\n"
        "        if level > 3:\n"
        "            raise ValueError(f'level is {level}, at most 3')\n"
        "def no_scorer() -> str:\n"
        "    return 'text'\n"
    )
    about = tmp_path / "their_scorers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-scorers\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[groundwatch.scorers]\nown = their_scorers:Own\nodd = their_scorers:no_scorer\n"
        "gone = their_scorers:gone\nbroken = their_missing_module:x\n"
    )
    sys.path.insert(0, str(tmp_path))
    yield
    sys.path.remove(str(tmp_path))
    sys.modules.pop("their_scorers", None)


@pytest.mark.usefixtures("installed")
def test_a_users_scorer_is_found_by_its_name_and_what_is_wrong_with_it_is_said() -> None:
    assert "own" in catalog.judged_names()
    for named in ("own", CustomOptions(name="own", options={"level": 2})):
        (made,) = catalog.judged([named])
        check_judged(made)
    for name, options, words in (
        ("own", {"level": 9}, "does not take these options: level is 9, at most 3"),
        ("own", {"depth": 1}, "does not take these options: .*depth"),
        ("odd", {}, "is no judged scorer: it lacks"),
        ("gone", {}, "can not be loaded: .*gone.*; reinstall its package"),
        ("broken", {}, "can not be loaded: .*their_missing_module"),
    ):
        with pytest.raises(BadScorerOptions, match=words):
            catalog.judged([CustomOptions(name=name, options=options)])


@pytest.mark.parametrize("name", catalog.judged_names())
def test_the_contract_holds_for_our_own(name: str) -> None:
    check_judged(*catalog.judged([name]))


def test_prompts_have_versions() -> None:
    (one,) = catalog.judged([PlainOptions(type="faithfulness")])
    assert all(prompt.version and prompt.text for prompt in one.prompts)
    assert len({prompt.digest for prompt in one.prompts}) == len(one.prompts)


RUBRIC = {"name": "tone", "needs": ["response"], "text": "Is the response polite?"}


@pytest.mark.parametrize(
    "changed",
    [
        FactualCorrectnessOptions(mode="precision"),
        FactualCorrectnessOptions(beta=2.0),
        FactualCorrectnessOptions(atomicity="high"),
        ResponseRelevancyOptions(noncommittal="zero"),
        ResponseRelevancyOptions(strictness=2),
        RubricOptions.model_validate({**RUBRIC, "text": "Is the response kind?"}),
        RubricOptions.model_validate({**RUBRIC, "answer": {"kind": "labels", "values": {"yes": 0.5, "no": 0.0}}}),
        RubricOptions.model_validate({**RUBRIC, "direction": "lower"}),
        RubricOptions.model_validate({**RUBRIC, "on_refusal": "unscored"}),
    ],
)
def test_whatever_changes_the_number_is_another_instrument(changed: ScorerOptions) -> None:
    plain = RubricOptions.model_validate(RUBRIC) if isinstance(changed, RubricOptions) else type(changed)()
    found = [
        fingerprint(*catalog.judged([options]), model="m", plan="standard") for options in (plain, plain, changed)
    ]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_two_scorers_of_one_metric_are_refused_and_one_named_twice_is_one() -> None:
    strict = ResponseRelevancyOptions(strictness=5)
    (kept,) = catalog.judged([strict, "response_relevancy", strict])
    assert "5" in kept.prompts[0].text
    for first, second in (
        (strict, ResponseRelevancyOptions()),
        ("faithfulness", RubricOptions.model_validate({**RUBRIC, "name": "faithfulness"})),
        ("passage_relevance", RubricOptions.model_validate({**RUBRIC, "name": "precision_at_k"})),
    ):
        with pytest.raises(BadScorerOptions, match="two judged scorers give the metric"):
            catalog.judged([first, second])


def test_the_readme_names_every_option_scorer_and_metric() -> None:
    readme = (Path(__file__).parents[3] / "scorers" / "README.md").read_text(encoding="utf-8")
    names = [name for model in (JudgeOptions, KeyOptions, Price) for name in model.model_fields]
    names += catalog.judged_names()
    names += [metric for scorer in catalog.judged(catalog.judged_names()) for metric in scorer.info.gives]
    assert [name for name in names if f"`{name}`" not in readme] == []


# --- local scorers -------------------------------------------------------------------------------------------
class Length:
    """Scores by length; breaks on the word `break`."""

    info = ScorerInfo(
        "length", "1", Kind.LOCAL, frozenset({Field.RESPONSE}), Direction.HIGHER_IS_BETTER, "letters", Tier.FAST
    )

    def score(self, batch: Sequence[Interaction]) -> list[list[Result]]:
        if any("break" in (one.response or "") for one in batch):
            raise RuntimeError("a bug")
        return [
            [Result(one.id, "length", Kind.LOCAL, Score(min(1.0, len(one.response or "") / 100)), "1", "length/1")]
            for one in batch
        ]


def test_run_local_isolates_the_one_that_breaks_and_checks_needs() -> None:
    batch = [
        interaction(response="x" * 50),
        interaction(response="break"),
        interaction(response=None),
        Interaction("cut", response="x", damage={Field.RESPONSE: Damage.TRUNCATED}),
    ]
    outcomes = [results[0].outcome for results in run_local([Length()], batch)]
    assert outcomes[0] == Score(0.5)
    assert isinstance(outcomes[1], Failed)
    assert outcomes[1].reason is FailedReason.SCORER_ERROR
    assert outcomes[2] == NotApplicable(NotApplicableReason.NO_RESPONSE)
    assert isinstance(outcomes[3], Failed)
    assert outcomes[3].reason is FailedReason.INCOMPLETE


class Lying(Length):
    def score(self, batch: Sequence[Interaction]) -> list[list[Result]]:
        return super().score(batch)[:-1]


def test_run_local_notices_a_list_of_the_wrong_length() -> None:
    for results in run_local([Lying()], [interaction(), interaction()]):
        assert isinstance(results[0].outcome, Failed)


def test_the_local_contract_finds_the_liar() -> None:
    check_local(Length())
    with pytest.raises(AssertionError, match="one list for each"):
        check_local(Lying())


# --- limits --------------------------------------------------------------------------------------------------
async def test_a_place_that_was_handed_over_to_one_that_is_cancelled_goes_to_the_next() -> None:
    limits = Concurrency(start=1, maximum=1, on_change=lambda _: None)
    ticket = await limits.acquire()
    first, second = (asyncio.create_task(limits.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    limits.release(ticket, overloaded=False, worked=True)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    assert limits.in_flight == 1


async def test_a_place_that_is_freed_between_a_cancellation_and_its_hearing_is_not_lost() -> None:
    limits = Concurrency(start=1, maximum=1, on_change=lambda _: None)
    ticket = await limits.acquire()
    waiting = asyncio.create_task(limits.acquire())
    await asyncio.sleep(0)
    waiting.cancel()
    limits.release(ticket, overloaded=False, worked=True)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert limits.in_flight == 0
    await limits.acquire()


@pytest.mark.parametrize("proxy", ["socks5://user:secret@host:1", "ftp://host", "http://", "http://[::1"])
def test_a_proxy_that_can_not_be_used_is_named_without_its_password(proxy: str) -> None:
    with pytest.raises(BadScorerOptions, match=r"judge\.proxy") as raised:
        make_transport(url="http://judge/v1", ca_file=None, proxy=proxy, max_connections=1)
    assert "secret" not in str(raised.value)


async def test_a_proxy_may_be_named_without_its_scheme() -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        named = proxy_from({"HTTP_PROXY": f"{host}:{port}"}, "http://judge.example/v1")
        transport = make_transport(url="http://judge.example/v1", ca_file=None, proxy=named, max_connections=1)
        async with transport:
            response = await transport.handle_async_request(httpx.Request("GET", "http://judge.example/v1"))
            await response.aread()
            await response.aclose()
    assert asked == [b"GET http://judge.example/v1 HTTP/1.1\r\n"]
