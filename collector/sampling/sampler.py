"""Decides which interactions are judged, and with what probability."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collector.pipeline.clock import Clock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.sampling.budget import Budget, Spent
from collector.sampling.filters import Filters, Left
from collector.sampling.hashing import Uniform
from collector.sampling.options import BUDGET, NO_JUDGE, SHED, Options
from collector.sampling.policies import floor_of, least_of, make
from collector.sampling.policy import Policies, Policy
from collector.sampling.segments import Segments
from collector.sampling.upstream import Known, Upstream, highest
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.outcome import Result

# Below this keep probability nothing is shed any more: what then overfills the queue is failed and counted there.
_LOWEST_KEEP = 0.001
_NEWEST = 0.01


class Sampler:
    """Gives every interaction its fate: found = filtered + sampled_out + shed + queued.

    The inclusion probability is the product of three independent ones, each by a hash of its own: the policies'
    (at least the floor), what the budget leaves of that, and what a full queue leaves. It is known before the
    hashes are looked at, and never 0. Until `connect` says that there is a judge, nothing is queued.
    """

    def __init__(
        self,
        options: Options,
        *,
        seed: str,
        clock: Clock,
        telemetry: Telemetry,
        policies: Sequence[Policy] | None = None,
    ) -> None:
        self._seed = seed
        self._clock = clock
        self._given = policies
        self._telemetry = telemetry
        self._budget = Budget(options.budget, floor=floor_of(options), clock=clock)
        self._budget_hash = Uniform(seed, BUDGET)
        self._shed_hash = Uniform(seed, SHED)
        self._pressure: Callable[[], float] | None = None
        self._segments = Segments(options.segments)
        self._fates = {fate: telemetry.counter(metrics.INTERACTIONS, fate=fate) for fate in Fate}
        self._left = {left: telemetry.counter(metrics.FILTERED, reason=left) for left in Left}
        self._upstream_known = {known: telemetry.counter(metrics.UPSTREAM, known=known) for known in Known}
        self._capped = telemetry.counter(metrics.UPSTREAM_CAPPED)
        self._rate_gauge = telemetry.gauge(metrics.SAMPLING_RATE)
        self._factor_gauge = telemetry.gauge(metrics.SAMPLING_BUDGET_FACTOR)
        self._policies = self._made(options)
        self._configure(options)

    def _configure(self, options: Options) -> None:
        self._options = options
        self._floor = floor_of(options)
        self._filters = Filters(options)
        self._upstream = Upstream(options.upstream)
        self._highest = highest(options.upstream)
        self._least = least_of(options) if self._given is None else self._floor
        self._rate = 0.0 if options.policies else options.rate
        self._newest = 1.0
        self._rate_gauge.set(self._rate)
        self._factor_gauge.set(1.0)

    def _made(self, options: Options) -> Policies:
        policies = self._given
        if policies is None:
            policies = make(options, segments=self._segments.of, clock=self._clock)
        return Policies(policies, floor=floor_of(options), seed=self._seed)

    def reconfigure(self, options: Options) -> None:
        """Use other rates, budget and rules from the next decision on. Segments stay: they name series. Policies
        that are the same keep what they know of the traffic."""
        same = {"policies": options.policies, "rate": options.rate, "floor": options.floor}
        if self._options.model_copy(update=same) != self._options:
            self._policies = self._made(options)
        self._budget.reconfigure(options.budget, floor=floor_of(options))
        self._configure(options)

    def connect(self, *, pressure: Callable[[], float], spent: Callable[[], Spent]) -> None:
        """There is a judge: `pressure` gives the keep probability of its queue, `spent` what it spent today."""
        self._pressure = pressure
        self._budget.connect(spent)

    @property
    def segment_names(self) -> tuple[str, ...]:
        return self._segments.names

    def segments(self, found: Found) -> tuple[tuple[str, str], ...]:
        """The bounded label values of an interaction."""
        return self._segments.of(found)

    def listed_segments(self) -> Iterator[tuple[tuple[str, str], ...]]:
        """Every combination of the label values that the configuration lists."""
        return self._segments.listed()

    def decide(
        self, found: Found, results: Sequence[Result] = (), *, screening_probability: float = 1.0
    ) -> Decision:
        """The fate of one interaction. `results` are screening's; `screening_probability`, in (0, 1], is a factor of
        every weight and is carried beside the decision, so it does not enter here."""
        decision = self._decide(found, results)
        self._fates[decision.fate].inc()
        return decision

    def _decide(self, found: Found, results: Sequence[Result]) -> Decision:
        left = self._filters.left_out(found)
        if left is not None:
            self._left[left].inc()
            return Decision(Fate.FILTERED, 1.0, left.value)
        weight = self._upstream.weight(found)
        self._upstream_known[weight.known].inc()
        if weight.capped:
            self._capped.inc()

        least = self._least

        def decision(fate: Fate, probability: float, policy: str) -> Decision:
            return Decision(fate, probability, policy, weight.u, weight.conditional, least, self._highest)

        verdict = self._policies.decide(found, results)
        if self._pressure is None:
            return decision(Fate.SAMPLED_OUT, verdict.probability, NO_JUDGE)
        cut = self._budget.cut()
        lowered = cut.of(verdict.probability, floor=self._floor, lowest=self._options.lowest)
        self._budget.seen(verdict.probability)
        self._factor_gauge.set(cut.factor)
        self._rate += (lowered - self._rate) * self._newest
        # Policies give each interaction its own probability, of which the gauge shows the running mean.
        self._newest = _NEWEST if self._options.policies else 1.0
        self._rate_gauge.set(self._rate)
        keep = min(1.0, max(_LOWEST_KEEP, self._pressure()))
        probability = lowered * keep
        least = cut.of(self._least, floor=self._floor, lowest=self._options.lowest) * keep
        interaction_id = found.interaction.id
        if not verdict.kept:
            return decision(Fate.SAMPLED_OUT, probability, verdict.policy)
        if self._budget_hash(interaction_id) >= lowered / verdict.probability:
            return decision(Fate.SAMPLED_OUT, probability, BUDGET)
        if self._shed_hash(interaction_id) >= keep:
            return decision(Fate.SHED, probability, SHED)
        self._budget.queued()
        return decision(Fate.QUEUED, probability, verdict.policy)
