"""What only the SQLite store has: a file, its limits, what is left in it, and what happens when it can not write."""

from __future__ import annotations

import logging
import resource
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from collector.pipeline.clock import ManualClock
from collector.review.case import CaseResult, OutcomeKind, Reason
from collector.review.codec import BadCase
from collector.review.labels import Draft, LabelKind
from collector.review.options import Options
from collector.review.query import Query, Subject, SubjectKind
from collector.review.sqlite import SqliteStore
from collector.review.store import StoreUnavailable
from collector.review.writer import Writer
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from collector.telemetry.metrics import REVIEW_CASE_OUTCOMES
from tests.support.review_cases import NOON, a_case

AGREE = Draft(LabelKind.AGREE, "agree", metric="faithfulness")
DAY = 86_400
Open = Callable[..., SqliteStore]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "review.sqlite"


@pytest.fixture
def opened(path: Path, clock: ManualClock, telemetry: Telemetry) -> Iterator[Open]:
    stores: list[SqliteStore] = []

    def make(**options: object) -> SqliteStore:
        store = SqliteStore(path, Options(**options), clock=clock, telemetry=telemetry)  # type: ignore[arg-type]  # its fields
        store.open()
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


def counted(telemetry: Telemetry, name: str, **labels: str) -> float:
    return telemetry.registry.get_sample_value(name, labels) or 0.0


