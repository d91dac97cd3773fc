"""A pool of worker processes that survives its workers.

`WorkerPool(factory, workers=n)`: `factory` is picklable, runs once in each worker and gives the handler, which
turns a batch (a list) into a list of results. A worker that dies or overruns the deadline is replaced and its
batch tried once more on another; then the batch fails with a named reason. Workers are started with `spawn`,
ignore SIGINT and SIGTERM (the parent drains and stops them) and end when the parent is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from collector.pipeline.garbage import collect_less_often

_In = TypeVar("_In")
_Out = TypeVar("_Out")
Handler = Callable[[list[_In]], list[_Out]]
Factory = Callable[[], Handler[_In, _Out]]


class Loss(StrEnum):
    """Why a worker was replaced or a batch failed; bounded, so it may be a metric label."""

    DIED = "died"  # killed, out of memory, or crashed
    HUNG = "hung"  # over the deadline, then killed
    RAISED = "raised"  # the handler raised; the worker lives on
    STOPPED = "stopped"  # the pool was stopped before or during the batch


class BatchFailedError(Exception):
    """A batch gave no results. `detail` names an exception's class or an exit code and holds no payload."""

    def __init__(self, loss: Loss, detail: str = "") -> None:
        super().__init__(f"{loss}: {detail}" if detail else str(loss))
        self.loss = loss
        self.detail = detail


class WorkerStartError(Exception):
    """A new worker could not be made, its factory failed, or was not ready in time; the message has its error."""


_READY, _DONE, _RAISED, _UNFIT = "ready", "done", "raised", "unfit"
_NOT_THEIRS = (signal.SIGINT, signal.SIGTERM)


