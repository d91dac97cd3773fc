"""One watched series: it learns its baseline, then bets against it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from collector.estimates.detect_clusters import Held
from collector.estimates.measures import Measure
from collector.estimates.options import DetectionOptions
from collector.stats.detector import POWER_LIMIT, Detector
from collector.stats.interval import logit_interval, n_eff
from scorers.scorer import Kind

VERSION = 1
"""Of the rows below; goes up whenever their meaning changes."""
DAY = 86_400.0
MONTH_DAYS = 365.25 / 12
_GIVEN_N = 100.0
"""Effective clusters from which the mean weight is known well enough for a level that is given."""
_EDGE = 1e-4
"""A learned level keeps so far from 0 and 1."""


class State(StrEnum):
    """What a series does."""

    LEARNING = "learning"
    WATCHING = "watching"
    ALARM = "alarm"


class Change(StrEnum):
    """What happened to a series, for whoever tells it."""

    WATCHED = "watched"
    SLOW = "slow"
    ALARM = "alarm"
    RENEWED = "renewed"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which series: a measure, over all segments (`segment` None) or in one combination of their values.

    `lower` is true where lower is better; `given` is the level from the configuration, in the metric's own scale.
    """

    measure: Measure
    names: tuple[str, ...]
    segment: tuple[str, ...] | None
    lower: bool
    given: float | None

    @property
    def name(self) -> str:
        """How people and commands call it: faithfulness, faithfulness/service=shop, faithfulness:local."""
        kind = ":local" if self.measure.kind is Kind.LOCAL else ""
        values = zip(self.names, self.segment, strict=True) if self.segment is not None else ()
        return self.measure.metric + kind + "".join(f"/{name}={value}" for name, value in values)


class BadRow(ValueError):
    """A kept row can not be used; the text says why."""