def test_files_are_the_owners_alone(opened: Open, path: Path) -> None:
    store = opened()
    store.put(a_case())
    store.flush()
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["review.sqlite", "review.sqlite-shm", "review.sqlite-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_was_open_to_others_is_closed_to_them(opened: Open, path: Path) -> None:
    opened().close()
    path.chmod(0o644)
    opened()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_cases_and_labels_outlive_the_process(opened: Open) -> None:
    store = opened()
    store.put(a_case())
    store.flush()
    labelled = store.label(a_case().id, [AGREE], author="ann", expected_revision=0)
    store.close()
    again = opened()
    assert again.get(a_case().id) == labelled


def test_what_waits_is_written_at_the_end(opened: Open) -> None:
    store = opened()
    for number in range(300):
        assert store.put(a_case(f"case-{number}"))
    store.close()
    assert opened().stats().cases == 300


def test_cases_may_come_before_it_is_open(path: Path, clock: ManualClock) -> None:
    store = SqliteStore(path, Options(), clock=clock, telemetry=Telemetry())
    assert store.put(a_case())
    with pytest.raises(StoreUnavailable, match="not open"):
        store.get("x")
    with pytest.raises(StoreUnavailable, match="not open"):
        store.flush()
    store.open()
    store.flush()
    assert store.stats().cases == 1
    store.close()
    assert not store.put(a_case("late"))
    with pytest.raises(StoreUnavailable, match="not open"):
        store.label(a_case().id, [AGREE], author="ann", expected_revision=0)
    with pytest.raises(StoreUnavailable, match="not open"):
        store.find(Query())


def test_a_full_queue_drops_and_counts(path: Path, clock: ManualClock, telemetry: Telemetry) -> None:
    store = SqliteStore(path, Options(queue_cases=2), clock=clock, telemetry=telemetry)
    assert [store.put(a_case(f"case-{number}")) for number in range(4)] == [True, True, False, False]
    assert counted(telemetry, "groundwatch_review_waiting") == 2
    assert counted(telemetry, "groundwatch_review_cases_total", outcome="queue_full") == 2
    store.open()
    store.flush()
    assert store.put(a_case("again"))
    store.flush()
    assert store.stats().cases == 3
    store.close()


def test_the_queue_is_bounded_in_bytes(path: Path, clock: ManualClock, telemetry: Telemetry) -> None:
    store = SqliteStore(path, Options(queue_bytes=2**20), clock=clock, telemetry=telemetry)
    assert [store.put(a_case(f"case-{n}", question="x" * 400_000)) for n in range(4)] == [True, True, False, False]
    store.open()
    store.close()


def test_a_case_that_is_too_large_is_dropped_and_counted(opened: Open, telemetry: Telemetry) -> None:
    store = opened(max_case_bytes=2**16)
    store.put(a_case("large", question="x" * 70_000))
    store.put(a_case("small"))
    store.flush()
    assert [row.id for row in store.find(Query()).rows] == ["small"]
    assert counted(telemetry, "groundwatch_review_cases_total", outcome="too_large") == 1
    assert counted(telemetry, "groundwatch_review_cases_total", outcome="stored") == 1


@contextmanager
def no_room_in(log: Path) -> Iterator[None]:
    """No file may grow beyond the size of this one: how a full disk looks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_is_told_once_and_each_case_is_counted_once(
    path: Path, clock: ManualClock, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("full disk")
    store = SqliteStore(
        path, Options(), clock=clock, telemetry=telemetry, events=Events(telemetry, clock, log, burst=99)
    )
    store.open()
    store.put(a_case("before"))
    store.flush()
    lost: list[str] = []
    with caplog.at_level(logging.INFO, logger=log.name):
        with no_room_in(path.with_name(path.name + "-wal")):
            for name in ("one", "two", "three"):
                assert store.put(a_case(name), lambda: lost.append("ended"))
                with suppress(StoreUnavailable):
                    store.flush()
        store.flush()  # writes nothing, and says nothing of what can be written
        store.put(a_case("after"))
        store.flush()
    store.close()
    told = [(record.__dict__["event"], record.levelname) for record in caplog.records]
    assert told == [("review_not_written", "ERROR"), ("review_written_again", "INFO")]
    assert str(path) in caplog.records[0].__dict__["fields"]["reason"]
    outcomes = {
        outcome: counted(telemetry, "groundwatch_review_cases_total", outcome=outcome)
        for outcome in REVIEW_CASE_OUTCOMES
    }
    assert {name: count for name, count in outcomes.items() if count} == {"stored": 2, "failed": 3}
    assert len(lost) == 3


def test_a_case_that_can_not_be_read_any_more_stops_nothing(opened: Open, path: Path, clock: ManualClock) -> None:
    """Its body is damaged, or has a word of a later version in it."""
    store = opened(max_age_days=1)
    store.put(a_case("damaged"))
    store.put(a_case("whole"))
    store.flush()
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("UPDATE bodies SET body = x'00' WHERE n = (SELECT n FROM cases WHERE id = 'damaged')")
    file.close()
    with pytest.raises(BadCase):
        store.get("damaged")
    clock.advance(3 * DAY)
    assert store.retain() == 2
    store.put(a_case("later", ended_unix=NOON + 3 * DAY))
    store.flush()
    assert [row.id for row in store.find(Query(text="warranty")).rows] == ["later"]


def test_a_case_that_is_no_json_does_not_take_others_along(opened: Open, telemetry: Telemetry) -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"d": deep}
    odd = a_case("odd")
    bad = CaseResult("f", "judged", OutcomeKind.SCORED, score=0.5, evidence=deep)
    half = CaseResult("f", "judged", OutcomeKind.SCORED, score=0.5, evidence={"set": {1}, "half\ud800": "x\udfff"})
    store = opened()
    store.put(a_case("before"))
    store.put(type(odd)(odd.id, odd.interaction, odd.picks, odd.ended_unix, (bad,)))
    store.put(type(odd)("half", odd.interaction, odd.picks, float("nan"), (half,)))
    store.put(a_case("after", question="half \ud83d of a smile", user="\ud83d"))
    store.flush()
    assert {row.id for row in store.find(Query()).rows} == {"before", "after", "half"}
    assert counted(telemetry, "groundwatch_review_cases_total", outcome="failed") == 1
    kept = store.get("half")
    assert kept is not None
    assert kept.ended_unix == NOON  # when it was stored
    assert kept.results[0].evidence["half\ufffd"] == "x\ufffd"
    after = store.get("after")
    assert after is not None
    assert (after.interaction.question, after.origin.user) == ("half \ufffd of a smile", "\ufffd")
    deep.clear()


def test_a_file_of_something_else_is_left_alone(path: Path, opened: Open) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreUnavailable, match=r"review\.path.*something else"):
        opened()
    path.write_bytes(b"not a database at all, but some text that is long enough to be looked at" * 20)
    with pytest.raises(StoreUnavailable, match=r"review\.path.*can not be used"):
        opened()


def test_a_file_of_a_newer_version_is_left_alone(path: Path, opened: Open) -> None:
    opened().close()
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(StoreUnavailable, match="newer groundwatch"):
        opened()


def test_a_directory_that_can_not_be_made(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "file").write_text("x")
    store = SqliteStore(tmp_path / "file" / "review.sqlite", Options(), clock=clock, telemetry=Telemetry())
    with pytest.raises(StoreUnavailable, match=r"review\.path"):
        store.open()


def test_old_cases_go_labelled_ones_later_golden_ones_never(
    opened: Open, clock: ManualClock, telemetry: Telemetry
) -> None:
    store = opened(max_age_days=30, labelled_max_age_days=365)
    for name in ("plain", "labelled", "golden"):
        store.put(a_case(name))
    store.put(a_case("newer", ended_unix=NOON + 10 * DAY))
    store.flush()
    store.label("labelled", [AGREE], author="ann", expected_revision=0)
    store.label("golden", [Draft(LabelKind.GOLDEN, True)], author="ann", expected_revision=0)
    clock.advance(29.9 * DAY)
    assert store.retain() == 0
    clock.advance(0.2 * DAY)
    assert store.retain() == 1
    assert [row.id for row in store.find(Query(text="warranty")).rows] == ["newer", "golden", "labelled"]
    clock.advance(335 * DAY)
    assert store.retain() == 2
    assert [row.id for row in store.find(Query()).rows] == ["golden"]
    assert counted(telemetry, "groundwatch_review_retired_total", reason="age") == 3
    assert counted(telemetry, "groundwatch_review_store_cases") == 1


def test_too_many_cases_go_the_oldest_first_labelled_ones_last(opened: Open, telemetry: Telemetry) -> None:
    store = opened(max_cases=3)
    store.put(a_case("case-1", ended_unix=NOON + 1))
    store.flush()
    store.label("case-1", [AGREE], author="ann", expected_revision=0)
    for number in (0, 2, 3, 4, 5):
        store.put(a_case(f"case-{number}", ended_unix=NOON + number))
    store.flush()
    store.retain()
    assert [row.id for row in store.find(Query()).rows] == ["case-5", "case-4", "case-1"]
    assert counted(telemetry, "groundwatch_review_retired_total", reason="count") == 3


def test_limits_are_kept_without_being_asked(opened: Open) -> None:
    store = opened(max_cases=100)
    for number in range(700):
        while not store.put(a_case(f"case-{number}", ended_unix=NOON + number)):
            store.flush()
    for _ in range(20):
        store.flush()  # maintenance takes a step after each transaction, when there is something to do
    assert store.stats().cases <= 100 + 500


def test_the_file_does_not_outgrow_its_bytes(opened: Open, path: Path, telemetry: Telemetry) -> None:
    store = opened(max_bytes=2**20)
    for number in range(500):
        text = " ".join(f"word{number * word % 4001}" for word in range(200))
        while not store.put(a_case(f"case-{number}", question=text, response=text, ended_unix=NOON + number)):
            store.flush()
    store.flush()
    store.retain()
    stats = store.stats()
    assert 0 < stats.cases < 500
    assert stats.bytes <= 2**20
    assert store.find(Query()).rows[0].id == "case-499"
    assert counted(telemetry, "groundwatch_review_store_bytes") == stats.bytes
    store.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.stat().st_size <= 2**20


SECRET = "xylophonist"


def test_nothing_of_an_erased_case_is_left_in_the_files(opened: Open, path: Path) -> None:
    store = opened()
    for number in range(200):
        store.put(a_case(f"other-case-00000{number}", session="other", user="other", trace_ids=("t",)))
    store.put(
        a_case(
            f"{SECRET}-case-0000001",
            question=f"{SECRET} asked this",
            response=f"answer to {SECRET}",
            service=SECRET,
            session=f"s-{SECRET}",
            user=f"u-{SECRET}",
            trace_ids=(f"t-{SECRET}",),
            segments={"who": SECRET},
            marks=(SECRET,),
        )
    )
    store.flush()
    store.label(f"{SECRET}-case-0000001", [Draft(LabelKind.COMMENT, SECRET)], author=SECRET, expected_revision=0)
    assert holding(path)
    store.erase(Subject(SubjectKind.USER, f"u-{SECRET}"))
    assert not holding(path)
    assert store.stats().cases == 200
    assert len(store.find(Query(text="warranty"), limit=200).rows) == 200
    store.close()
    assert not holding(path)


def holding(path: Path) -> list[Path]:
    return [file for file in path.parent.iterdir() if SECRET.encode() in file.read_bytes()]


def test_an_erasure_is_told_when_a_reader_keeps_the_log(opened: Open, path: Path, clock: ManualClock) -> None:
    store = opened()
    store.put(a_case("someone-case-000001"))
    store.flush()
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM cases").fetchone()
    store.put(a_case("another-case-000001", user="other"))
    store.flush()
    subject = Subject(SubjectKind.USER, "user-1")
    impatient = SqliteStore(path, Options(), clock=clock, telemetry=Telemetry(), busy_seconds=0.05)
    impatient.open()
    with pytest.raises(StoreUnavailable, match="a reader holds on"):
        impatient.erase(subject)
    reader.execute("COMMIT")
    reader.close()
    impatient.erase(subject)
    impatient.close()
    assert b"someone-case-000001" not in path.read_bytes()


def test_an_id_that_somebody_wrote_down_elsewhere_is_no_failure(opened: Open) -> None:
    store = opened()
    store.put(a_case("someone-case-000001"))
    store.put(a_case("another-case-000001", user="other"))
    store.flush()
    comment = Draft(LabelKind.COMMENT, "the same as someone-case-000001")
    store.label("another-case-000001", [comment], author="ann", expected_revision=0)
    assert store.erase(Subject(SubjectKind.USER, "user-1")).case_ids == ("someone-case-000001",)


def test_two_processes_may_write(opened: Open) -> None:
    one, two = opened(), opened()
    one.put(a_case("a"))
    one.flush()
    two.label("a", [AGREE], author="ann", expected_revision=0)
    one.put(a_case("a", reasons=(Reason.FEEDBACK,)))
    one.flush()
    case = two.get("a")
    assert case is not None
    assert (case.revision, len(case.picks)) == (1, 2)


def test_many_may_open_a_new_file_at_once(path: Path, clock: ManualClock) -> None:
    stores = [SqliteStore(path, Options(), clock=clock, telemetry=Telemetry()) for _ in range(4)]
    threads = [threading.Thread(target=store.open) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, store in enumerate(stores):
        store.put(a_case(f"case-{number}"))
        store.flush()
    assert stores[0].stats().cases == 4
    for store in stores:
        store.close()


class Slow(ManualClock):
    """A clock of which each look at it costs a second."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


def test_a_search_that_takes_too_long_is_given_up(path: Path) -> None:
    store = SqliteStore(path, Options(read_seconds=0.5), clock=Slow(), telemetry=Telemetry())
    store.open()
    for number in range(300):
        store.put(a_case(f"case-{number}"))
    store.flush()
    with pytest.raises(StoreUnavailable, match=r"review\.read_seconds"):
        store.count(Query(labelled=False))
    store.close()


# --- the writer


def writer(path: Path, **bounds: int) -> Writer:
    made = Writer(
        lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.05),
        lambda _: False,
        max_items=bounds.get("max_items", 10),
        max_bytes=bounds.get("max_bytes", 1_000),
    )
    made.start()
    made.call(lambda connection: connection.execute("CREATE TABLE t (x UNIQUE)"), timeout_seconds=10)
    return made