def _serve(channel: Connection, factory: Factory[_In, _Out], niceness: int) -> None:
    """The worker's main: make the handler, then answer batches until the channel closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NOT_THEIRS)
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    with contextlib.suppress(OSError):
        os.nice(niceness)
    try:
        handler = factory()
    except BaseException as error:  # noqa: BLE001  # whatever it is, the parent must learn of it
        channel.send((_UNFIT, f"{type(error).__name__}: {error}"))
        return
    collect_less_often()
    channel.send((_READY, None))
    while True:
        try:
            batch = channel.recv()
        except (EOFError, OSError):
            return
        if batch is None:
            return
        try:
            answer: tuple[str, object] = (_DONE, handler(batch))
        except Exception as error:  # noqa: BLE001  # a handler's bug costs its batch, not the worker
            answer = (_RAISED, type(error).__name__)
        del batch  # not kept while waiting for the next
        try:
            channel.send(answer)
        except (BrokenPipeError, ConnectionError):
            return
        except Exception as error:  # noqa: BLE001  # results that can not be pickled
            channel.send((_RAISED, f"unsendable results: {type(error).__name__}"))
        del answer


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


class _Worker:
    """One process with its channel. All methods but `kill` block and are called from the pool's threads."""

    def __init__(self, process: BaseProcess, channel: Connection) -> None:
        self.process = process
        self.channel = channel

    def receive(self) -> tuple[str, object]:
        answer: tuple[str, object] = self.channel.recv()
        return answer

    def exchange(self, batch: Sequence[object]) -> tuple[str, object]:
        self.channel.send(list(batch))
        return self.receive()

    def kill(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.process.kill()

    def end(self, seconds: float) -> None:
        """Ask the worker to end, kill it after `seconds`, and let go of it."""
        with contextlib.suppress(OSError, ValueError):
            self.channel.send(None)
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.channel.close()
        self.process.close()


class WorkerPool(Generic[_In, _Out]):
    """Runs batches on worker processes, at most one batch a worker at a time.

    `workers=0` runs the handler in this process, on the event loop: for tests and tiny set-ups; no deadline holds
    there. `deadline_seconds` bounds one batch, `start_seconds` the factory. `on_loss` is told each time a worker
    was replaced (DIED, HUNG) or a handler raised. Used on one event loop.
    """

    def __init__(
        self,
        factory: Factory[_In, _Out],
        *,
        workers: int,
        deadline_seconds: float = 60.0,
        start_seconds: float = 60.0,
        niceness: int = 5,
        on_loss: Callable[[Loss], None] | None = None,
    ) -> None:
        if workers < 0:
            raise ValueError(f"workers is {workers}; use 0 (in this process) or more")
        self.workers = workers
        self._factory = factory
        self._deadline = deadline_seconds
        self._start_seconds = start_seconds
        self._niceness = niceness
        self._on_loss = on_loss if on_loss is not None else _ignore
        self._context = multiprocessing.get_context("spawn")
        self._threads: ThreadPoolExecutor | None = None
        self._idle: asyncio.Queue[_Worker | None] = asyncio.Queue()
        self._all: set[_Worker] = set()
        self._handler: Handler[_In, _Out] | None = None
        self._running = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._stopped = False

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers that live."""
        return tuple(worker.process.pid for worker in self._all if worker.process.pid is not None)

    async def start(self) -> None:
        """Start all workers and wait until their handlers are made. Raises WorkerStartError."""
        if self.workers == 0:
            self._handler = self._factory()
            return
        # One thread a worker to talk to it, and one for each that is being started or ended meanwhile.
        self._threads = ThreadPoolExecutor(2 * self.workers, thread_name_prefix="worker-channel")
        started = await asyncio.gather(*(self._make() for _ in range(self.workers)), return_exceptions=True)
        failures = [one for one in started if isinstance(one, BaseException)]
        if failures:
            await self.stop(0.0)
            raise failures[0]
        for worker in started:
            assert isinstance(worker, _Worker)
            self._idle.put_nowait(worker)

    async def run(self, batch: Sequence[_In]) -> list[_Out]:
        """The handler's results for the batch, once a worker is free. Raises BatchFailedError."""
        if self._stopped:
            raise BatchFailedError(Loss.STOPPED)
        self._running += 1
        self._quiet.clear()
        try:
            if self.workers == 0:
                return self._run_here(batch)
            try:
                return await self._run_once(batch)
            except BatchFailedError as error:
                if error.loss not in (Loss.DIED, Loss.HUNG) or self._stopped:
                    raise
            return await self._run_once(batch)
        finally:
            self._running -= 1
            if not self._running:
                self._quiet.set()

    def _run_here(self, batch: Sequence[_In]) -> list[_Out]:
        if self._handler is None:
            raise RuntimeError("the pool was not started")
        try:
            return self._handler(list(batch))
        except Exception as error:  # as in a worker: a handler's bug costs its batch
            self._on_loss(Loss.RAISED)
            raise BatchFailedError(Loss.RAISED, type(error).__name__) from error

    async def _run_once(self, batch: Sequence[_In]) -> list[_Out]:
        worker = await self._take()
        loop = asyncio.get_running_loop()
        talking = loop.run_in_executor(self._threads, worker.exchange, batch)
        try:
            done, _ = await asyncio.wait({talking}, timeout=self._deadline)
        except asyncio.CancelledError:
            worker.kill()  # its answer would be taken for the next batch's
            talking.add_done_callback(_swallow)
            self._replace_later(worker)
            raise
        hung = not done
        if hung:
            worker.kill()
        try:
            kind, value = await talking
        except Exception as error:  # EOF, broken pipe, or an answer cut in its middle
            loss = Loss.HUNG if hung else Loss.DIED
            self._on_loss(loss)
            worker.kill()
            self._replace_later(worker)
            if self._stopped:
                loss = Loss.STOPPED
            raise BatchFailedError(loss, type(error).__name__) from error
        if hung:
            self._replace_later(worker)  # it answered while it was being killed: the answer stands
        else:
            self._idle.put_nowait(worker)
        if kind == _RAISED:
            self._on_loss(Loss.RAISED)
            raise BatchFailedError(Loss.RAISED, str(value))
        assert isinstance(value, list)
        return value

    async def _take(self) -> _Worker:
        """An idle worker, or a new one in the place of one that was lost."""
        while True:
            worker = await self._idle.get()
            if self._stopped:
                self._idle.put_nowait(None)  # wake the next waiter too
                raise BatchFailedError(Loss.STOPPED)
            if worker is not None and worker.process.is_alive():
                return worker
            if worker is not None:  # it died while it was idle
                self._on_loss(Loss.DIED)
                self._let_go(worker)
            try:
                return await self._make()
            except BaseException as error:
                self._idle.put_nowait(None)  # the place stays open: the next batch tries again
                if isinstance(error, WorkerStartError):
                    raise BatchFailedError(Loss.DIED, str(error)) from error
                raise

    def _replace_later(self, worker: _Worker) -> None:
        self._let_go(worker)
        self._idle.put_nowait(None)

    def _let_go(self, worker: _Worker) -> None:
        self._all.discard(worker)
        if self._threads is not None and not self._stopped:
            self._threads.submit(worker.end, 1.0)

    async def _make(self) -> _Worker:
        loop = asyncio.get_running_loop()
        try:
            worker = await loop.run_in_executor(self._threads, self._spawn)
        except OSError as error:  # no memory, or no more processes or files for this one
            raise WorkerStartError(f"a worker process could not be made: {error.strerror or error}") from error
        self._all.add(worker)
        ready = loop.run_in_executor(self._threads, worker.receive)
        done, _ = await asyncio.wait({ready}, timeout=self._start_seconds)
        if not done:
            worker.kill()
        try:
            kind, value = await ready
        except Exception as error:  # whatever a factory or a spawn raises: the caller gets one kind of error
            self._let_go(worker)
            why = f"not ready after {self._start_seconds} s" if not done else "died while starting"
            raise WorkerStartError(f"a worker process was {why}") from error
        if kind != _READY:
            self._let_go(worker)
            raise WorkerStartError(f"a worker process could not start: {value}")
        return worker

    def _spawn(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, self._factory, self._niceness), name="groundwatch-worker", daemon=True
        )
        # A Ctrl-C goes to the whole group: a worker must not see it while it still imports and ignores nothing. It
        # inherits this thread's mask. The tracker is started before, since its start unblocks the signals again.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_THEIRS)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return _Worker(process, ours)

    async def stop(self, seconds: float) -> None:
        """Wait up to `seconds` for running batches, then end the workers. Twice is fine, unstarted too."""
        if not self._stopped:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._quiet.wait()
        self._stopped = True
        self._idle.put_nowait(None)
        threads, self._threads = self._threads, None
        if threads is None:
            return
        workers, self._all = list(self._all), set()
        busy = self._running > 0
        for worker in workers:
            if busy:
                worker.kill()
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(threads, worker.end, 2.0) for worker in workers))
        await loop.run_in_executor(None, threads.shutdown)


def _ignore(loss: Loss) -> None:
    del loss


def _swallow(future: asyncio.Future[tuple[str, object]]) -> None:
    if not future.cancelled():
        future.exception()
