"""What all tests share: services that may be missing are asked for in one place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.jars import NoKafka, jars

Program = Callable[[str], str]


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it where GROUNDWATCH_TEST_REQUIRE=all."""
    if os.environ.get("GROUNDWATCH_TEST_REQUIRE") == "all":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def program() -> Program:
    """Path of a program from the system's packages. Missing: the test is skipped with the reason, and counted in
    the closing summary; where GROUNDWATCH_TEST_REQUIRE=all (as in .ci/run) it fails instead."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            missing(
                f"program {name!r} is not installed "
                "(Debian: apt-get install chromium prometheus prometheus-alertmanager)"
            )
        return path

    return find


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One broker of a real Kafka for all tests; each takes topics and groups of its own. Missing: as `program`."""
    try:
        found = jars()
    except NoKafka as error:
        missing(str(error))
    with KafkaCluster(tmp_path_factory.mktemp("kafka"), found) as cluster:
        yield cluster