def test_a_piece_that_fails_is_taken_back_alone(tmp_path: Path) -> None:
    lost: list[int] = []
    gate = threading.Event()
    made = writer(tmp_path / "db")
    made.offer(lambda _: gate.wait(10), size=1, lost=lambda: lost.append(-1))
    for number, value in enumerate((1, 1, 2)):
        made.offer(
            lambda connection, value=value: connection.execute("INSERT INTO t VALUES (?)", (value,)),  # type: ignore[misc]  # a default makes it untyped
            size=1,
            lost=lambda number=number: lost.append(number),  # type: ignore[misc]  # a default makes it untyped
        )
    gate.set()
    rows = made.call(lambda connection: connection.execute("SELECT x FROM t").fetchall(), timeout_seconds=10)
    assert rows == [(1,), (2,)]
    assert lost == [1]
    made.close(10)


def test_what_a_caller_provokes_is_raised_to_it(tmp_path: Path) -> None:
    made = writer(tmp_path / "db")
    with pytest.raises(ZeroDivisionError):
        made.call(lambda _: 1 / 0, timeout_seconds=10)
    with pytest.raises(StoreUnavailable, match="no such table"):
        made.call(lambda connection: connection.execute("SELECT x FROM absent"), timeout_seconds=10)
    assert made.call(lambda _: 7, timeout_seconds=10) == 7
    made.close(10)


