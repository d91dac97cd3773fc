"""Who scrapes regularly is waited for once more; nobody else is."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from collector.exporters.prometheus import PrometheusExporter
from collector.exporters.scrapers import Scrapers
from collector.pipeline.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def scrape(scrapers: Scrapers, name: str) -> None:
    scrapers.ended(name, scrapers.begins(name))


def regular(scrapers: Scrapers, clock: ManualClock, *names: str, interval: float = 15.0) -> None:
    for _ in range(2):
        clock.advance(interval)
        for name in names:
            scrape(scrapers, name)


async def waiting(scrapers: Scrapers) -> asyncio.Task[bool]:
    task = asyncio.create_task(scrapers.once_more(60))
    await asyncio.sleep(0)
    return task


async def test_nobody_is_waited_for_where_nobody_comes_regularly(clock: ManualClock) -> None:
    scrapers = Scrapers(clock)
    assert await scrapers.once_more(60)
    scrape(scrapers, "once")
    regular(scrapers, clock, "")  # a person, or a script
    assert await scrapers.once_more(60)


async def test_each_that_comes_regularly_is_waited_for(clock: ManualClock) -> None:
    scrapers = Scrapers(clock)
    regular(scrapers, clock, "a", "b")
    task = await waiting(scrapers)
    scrape(scrapers, "c")
    scrape(scrapers, "a")
    await asyncio.sleep(0)
    assert not task.done()
    scrape(scrapers, "b")
    assert await task


async def test_a_scrape_that_had_begun_before_does_not_count(clock: ManualClock) -> None:
    scrapers = Scrapers(clock)
    regular(scrapers, clock, "a")
    clock.advance(15)
    began = scrapers.begins("a")
    clock.advance(0.1)
    task = await waiting(scrapers)
    scrapers.ended("a", began)
    await asyncio.sleep(0)
    assert not task.done()
    scrape(scrapers, "a")
    assert await task


async def test_one_that_has_not_come_for_long_is_gone(clock: ManualClock) -> None:
    scrapers = Scrapers(clock)
    regular(scrapers, clock, "a")
    clock.advance(50)
    assert await scrapers.once_more(60)


async def test_the_wait_ends_with_the_time_that_is_left_and_when_it_should_have_come(clock: ManualClock) -> None:
    scrapers = Scrapers(clock)
    regular(scrapers, clock, "a")
    assert not await scrapers.once_more(0)
    late = Scrapers(clock)
    regular(late, clock, "a", interval=0.02)
    clock.advance(0.01)
    assert not await late.once_more(60)


async def test_no_more_than_a_few_are_remembered(clock: ManualClock) -> None:
    scrapers = Scrapers(clock)
    names = [str(number) for number in range(100)]
    regular(scrapers, clock, *names)
    regular(scrapers, clock, *names[-3:])
    task = await waiting(scrapers)
    for name in names[-3:]:
        scrape(scrapers, name)
    assert await task


async def test_a_scrape_is_one_of_the_exporter(clock: ManualClock) -> None:
    scrapers = Scrapers(clock)
    exporter = PrometheusExporter(CollectorRegistry(), scrapers=scrapers)
    regular(scrapers, clock, "10.0.0.1")
    task = await waiting(scrapers)
    await exporter.render("")
    assert not task.done()
    await exporter.render("", "", "10.0.0.1")
    assert await task
