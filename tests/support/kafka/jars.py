"""The jars of a broker, fetched once into a cache: `python -m tests.support.kafka.jars` does it ahead of the tests."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
PROGRAMS = ("java", "mvn")
SECONDS = 300


class NoKafka(Exception):
    """There is no Kafka to be had here; the text says what to install."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Where what is fetched for tests stays: GROUNDWATCH_CACHE, else ~/.cache/groundwatch-tests."""
    return Path(environ.get("GROUNDWATCH_CACHE") or Path.home() / ".cache" / "groundwatch-tests")


def jars() -> Path:
    """The directory of the jars, which is filled by Maven where this version is not there yet. Raises NoKafka."""
    if shutil.which("java") is None:
        raise NoKafka("program 'java' is not installed (Debian: apt-get install openjdk-17-jre-headless maven)")
    version = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    target = cache_directory(os.environ) / f"kafka-{version}"
    if target.is_dir():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise NoKafka("program 'mvn' is not installed (Debian: apt-get install openjdk-17-jre-headless maven)")
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"]
    unfinished.mkdir(parents=True)
    try:
        done = subprocess.run(
            [maven, "--batch-mode", "--quiet", f"--file={POM}", *goal],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode or not any(unfinished.glob("kafka-server-*.jar")):
            raise NoKafka(f"Maven could not fetch Kafka's jars: {(done.stdout + done.stderr).strip()[-500:]}")
        try:
            unfinished.rename(target)
        except OSError:  # another process was quicker
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


if __name__ == "__main__":
    try:
        print(f"Kafka's jars: {len(list(jars().iterdir()))} files")
    except NoKafka as error:
        sys.exit(str(error))