def test_a_transaction_that_can_not_begin_is_told_to_all_and_the_thread_goes_on(tmp_path: Path) -> None:
    lost: list[str] = []
    made = writer(tmp_path / "db")
    blocker = sqlite3.connect(tmp_path / "db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    made.offer(lambda _: None, size=1, lost=lambda: lost.append("offered"))
    with pytest.raises(StoreUnavailable, match="locked"):
        made.call(lambda _: None, timeout_seconds=10)
    blocker.execute("COMMIT")
    blocker.close()
    made.call(lambda _: None, timeout_seconds=10)
    assert lost == ["offered"]
    assert made.waiting == 0
    made.close(10)


def test_a_caller_does_not_wait_for_ever(tmp_path: Path) -> None:
    gate = threading.Event()
    made = writer(tmp_path / "db")
    made.offer(lambda _: gate.wait(10), size=1, lost=lambda: None)
    with pytest.raises(StoreUnavailable, match=r"within 0\.01 s"):
        made.call(lambda _: None, timeout_seconds=0.01)
    gate.set()
    made.close(10)


def test_maintenance_that_meets_an_error_does_not_end_the_thread(tmp_path: Path) -> None:
    told: list[Exception | None] = []

    def maintain(_: sqlite3.Connection) -> bool:
        raise KeyError("odd row")

    made = Writer(
        lambda: sqlite3.connect(tmp_path / "db", isolation_level=None, check_same_thread=False),
        maintain,
        max_items=10,
        max_bytes=1_000,
        told=told.append,
    )
    made.start()
    made.nudge()
    for _ in range(3):
        made.call(lambda _: None, timeout_seconds=10)
    made.close(10)
    assert told
    assert all(isinstance(error, KeyError) for error in told)


def test_room_is_given_back(tmp_path: Path) -> None:
    made = writer(tmp_path / "db", max_items=2)
    for _ in range(5):
        assert made.offer(lambda _: None, size=400, lost=lambda: None)
        assert made.offer(lambda _: None, size=400, lost=lambda: None)
        made.call(lambda _: None, timeout_seconds=10)
        made.call(lambda _: None, timeout_seconds=10)  # the bounds are lowered after the first one's answer
    made.close(10)
