"""The scripted judge beside a synchronous test: a real HTTP server on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Self

from scorers.testing import Fault, Received, ScriptedJudge


class JudgeServer:
    """Runs a ScriptedJudge until it is left; `faults` may be added at any time."""

    def __init__(self, judge: ScriptedJudge | None = None) -> None:
        self.judge = judge if judge is not None else ScriptedJudge()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="scripted-judge", daemon=True)
        self._up = threading.Event()
        self._leave = asyncio.Event()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        async with self.judge:
            self._up.set()
            await self._leave.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(10), "the scripted judge did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(10)

    def misbehave(self, *faults: Fault) -> None:
        """Use these up, one a request, before anything else is answered."""
        self.judge.faults.extend(faults)

    @property
    def chats(self) -> list[Received]:
        return self.judge.chats

    def section(self, **more: Any) -> dict[str, Any]:
        """The `judge:` section that points here."""
        return {"base_url": self.judge.base_url, "model": "scripted", **more}
