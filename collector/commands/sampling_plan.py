"""`groundwatch sampling-plan`: what will be judged, at what cost, and how sure the numbers will be."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from collector.commands.common import add_config_argument, read_config
from collector.config import Config
from collector.configfile import ConfigError
from collector.records.found import Mark
from collector.sampling.marks import FILTERED
from collector.sampling.options import Options
from collector.sampling.plan import (
    DRAW_N,
    WINDOWS,
    Expected,
    Plan,
    PlanError,
    Price,
    Scheme,
    Scores,
    Traffic,
    plan,
)
from collector.sampling.policies import unscreened
from collector.sampling.rules import RulesOptions
from collector.stats.burn import BurnRateImpossible, minimum_n
from dashboards.burn import BURNS, Page, Refusal
from dashboards.burn import plan as burn_plan
from dashboards.options import HOUR, Objective, duration
from dashboards.options import Options as Rules
from scorers.judge.prices import cost_usd
from scorers.local import describe
from scorers.scorer import Tier

_DEFAULT = Scores()
TARGETS = (0.99, 0.95, 0.90, 0.80)
"""Service levels for which the burn rates are looked at."""
PROMPT_TOKENS = {"standard": 4_870, "fused": 3_205}
"""Prompt tokens that the four default scorers take of one interaction with five passages of 1,000 characters, by
plan: `tests/bench/judging_ragas.py`, table in scorers/README.md."""
_HOURS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "For a given traffic, the configured policies and budget: how many interactions are judged, at what cost, "
        "the effective sample size and interval per window beside a uniform rate that judges as many, and the "
        "burn-rate alerts that allows. Nothing is asked or spent; assumed interactions are sent through the real "
        "policies."
    )
    parser.add_argument(
        "--traffic",
        required=True,
        metavar="N/h",
        help="interactions of one process: 1200/h, 20/m, 0.5/s, 30000/d; a number alone is by the hour",
    )
    parser.add_argument(
        "--segments",
        action="append",
        default=[],
        metavar="NAME=VALUE:PARTS,...",
        help="how the traffic divides: tenant=gold:1,free:9. NAME is a segment, or an attribute that rules look at; "
        "may be repeated",
    )
    parser.add_argument(
        "--marks", metavar="MARK:SHARE,...", help="share of interactions with a mark: application_error:0.02"
    )
    parser.add_argument("--price", type=float, metavar="USD", help="US dollars for one judged interaction")
    parser.add_argument(
        "--tokens",
        metavar="IN,OUT",
        help="prompt and reply tokens of one judged interaction, for the price in judge.prices",
    )
    parser.add_argument(
        "--mean", type=float, default=_DEFAULT.mean, help="assumed mean of the judged score (default %(default)s)"
    )
    parser.add_argument(
        "--sd", type=float, default=_DEFAULT.sd, help="assumed standard deviation of it (default %(default)s)"
    )
    parser.add_argument(
        "--correlation",
        type=float,
        default=_DEFAULT.correlation,
        help="assumed correlation of the local score with it, for policies by score (default %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the assumed interactions (default %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    add_config_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Exit codes: 0 planned, 2 wrong arguments or configuration."""
    try:
        config = read_config(args)
        traffic = Traffic(_traffic(args.traffic), _segments(args.segments, config.sampling), _marks(args.marks))
        scores = Scores(args.mean, args.sd, args.correlation)
        price, price_text = _price(args, config)
        made = plan(config.sampling, traffic, scores, price, seed=args.seed)
    except (ConfigError, PlanError) as error:
        sys.stderr.write(f"groundwatch sampling-plan: {error}\n")
        return 2
    asked = _Asked(traffic, scores, price, price_text, list(_notes(config, made)))
    if args.json:
        sys.stdout.write(json.dumps(_json(made, asked), indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(_text(made, asked)) + "\n")
    return 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was planned with, and what is to be said about it."""

    traffic: Traffic
    scores: Scores
    price: Price
    price_from: str
    notes: Sequence[str]


def _traffic(text: str) -> float:
    match = re.fullmatch(r"([0-9][0-9_,]*(?:\.[0-9]+)?)(?:/([smhd]))?", text.strip())
    if match is None:
        raise PlanError(f"--traffic {text!r} can not be read: write 1200/h, 20/m, 0.5/s or 30000/d")
    return float(match[1].replace(",", "").replace("_", "")) / _HOURS[match[2] or "h"]


def _segments(given: Sequence[str], options: Options) -> dict[str, dict[str, float]]:
    known = {segment.name for segment in options.segments}
    for policy in options.policies:
        if isinstance(policy, RulesOptions):
            known |= {match.attribute for rule in policy.rules for match in rule.match}
    parts: dict[str, dict[str, float]] = {}
    for text in given:
        name, equals, rest = text.partition("=")
        if not equals or not rest:
            raise PlanError(f"--segments {text!r} can not be read: write NAME=VALUE:PARTS,VALUE:PARTS")
        if name not in known:
            raise PlanError(
                f"--segments {name!r} is no segment, and no rule of a policy looks at it; there are: "
                f"{', '.join(sorted(known))}"
            )
        if name in parts:
            raise PlanError(f"--segments {name!r} is given twice: list all its values in one")
        parts[name] = _numbers("--segments", rest)
    return parts


def _marks(text: str | None) -> dict[Mark, float]:
    if not text:
        return {}
    given = _numbers("--marks", text)
    known = [mark for mark in Mark if mark not in FILTERED]
    for name in given:
        if name not in known:
            raise PlanError(f"--marks {name!r} is no mark that a policy sees; there are: {', '.join(known)}")
    return {Mark(name): share for name, share in given.items()}


def _numbers(option: str, text: str) -> dict[str, float]:
    """`a:1,b:2` as a mapping."""
    numbers: dict[str, float] = {}
    for part in text.split(","):
        name, colon, number = part.strip().rpartition(":")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not colon or not name or math.isnan(value):
            raise PlanError(f"{option} {part!r} can not be read: write NAME:NUMBER, like gold:1")
        if name in numbers:
            raise PlanError(f"{option} {name!r} is listed twice")
        numbers[name] = value
    return numbers


def _price(args: argparse.Namespace, config: Config) -> tuple[Price, str]:
    """What a judged interaction takes, and in words where that is from."""
    calls = config.sampling.budget.expected_calls
    if args.price is not None:
        if not 0 <= args.price < float("inf"):
            raise PlanError(f"--price {args.price:g} must be a number of US dollars from 0 on")
        return Price(calls, args.price), "--price"
    judge = config.judge
    if judge is None:
        if args.tokens is not None:
            raise PlanError("--tokens needs a judge with a price in the configuration; give --price instead")
        return Price(calls), "unknown: give --price, or a judge with a price (judge.prices) in the configuration"
    ins, outs = _tokens(args.tokens) if args.tokens else (PROMPT_TOKENS[judge.plan], 0)
    usd = cost_usd(judge.prices, judge.model, input_tokens=ins, output_tokens=outs)
    if usd is None:
        return Price(calls), f"unknown: judge.prices has none of {judge.model!r}; add it, or give --price"
    if args.tokens:
        return Price(calls, usd), f"judge.prices of {judge.model!r} for {ins} prompt and {outs} reply tokens"
    return (
        Price(calls, usd),
        f"judge.prices of {judge.model!r} for the {ins} prompt tokens of the four default scorers with the plan "
        f"{judge.plan}; replies cost more on top: give --tokens IN,OUT as your judge reports them",
    )


def _tokens(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9}),(\d{1,9})", text)
    if match is None:
        raise PlanError(f"--tokens {text!r} can not be read: write prompt and reply tokens, like 4870,900")
    return int(match[1]), int(match[2])


def _notes(config: Config, made: Plan) -> Iterator[str]:
    """What to know before one relies on the plan."""
    if config.judge is None:
        yield "no judge is configured: nothing is judged until there is one (judge: in the configuration)"
    run_here = {metric for one in describe(config.screening.scorers, Tier.FAST) for metric in one.gives}
    yield from unscreened(config.sampling, run_here)
    if made.over_budget and made.allowed_per_day is not None:
        hours = 24 * made.allowed_per_day / (made.configured.judged_per_hour * 24)
        yield (
            f"the budget pays for {made.allowed_per_day:,.0f} a day, sampling.lowest keeps more: the judge's own "
            f"limit stops estimates after about {hours:.1f} h of each day; raise the budget"
        )
    elif made.cut.factor < 1:
        yield (
            f"the budget cuts: the policies ask for {made.wanted_per_hour:,.1f} an hour, it leaves "
            f"{made.cut.factor:.3g} of what lies above the floor and {made.cut.kept_floor:.3g} of the floor"
        )
    if made.configured.variance > 1.1:
        yield (
            f"at the same cost a uniform rate gives a variance {made.configured.variance:.2f} times smaller; these "
            "policies are worth it for what they find, not for the mean over everything"
        )


def _burns(scheme: Scheme) -> Iterator[tuple[float, Page | Refusal]]:
    rules = Rules()
    for target in TARGETS:
        for one in burn_plan(
            Objective(target=target, judged_per_hour=scheme.n_eff_per_hour), false_alarm=rules.false_alarm
        ):
            yield target, one


def _text(made: Plan, asked: _Asked) -> Iterator[str]:
    traffic, scores, price = asked.traffic, asked.scores, asked.price
    own, flat = made.configured, made.uniform
    yield f"traffic    {traffic.per_hour:,.6g} interactions an hour, {traffic.per_hour * 24:,.6g} a day"
    yield (
        f"assumed    judged scores with mean {scores.mean:g} and sd {scores.sd:g}, local ones that correlate "
        f"{scores.correlation:g} with them; unrelated interactions (sessions make intervals wider)"
    )
    if price.usd is None:
        yield f"price      {price.calls:g} calls a judged interaction; US dollars {asked.price_from}"
    else:
        yield (
            f"price      {price.calls:g} calls and {price.usd:.6g} US dollars a judged interaction "
            f"({asked.price_from})"
        )
    yield f"budget     {_limit(made)}"
    yield ""
    yield f"{'':34}{'configured':>14}{'uniform':>14}"
    yield _pair("judged an hour", own.judged_per_hour, flat.judged_per_hour, "{:,.4g}")
    yield _pair("judged a day", own.judged_per_hour * 24, flat.judged_per_hour * 24, "{:,.0f}")
    yield _pair("judge calls a day", own.calls_per_day, flat.calls_per_day, "{:,.0f}")
    if own.usd_per_day is not None and flat.usd_per_day is not None:
        yield _pair("US dollars a day", own.usd_per_day, flat.usd_per_day, "{:,.4f}")
    yield _pair("effective n for each judged", own.n_eff_per_judged, flat.n_eff_per_judged, "{:.3f}")
    yield _pair("variance x cost against uniform", own.variance, flat.variance, "{:.2f}")
    yield ""
    yield f"{'window':8}{'judged':>10}{'effective n':>13}{'interval':>12}   {'uniform n':>10}{'interval':>12}"
    for name in WINDOWS:
        one, other = own.windows[name], flat.windows[name]
        yield (
            f"{name:8}{one.judged:>10,.1f}{one.n_eff:>13,.1f}{_half(one):>12}   {other.n_eff:>10,.1f}{_half(other):>12}"
        )
    yield f"(- : effective n below {DRAW_N:g}, no interval is drawn)"
    if made.parts:
        yield ""
        titles = f"{'traffic/h':>11}{'judged/h':>10}{'USD/day':>10}{'n an hour':>11}{'n a day':>10}{'1d':>10}"
        yield f"{'segment':30}{titles}"
        for part in made.parts:
            usd = f"{part.scheme.usd_per_day:.4f}" if part.scheme.usd_per_day is not None else "unknown"
            day = part.scheme.windows["1d"]
            yield (
                f"{f'{part.segment}={part.value}':30.30}{part.per_hour:>11,.4g}{part.scheme.judged_per_hour:>10,.4g}"
                f"{usd:>10}{part.scheme.n_eff_per_hour:>11,.4g}{day.n_eff:>10,.4g}{_half(day):>10}"
            )
    yield ""
    yield f"burn-rate alerts that can work at an effective n of {own.n_eff_per_hour:,.4g} an hour (short/long window):"
    yield f"{'objective':12}" + "".join(f"{f'{burn.rate:g}x':>16}" for burn in BURNS)
    found = list(_burns(own))
    for target in TARGETS:
        cells = [_cell(target, one) for at, one in found if at == target]
        yield f"{target:<12g}" + "".join(f"{cell:>16}" for cell in cells)
    if any(isinstance(one, Refusal) for _, one in found):
        yield "needs n: answers the short window must hold; never: the bad share it takes would be 1 or more"
    if asked.notes:
        yield ""
        yield from (f"note: {note}" for note in asked.notes)


def _limit(made: Plan) -> str:
    if made.allowed_per_day is None:
        return "no limit"
    return f"pays for {made.allowed_per_day:,.0f} judged interactions a day ({made.allowed_per_day / 24:,.1f} an hour)"


def _pair(label: str, own: float, flat: float, form: str) -> str:
    return f"{label:34}{form.format(own):>14}{form.format(flat):>14}"


def _half(one: Expected) -> str:
    return "-" if one.half_width is None else f"+- {one.half_width:.3f}"


def _cell(target: float, one: Page | Refusal) -> str:
    if isinstance(one, Page):
        return f"{duration(one.short)}/{duration(one.burn.long)}"
    try:
        return f"needs {minimum_n(target, one.burn.rate, Rules().false_alarm)}"
    except BurnRateImpossible:
        return "never"


def _json(made: Plan, asked: _Asked) -> dict[str, Any]:
    def scheme(one: Scheme) -> Mapping[str, Any]:
        return {**asdict(one), "n_eff_per_hour": one.n_eff_per_hour}

    return {
        "traffic": asdict(asked.traffic),
        "assumed": asdict(asked.scores),
        "price": {**asdict(asked.price), "source": asked.price_from},
        "allowed_per_day": made.allowed_per_day,
        "wanted_per_hour": made.wanted_per_hour,
        "budget_factor": made.cut.factor,
        "floor_factor": made.cut.kept_floor,
        "over_budget": made.over_budget,
        "configured": scheme(made.configured),
        "uniform": scheme(made.uniform),
        "segments": [
            {"segment": part.segment, "value": part.value, "per_hour": part.per_hour, **scheme(part.scheme)}
            for part in made.parts
        ],
        "burn_rates": [
            {
                "target": target,
                "rate": one.burn.rate,
                "long_hours": one.burn.long / HOUR,
                **(
                    {"short_hours": one.short / HOUR, "needed_n": one.needed}
                    if isinstance(one, Page)
                    else {"refused": one.reason}
                ),
            }
            for target, one in _burns(made.configured)
        ],
        "notes": list(asked.notes),
    }
