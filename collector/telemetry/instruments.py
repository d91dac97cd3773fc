"""Instruments made from the table on one injected registry."""

from __future__ import annotations

from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from collector.telemetry.metrics import table
from collector.telemetry.spec import MetricSpec, Type

Instrument = Counter | Gauge | Histogram


class Telemetry:
    """Counts, sets and observes by `MetricSpec`; made once, in `app.py`.

    Series whose label values are all known are born at 0. `counter`/`gauge`/`histogram` give a child for hot
    paths, to be kept by the caller (0.4 us an increment instead of 1.6).
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped
        self.registry = registry if registry is not None else CollectorRegistry(auto_describe=False)
        self._instruments: dict[str, Instrument] = {
            spec.name: self._make(spec) for spec in table() if not spec.collected
        }

    def _make(self, spec: MetricSpec) -> Instrument:
        names = tuple(spec.labels)
        instrument: Instrument
        if spec.type is Type.COUNTER:
            instrument = Counter(spec.name.removesuffix("_total"), spec.help, names, registry=self.registry)
        elif spec.type is Type.GAUGE:
            instrument = Gauge(spec.name, spec.help, names, registry=self.registry)
        else:
            instrument = Histogram(spec.name, spec.help, names, registry=self.registry, buckets=spec.buckets)
        known = [values for values in spec.labels.values() if values is not None]
        if names and len(known) == len(names):
            for combination in product(*known):
                instrument.labels(*combination)
        return instrument

    def _child(self, spec: MetricSpec, labels: dict[str, str]) -> Instrument:
        instrument = self._instruments[spec.name]
        return instrument.labels(**labels) if labels else instrument

    def counter(self, spec: MetricSpec, **labels: str) -> Counter:
        child = self._child(spec, labels)
        assert isinstance(child, Counter)
        return child

    def gauge(self, spec: MetricSpec, **labels: str) -> Gauge:
        child = self._child(spec, labels)
        assert isinstance(child, Gauge)
        return child

    def histogram(self, spec: MetricSpec, **labels: str) -> Histogram:
        child = self._child(spec, labels)
        assert isinstance(child, Histogram)
        return child

    def inc(self, spec: MetricSpec, amount: float = 1, **labels: str) -> None:
        self.counter(spec, **labels).inc(amount)

    def set(self, spec: MetricSpec, value: float, **labels: str) -> None:
        self.gauge(spec, **labels).set(value)
