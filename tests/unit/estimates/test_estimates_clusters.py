"""Which interactions belong together, and how long that is remembered."""

from __future__ import annotations

import pytest

from collector.estimates.clusters import ClusterKeys, Clusters, group_of
from collector.estimates.measures import Term
from collector.records.found import Found
from scorers.interaction import Interaction


def found(question: str | None = None, session: str | None = None, name: str = "i") -> Found:
    return Found(Interaction(name, question=question), session=session)


def test_a_session_is_a_cluster_else_a_question_however_it_is_written() -> None:
    keys = ClusterKeys(("session", "question"), "seed")
    assert keys.of(found("a", "s")) == keys.of(found("b", "s"))
    assert keys.of(found("What  is\n IT?")) == keys.of(found(" what is it?"))
    assert keys.of(found("x")) != keys.of(found("y"))
    assert keys.of(found("same")) != keys.of(found(None, "same")), "a session named like a question is another"
    assert keys.of(found(name="a")) != keys.of(found(name="b"))
    assert keys.of(found(name="a"))[1] is False
    assert keys.of(found("what \ud800")) == keys.of(found("What \ud800")), "odd text does no harm"


def test_what_makes_a_cluster_is_configured() -> None:
    by_question = ClusterKeys(("question",), "seed")
    assert by_question.of(found("a", "s")) != by_question.of(found("b", "s"))
    assert ClusterKeys((), "seed").of(found("a", "s"))[1] is False


def test_groups_are_even_and_depend_on_the_seed() -> None:
    keys, others = ClusterKeys(("session",), "seed"), ClusterKeys(("session",), "other")
    mine = [group_of(keys.of(found(session=f"s{n}"))[0]) for n in range(3_200)]
    counts = [mine.count(group) for group in range(16)]
    assert min(counts) > 140
    assert max(counts) < 260
    assert mine != [group_of(others.of(found(session=f"s{n}"))[0]) for n in range(3_200)]
    assert mine == [
        group_of(ClusterKeys(("session",), "seed").of(found(session=f"s{n}"))[0]) for n in range(3_200)
    ]


def add(
    clusters: Clusters, key: int, w: float, y: float, *, now: float = 0, segment: str = "a", place: int = 0
) -> Term:
    term = Term(place, w, y)
    clusters.add([term], key, (segment,), now, shared=True)
    return term


def test_growth_is_that_of_the_squares() -> None:
    clusters = Clusters(most=10, max_age_seconds=100)
    items = [(2.0, 0.5), (1.0, 1.0), (4.0, 0.0)]
    grown = [add(clusters, 1, w, y).own or (0, 0, 0) for w, y in items]
    a, b = sum(w for w, _ in items), sum(w * y for w, y in items)
    assert tuple(map(sum, zip(*grown, strict=True))) == pytest.approx((a * a, a * b, b * b))
    assert all(part >= 0 for one in grown for part in one), "counters only grow"


def test_a_cluster_over_two_segments_is_one_in_the_total_and_two_apart() -> None:
    clusters = Clusters(most=10, max_age_seconds=100)
    first = add(clusters, 1, 1, 1, segment="a")
    second = add(clusters, 1, 1, 1, segment="b")
    third = add(clusters, 1, 1, 1, segment="a")
    assert (first.own, first.total) == ((1, 1, 1), (1, 1, 1))
    assert (second.own, second.total) == ((1, 1, 1), (3, 3, 3))
    assert (third.own, third.total) == ((3, 3, 3), (5, 5, 5))


def test_measures_do_not_mix_and_many_find_room() -> None:
    clusters = Clusters(most=10, max_age_seconds=100)
    add(clusters, 1, 1, 1, place=0)
    assert add(clusters, 1, 1, 1, place=40).own == (1, 1, 1)
    assert add(clusters, 1, 1, 1, place=40).own == (3, 3, 3)


def test_what_is_unscored_is_in_no_cluster() -> None:
    clusters = Clusters(most=10, max_age_seconds=100)
    term = Term(0, 1.0, None, ("failed", "deadline"))
    clusters.add([term], 1, ("a",), 0, shared=True)
    assert (term.own, term.total) == (None, None)
    assert add(clusters, 1, 1, 1).own == (1, 1, 1)


def test_an_interaction_of_its_own_takes_no_memory() -> None:
    clusters = Clusters(most=10, max_age_seconds=100)
    terms = [Term(0, 2.0, 0.5)]
    clusters.add(terms, 1, ("a",), 0, shared=False)
    assert [term.own for term in terms] == [(4, 2, 1)]
    assert len(clusters) == 0


def test_old_clusters_begin_anew_and_the_stalest_gives_way() -> None:
    clusters = Clusters(most=2, max_age_seconds=100)
    add(clusters, 1, 1, 1, now=0)
    assert add(clusters, 1, 1, 1, now=99).own == (3, 3, 3)
    assert add(clusters, 1, 1, 1, now=100).own == (1, 1, 1), "closed by age"
    assert clusters.evicted == 0
    add(clusters, 2, 1, 1, now=110)
    add(clusters, 1, 1, 1, now=120)
    add(clusters, 3, 1, 1, now=130)
    assert len(clusters) == 2
    assert clusters.evicted == 1
    assert add(clusters, 1, 1, 1, now=140).own == (5, 5, 5), "it was used since"
    add(clusters, 4, 1, 1, now=500)
    assert clusters.evicted == 1, "old enough to be forgotten"
