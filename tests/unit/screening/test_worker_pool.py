"""The worker pool: what it gives back, and what happens when workers die, hang or can not start."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from collector.pipeline.workers import BatchFailedError, Loss, WorkerPool, WorkerStartError
from tests.unit.screening.pool_handlers import Doubling, unfit


async def settle() -> None:
    """Let the tasks that are ready run, so that a batch is on its way to its worker."""
    for _ in range(10):
        await asyncio.sleep(0)


class Pools:
    """Makes pools that are stopped when the test ends."""

    def __init__(self, marks: Path) -> None:
        self.marks = marks
        self.losses: list[Loss] = []
        self.made: list[WorkerPool[object, object]] = []

    async def start(self, workers: int, deadline_seconds: float = 60.0) -> WorkerPool[object, object]:
        pool: WorkerPool[object, object] = WorkerPool(
            Doubling(self.marks),
            workers=workers,
            deadline_seconds=deadline_seconds,
            on_loss=self.losses.append,
        )
        self.made.append(pool)
        await pool.start()
        return pool


@pytest.fixture
async def pools(tmp_path: Path) -> AsyncIterator[Pools]:
    made = Pools(tmp_path)
    yield made
    for pool in made.made:
        await pool.stop(0.0)


@pytest.mark.parametrize("workers", [0, 1])
async def test_results_come_back_in_order(pools: Pools, workers: int) -> None:
    pool = await pools.start(workers)
    assert await pool.run([1, 2, 3]) == [2, 4, 6]
    assert await pool.run([]) == []


async def test_batches_run_side_by_side_on_two_processes(pools: Pools) -> None:
    pool = await pools.start(2)
    found = await asyncio.gather(*(pool.run(["pid"]) for _ in range(2)))
    assert {pid for (pid,) in found} == set(pool.pids)
    assert os.getpid() not in pool.pids
    many = await asyncio.gather(*(pool.run([number]) for number in range(20)))
    assert many == [[2 * number] for number in range(20)]


@pytest.mark.parametrize("workers", [0, 1])
async def test_a_raising_handler_costs_its_batch_only(pools: Pools, workers: int) -> None:
    pool = await pools.start(workers)
    with pytest.raises(BatchFailedError) as failure:
        await pool.run(["raise"])
    assert (failure.value.loss, failure.value.detail) == (Loss.RAISED, "ValueError")
    assert await pool.run([4]) == [8]
    assert pools.losses == [Loss.RAISED]


async def test_results_that_can_not_be_sent_are_an_error(pools: Pools) -> None:
    pool = await pools.start(1)
    with pytest.raises(BatchFailedError) as failure:
        await pool.run(["unsendable"])
    assert failure.value.loss is Loss.RAISED
    assert await pool.run([4]) == [8]


async def test_the_batch_of_a_killed_worker_is_tried_once_more(pools: Pools) -> None:
    pool = await pools.start(1)
    before = pool.pids
    assert await pool.run(["die once"]) == ["lived"]
    assert pools.losses == [Loss.DIED]
    assert pool.pids != before
    assert len(pool.pids) == 1


async def test_a_batch_that_kills_twice_fails_and_the_pool_goes_on(pools: Pools) -> None:
    pool = await pools.start(1)
    with pytest.raises(BatchFailedError) as failure:
        await pool.run(["die"])
    assert failure.value.loss is Loss.DIED
    assert pools.losses == [Loss.DIED, Loss.DIED]
    assert await pool.run([5]) == [10]


async def test_a_worker_killed_while_idle_is_replaced_unnoticed(pools: Pools) -> None:
    pool = await pools.start(1)
    os.kill(pool.pids[0], signal.SIGKILL)
    assert await pool.run([5]) == [10]


async def test_a_machine_that_can_make_no_process_fails_the_batch_alone(pools: Pools) -> None:
    """A lost worker is replaced when it can be again; until then batches fail, and the pool does not."""
    pool = await pools.start(1)
    os.kill(pool.pids[0], signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, pool.pids[0], os.WEXITED | os.WNOWAIT)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # what is open stays so
    try:
        with pytest.raises(BatchFailedError, match="could not be made") as failure:
            await pool.run([1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert failure.value.loss is Loss.DIED
    assert await pool.run([2]) == [4]


async def test_a_hanging_worker_is_killed_and_replaced(pools: Pools) -> None:
    pool = await pools.start(1, deadline_seconds=0.2)
    with pytest.raises(BatchFailedError) as failure:
        await pool.run(["hang"])
    assert failure.value.loss is Loss.HUNG
    assert pools.losses == [Loss.HUNG, Loss.HUNG]
    assert await pool.run([5]) == [10]


async def test_a_cancelled_batch_does_not_leave_its_answer_behind(pools: Pools) -> None:
    pool = await pools.start(1)
    running = asyncio.create_task(pool.run(["hang"]))
    await settle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await pool.run([5]) == [10]


async def test_workers_ignore_the_signals_of_the_terminal(pools: Pools) -> None:
    pool = await pools.start(1)
    assert await pool.run(["signals"]) == ["still here"]


async def test_a_worker_that_still_imports_ignores_a_ctrl_c_too(tmp_path: Path) -> None:
    pool: WorkerPool[object, object] = WorkerPool(Doubling(tmp_path), workers=1)
    before = {child.pid for child in multiprocessing.active_children()}
    starting = asyncio.create_task(pool.start())
    while not (born := {child.pid for child in multiprocessing.active_children()} - before):
        await asyncio.sleep(0)
    for pid in born:
        assert pid is not None
        os.kill(pid, signal.SIGINT)
    try:
        await starting
        assert await pool.run([4]) == [8]
    finally:
        await pool.stop(0.0)


async def test_a_factory_that_fails_is_told_at_start() -> None:
    pool: WorkerPool[object, object] = WorkerPool(unfit, workers=1)
    with pytest.raises(WorkerStartError, match="no model here"):
        await pool.start()
    await pool.stop(0.0)


async def test_stop_twice_and_without_start(pools: Pools, tmp_path: Path) -> None:
    never: WorkerPool[object, object] = WorkerPool(Doubling(tmp_path), workers=2)
    await never.stop(1.0)
    pool = await pools.start(1)
    pids = pool.pids
    await pool.stop(1.0)
    await pool.stop(1.0)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(BatchFailedError) as failure:
        await pool.run([1])
    assert failure.value.loss is Loss.STOPPED


async def test_stop_kills_what_overruns_the_grace_time(pools: Pools) -> None:
    pool = await pools.start(1)
    running = asyncio.create_task(pool.run(["hang"]))
    await settle()
    await pool.stop(0.05)
    with pytest.raises(BatchFailedError) as failure:
        await running
    assert failure.value.loss is Loss.STOPPED


def test_workers_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    """The parent is another process, killed with SIGKILL while its worker hangs in a batch."""
    program = textwrap.dedent(
        """
        import asyncio, pathlib, sys
        from collector.pipeline.workers import WorkerPool
        from tests.unit.screening.pool_handlers import Doubling

        async def main():
            pool = WorkerPool(Doubling(pathlib.Path(sys.argv[1])), workers=1)
            await pool.start()
            print(pool.pids[0], flush=True)
            await pool.run(["hang"])

        if __name__ == "__main__":
            asyncio.run(main())
        """
    )
    script = tmp_path / "parent.py"
    script.write_text(program)
    root = Path(__file__).parents[3]
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    try:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
    finally:
        parent.kill()
        parent.wait()
    parent.stdout.close()
    try:
        handle = os.pidfd_open(worker)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([handle], [], [], 10)
        if not ended:
            os.kill(worker, signal.SIGKILL)
        assert ended, "the worker outlived its parent"
    finally:
        os.close(handle)
