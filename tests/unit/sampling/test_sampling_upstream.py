"""Upstream weights by the service's setting."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from collector.sampling.options import UpstreamOptions
from collector.sampling.upstream import Known, Upstream, Weight
from tests.unit.sampling.sampling_builders import found

HALF = "f" * 18 + "8" + "0" * 13  # randomness 0x80000000000000


def weigh(setting: object, *, state: str = "", trace_id: str = HALF, **options: object) -> Weight:
    upstream = Upstream(UpstreamOptions.model_validate({"default": setting, **options}))
    return upstream.weight(found(state=state, trace_id=trace_id))


@pytest.mark.parametrize(
    ("state", "u"),
    [
        ("ot=th:0", 1),
        ("ot=th:8", 2),
        ("ot=th:80000000000000", 2),
        ("ot=th:4", 4 / 3),
        ("vendor=x,ot=rv:ffffffffffffff;th:fd70a3d70a3d71,other=y", 100.0),
        ("a=b , ot=th:c;rv:c0000000000000", 4),
        ("ot=p:8;th:c;rv:ffffffffffffff;x:y", 4),
    ],
)
def test_threshold(state: str, u: float) -> None:
    weight = weigh("tracestate", state=state)
    assert weight.u == pytest.approx(u)
    assert (weight.known, weight.conditional) == (Known.READ, False)


def test_randomness_at_the_threshold_is_kept_and_below_it_inconsistent() -> None:
    assert weigh("tracestate", state="ot=th:8", trace_id=HALF).known is Known.READ
    below = weigh("tracestate", state="ot=th:8", trace_id="f" * 18 + "7" + "f" * 13)
    assert below == Weight(1.0, Known.INCONSISTENT, conditional=True)
    assert weigh("tracestate", state="ot=th:8;rv:7fffffffffffff").known is Known.INCONSISTENT


@pytest.mark.parametrize("state", ["", "vendor=th:8", "ot=rv:ffffffffffffff", "xot=th:8", "ot="])
def test_without_a_threshold_nothing_is_known(state: str) -> None:
    assert weigh("tracestate", state=state) == Weight(1.0, Known.MISSING, conditional=True)


@pytest.mark.parametrize(
    "state", ["ot=th:", "ot=th:xyz", "ot=th:123456789abcdef", "ot=th:8;rv:12", "ot=th:-1", "ot=th:F"]
)
def test_malformed(state: str) -> None:
    assert weigh("tracestate", state=state).known is Known.MALFORMED


def test_a_record_without_a_trace_id_can_not_be_checked() -> None:
    assert weigh("tracestate", state="ot=th:8", trace_id="").known is Known.MALFORMED


def test_weights_are_capped() -> None:
    heavy = weigh("tracestate", state="ot=th:ffffffffffffff;rv:ffffffffffffff", max_adjusted_count=50)
    assert (heavy.u, heavy.capped) == (50, True)
    assert weigh({"ratio": 0.0001}).capped
    assert weigh({"ratio": 0.001}) == Weight(1000.0, Known.RATIO)


def test_settings_by_service() -> None:
    options = UpstreamOptions.model_validate(
        {"default": "unknown", "services": {"shop": {"ratio": 0.1}, "chat": "none", "api": {"mode": "tracestate"}}}
    )
    upstream = Upstream(options)
    assert upstream.weight(found(service="shop")) == Weight(10.0, Known.RATIO)
    assert upstream.weight(found(service="chat")) == Weight(1.0, Known.NONE)
    assert upstream.weight(found(service="api")).known is Known.MISSING
    assert upstream.weight(found(service="elsewhere")) == Weight(1.0, Known.UNKNOWN, conditional=True)


@pytest.mark.parametrize("setting", [{"ratio": 0}, {"ratio": 1.5}, "tail", {"mode": "none", "ratio": 0.5}])
def test_settings_that_make_no_sense(setting: object) -> None:
    with pytest.raises(ValidationError):
        UpstreamOptions.model_validate({"default": setting})


def test_a_long_trace_state_is_read_only_so_far() -> None:
    assert weigh("tracestate", state="x=" + "y" * 1_000_000 + ",ot=th:8").known is Known.MISSING
