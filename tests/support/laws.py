"""The laws of conservation, read off /metrics: what came in is what became of it, unit by unit."""

from __future__ import annotations

from tests.support.sidecar import Metrics

FATES = ("filtered", "sampled_out", "shed", "queued")


def broken(now: Metrics) -> list[str]:
    """The laws that do not hold in this reading, one sentence each; empty when all hold."""
    laws: list[tuple[str, float, float]] = []
    for signal in ("traces", "logs"):
        laws.append(
            (
                f"items of {signal}: received = sum of the outcomes",
                now.total("groundwatch_items_received_total", signal=signal),
                now.total("groundwatch_items_total", signal=signal),
            )
        )
    laws.append(
        (
            "traces: opened = open + released",
            now.total("groundwatch_traces_opened_total"),
            now.total("groundwatch_traces_open") + now.total("groundwatch_traces_released_total"),
        )
    )
    handed_on = (
        now.total("groundwatch_traces_released_total")
        - now.total("groundwatch_traces_released_total", reason="no_hint")
        - now.total("groundwatch_traces_released_total", reason="moved")
        + now.total("groundwatch_records_received_total")
    )
    laws.append(
        (
            "traces: released with a hint, and records = sum of screening's outcomes (when nothing waits)",
            handed_on,
            now.total("groundwatch_screening_traces_total"),
        )
    )
    laws.append(
        (
            "traces: screened = examined",
            now.total("groundwatch_screening_traces_total", outcome="screened"),
            now.total("groundwatch_traces_examined_total"),
        )
    )
    found = now.total("groundwatch_interactions_found_total")
    fates = {fate: now.total("groundwatch_interactions_total", fate=fate) for fate in FATES}
    laws.append(("interactions: found = sum of the fates", found, sum(fates.values())))
    laws.append(
        (
            "interactions: not filtered = settled + moved + repeated (when nothing waits)",
            found - fates["filtered"],
            now.total("groundwatch_interactions_settled_total")
            + now.total("groundwatch_interactions_moved_total")
            + now.total("groundwatch_interactions_repeated_total", noticed="settled"),
        )
    )
    for metric in now.by("groundwatch_judging_queued_total", "metric"):
        laws.append(
            (
                f"{metric}: queued = scored + not applicable + failed + moved + waiting",
                now.total("groundwatch_judging_queued_total", metric=metric),
                now.total("groundwatch_judging_results_total", metric=metric)
                + now.total("groundwatch_judging_waiting", metric=metric),
            )
        )
        laws.append((f"{metric}: queued = interactions queued", fates["queued"], now.total(
            "groundwatch_judging_queued_total", metric=metric
        )))  # fmt: skip
    for name in ("local", "judged"):
        for metric in now.by(f"groundwatch_{name}_weight_total", "metric"):
            for outcome in ("not_applicable", "failed"):
                laws.append(
                    (
                        f"{name} {metric}: weight {outcome} = sum over its reasons",
                        now.total(f"groundwatch_{name}_weight_total", metric=metric, outcome=outcome),
                        now.total(f"groundwatch_{name}_unscored_weight_total", metric=metric, outcome=outcome),
                    )
                )
            laws.append(
                (
                    f"{name} {metric}: weight scored = sum of weights",
                    now.total(f"groundwatch_{name}_weight_total", metric=metric, outcome="scored"),
                    now.total(f"groundwatch_{name}_sum_w_total", metric=metric),
                )
            )
    return [
        f"{text}: {left} is not {right}"
        for text, left, right in laws
        if abs(left - right) > 1e-6 * max(1.0, abs(left))
    ]