class Series:
    """Scores are turned so that high is good. Every cluster counts once, with v = mean w and z = mean w y over its
    scored items: the baseline is the mean sum z / sum v, and a bet is on x = m v - z, so both speak of the same.

    Times are Unix seconds. `tell` is given what happened.
    """

    def __init__(
        self,
        identity: Identity,
        options: DetectionOptions,
        *,
        now: float,
        items: int,
        tell: Callable[[Series, Change], None],
    ) -> None:
        self.identity = identity
        self._options = options
        self._tell = tell
        self.era = 0
        """Clusters of an earlier era are not wanted."""
        self.fingerprint = ""
        self.alarms = 0
        self.alarm_since: float | None = None
        self.acknowledged: float | None = None
        self.detector: Detector | None = None
        self._begin(now, items)

    def _begin(self, now: float, items: int) -> None:
        self._since = now
        self._items_before = items
        self._looked = 0
        self._sums = [0.0] * 5
        self._highest = 0.0
        self._per_month = math.nan
        self.detector = None

    @property
    def state(self) -> State:
        if self.alarm_since is not None:
            return State.ALARM
        return State.LEARNING if self.detector is None else State.WATCHING

    @property
    def threshold(self) -> float:
        """A; not a number while the baseline is learned. The traffic it comes from is frozen, the number of false
        alarms allowed is the configuration's."""
        month = self._options.judged_per_month or self._per_month
        return max(1.0, month / self._options.alarms_per_month) if self.detector is not None else math.nan

    @property
    def level(self) -> float | None:
        """The level in the metric's own scale."""
        if self.detector is None:
            return self.identity.given
        return 1 - self.detector.m if self.identity.lower else self.detector.m

    @property
    def log1p_m(self) -> float:
        return 0.0 if self.detector is None else self.detector.log1p

    @property
    def baseline_n(self) -> float:
        """Effective clusters that the baseline holds."""
        return float(n_eff(self._sums[0], self._sums[1]))

    def _needed(self) -> tuple[float, float]:
        """Seconds whose whole multiples a baseline takes, and effective clusters."""
        options = self._options
        if self.identity.given is not None:
            return options.level_days * DAY, _GIVEN_N
        return options.baseline_days * DAY, options.baseline_n

    def progress(self, now: float) -> float:
        """Share of the baseline that is learned: by time (up to the next whole multiple), or by number where that is
        less."""
        if self.detector is not None:
            return 1.0
        period, least = self._needed()
        time = max(0.0, now - self._since) / (period * (self._looked + 1))
        return min(time, self.baseline_n / least, 0.999)

    def seen(self, fingerprint: str, now: float, items: int) -> None:
        """A score was made by this instrument. Another one than before is another baseline, M = 0."""
        if fingerprint == self.fingerprint:
            return
        known, self.fingerprint = self.fingerprint, fingerprint
        if known:
            self.era += 1
            self.alarm_since = None
            if self.identity.given is not None and self.detector is not None:
                self.detector.restart()  # the level stands, and weights do not depend on the judge
            else:
                self._begin(now, items)
            self._tell(self, Change.RENEWED)

    def close(self, held: Held, now: float, items: int) -> None:
        """A cluster has closed: a bet, or a part of the baseline. `items` were scored so far over all series."""
        if held.era != self.era or not held.items:
            return
        v, z = held.w / held.items, held.wy / held.items
        if self.detector is None:
            self._look(now, items)
        if self.detector is None:
            sums = self._sums
            for place, term in enumerate((v, v * v, z, v * z, z * z)):
                sums[place] += term
            self._highest = max(self._highest, held.highest)
            return
        self.detector.bet(self.detector.m * v - z, held.items, held.highest)
        if self.alarm_since is None and self.detector.reached(self.threshold):
            self.alarm_since = now
            self.alarms += 1
            self._tell(self, Change.ALARM)

    def _look(self, now: float, items: int) -> None:
        """Freeze the baseline where a whole multiple of its time has passed and it holds enough; for a level that is
        given, whenever its time has passed, since no mean is learned from it."""
        period, least = self._needed()
        passed = int((now - self._since) / period)
        if passed <= self._looked:
            return
        if self.identity.given is None:
            self._looked = passed
        if self.baseline_n < least:
            return
        w, w2, wy, *_ = self._sums
        given = self.identity.given
        if given is None:
            # A one-sided bound of 97.5 % is an end of the two-sided interval of 95 %.
            m = min(float(logit_interval(*self._sums).lower), wy / w - self._options.tolerance)
        else:
            m = 1 - given if self.identity.lower else given
        self.detector = Detector(min(max(m, _EDGE), 1 - _EDGE), w2 / w)
        self._per_month = (items - self._items_before) / (now - self._since) * DAY * MONTH_DAYS
        self._tell(self, Change.WATCHED)
        if self._highest > POWER_LIMIT * w2 / w:
            self._tell(self, Change.SLOW)

    # --- what people can do
    def acknowledge(self, now: float) -> None:
        """The alarm was seen: watch on from M = 0 with the same level."""
        self.acknowledged = now
        self.alarm_since = None
        if self.detector is not None:
            self.detector.restart()

    def reset(self) -> None:
        """M = 0 with the same level; what is open, and what was said of earlier alarms, is forgotten."""
        self.era += 1
        self.alarm_since = self.acknowledged = None
        if self.detector is not None:
            self.detector.restart()

    def learn(self, now: float, items: int) -> None:
        """What is now is the new normal: a new baseline from here on."""
        self.era += 1
        self.alarm_since = None
        self._begin(now, items)

    # --- what outlives the process
    def row(self) -> bytes:
        """The whole state but open clusters."""
        detector = self.detector
        return json.dumps(
            {
                "version": VERSION,
                "name": self.identity.name,
                "names": self.identity.names,
                "segment": self.identity.segment,
                "lower": self.identity.lower,
                "given": self.identity.given,
                "fingerprint": self.fingerprint,
                "since": self._since,
                "items_before": self._items_before,
                "looked": self._looked,
                "sums": self._sums,
                "highest": self._highest,
                "alarms": self.alarms,
                "alarm_since": self.alarm_since,
                "acknowledged": self.acknowledged,
                "per_month": None if detector is None else self._per_month,
                "m": None if detector is None else detector.m,
                "mean_weight": None if detector is None else detector.mean_weight,
                # JSON has no infinity: None is M_j = 0
                "logs": None if detector is None else [None if x == -math.inf else x for x in detector.logs],
            }
        ).encode()

    def take(self, row: Mapping[str, object]) -> None:
        """Go on from a row. Raises BadRow where it is of another series, setting or version; then nothing changed."""
        identity = self.identity
        for key, mine in (("name", identity.name), ("lower", identity.lower), ("given", identity.given)):
            if row.get(key) != mine:
                raise BadRow(f"{key} was {row.get(key)!r} and is {mine!r}")
        try:
            sums = [_number(x) for x in _list(row["sums"], 5)]
            detector, per_month = None, math.nan
            if row["m"] is not None:
                logs = [-math.inf if x is None else _number(x) for x in _list(row["logs"], None)]
                detector = Detector(_number(row["m"]), _number(row["mean_weight"]), logs)
                per_month = _number(row["per_month"])
            fingerprint = str(row["fingerprint"])
            since, highest = _number(row["since"]), _number(row["highest"])
            items_before, looked, alarms = (int(_number(row[key])) for key in ("items_before", "looked", "alarms"))
            alarm_since, acknowledged = (
                None if row[key] is None else _number(row[key]) for key in ("alarm_since", "acknowledged")
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadRow(f"it is damaged ({type(error).__name__})") from error
        self._sums, self.detector, self._per_month, self.fingerprint = sums, detector, per_month, fingerprint
        self._since, self._highest = since, highest
        self._items_before, self._looked, self.alarms = items_before, looked, alarms
        self.alarm_since, self.acknowledged = alarm_since, acknowledged


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("not a number")
    return float(value)


def _list(value: object, length: int | None) -> list[object]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise ValueError("not a list of that length")
    return value
