"""Shares of tenants at a gate that is full: exactly, in simulated time, and over the wire."""

import heapq
import random

import pytest

from ingest.drawn_gate import SCHEMA, Drawn, answer
from ingest.test_tokens import bearer, entry
from penstock.errors import BadToken
from penstock.ingest import Gate, Security
from penstock.ingest.gate.events import (
    Append,
    BatchOffered,
    BatchPrepared,
    CallOpened,
    IntakeLimited,
    Prepare,
)
from penstock.ingest.gate.row_rate import RowRate
from penstock.ingest.limits import Limits
from penstock.ingest.security.tokens import TokenFile, hash_of, new_token
from penstock.ingest.wire.protocol import Push, Wait
from raw_push import RawPush, rows

RATE = 10_000
SECONDS = 60
SEED = 5


def simulated(seed=SEED, **tenants):
    """Rows a second and the 99th percentile of waiting of each (share, streams, rows/s offered, batch)."""
    rate, chance = RowRate(float(RATE)), random.Random(seed)
    taken, waited = dict.fromkeys(tenants, 0), {each: [] for each in tenants}
    due, count = [], 0
    for tenant, (_, streams, offered, batch) in tenants.items():
        for stream in range(streams):
            gap = batch * streams / offered
            due.append((100 + chance.random() * gap, count, tenant, stream, None))
            count += 1
    heapq.heapify(due)
    while due:
        now, _, tenant, stream, since = heapq.heappop(due)
        if now > 100 + SECONDS:
            continue
        share, streams, offered, batch = tenants[tenant]
        since, count = now if since is None else since, count + 1
        wait = rate.wait(f"{tenant}/{stream}", batch, now, tenant, share)
        if wait:
            heapq.heappush(due, (now + min(wait, 1.0), count, tenant, stream, since))
            continue
        rate.taken(f"{tenant}/{stream}", batch, now, tenant, share)
        taken[tenant] += batch
        waited[tenant].append(now - since)
        following = max(since + batch * streams / offered * chance.uniform(0.8, 1.2), now)
        heapq.heappush(due, (following, count, tenant, stream, None))
    return {
        each: (taken[each] / SECONDS, sorted(waited[each])[int(0.99 * len(waited[each]))]) for each in tenants
    }


GREEDY = (1.0, 20, 50_000, 100)  # ten times its share of two tenants


def test_a_tenant_within_its_share_does_not_wait_for_one_at_ten_times_its_share():
    alone = simulated(modest=(1.0, 5, 4000, 50))["modest"]
    beside = simulated(modest=(1.0, 5, 4000, 50), greedy=GREEDY)
    assert beside["modest"][1] <= 1.2 * alone[1]
    assert beside["modest"][0] == pytest.approx(4000, rel=0.02)
    assert sum(rows for rows, _ in beside.values()) == pytest.approx(RATE, rel=0.02)


@pytest.mark.parametrize(("share", "rows"), [(1.0, RATE / 2), (2.0, RATE * 2 / 3), (0.25, RATE / 5)])
def test_tenants_that_all_want_more_have_their_shares(share, rows):
    found = simulated(one=(share, 5, 50_000, 50), other=GREEDY)
    assert found["one"][0] == pytest.approx(rows, rel=0.03)
    assert found["other"][0] == pytest.approx(RATE - rows, rel=0.03)


def test_what_a_tenant_leaves_the_others_use():
    assert simulated(greedy=GREEDY)["greedy"][0] == pytest.approx(RATE, rel=0.02)
    found = simulated(greedy=GREEDY, quiet=(9.0, 1, 100, 10))
    assert found["greedy"][0] == pytest.approx(RATE - 100, rel=0.03)


def test_a_tenant_that_was_away_has_no_claim_on_what_it_did_not_use():
    rate = RowRate(1000.0)
    for n in range(100):
        rate.taken("a", 10, 10 + n / 100, "a")
    assert rate.wait("b", 10, 50.0, "b") == 0
    rate.taken("b", 1000, 50.0, "b")
    assert rate.wait("b2", 10, 50.0, "b") > 0.9


def test_rows_that_wait_for_their_turn_are_not_prepared_again():
    gate = Drawn(Limits(rows_per_second=100.0))
    (first,) = gate.send(0, 100, connect=True)
    gate.durable(first)
    assert isinstance(gate.feed(BatchPrepared(1, Push("r/a", 100), 10, 0, 10, 80))[0].answer, Wait)
    for sequence in (100, 110):  # the same one again, and what follows it
        (told,) = gate.offer(sequence, 10)
        assert isinstance(told.answer, Wait)
    (later,) = gate.feed(BatchOffered(1, Push("r/a", 100), 10, 80), now=10.0)
    assert isinstance(later, Prepare)


def test_tenants_share_what_a_run_behind_the_gate_takes():
    gate = Drawn(Limits())
    for call, tenant in ((2, "a"), (3, "b")):
        gate.feed(CallOpened(call, SCHEMA, lambda _: True, tenant=tenant))
    gate.feed(IntakeLimited(100.0, "a run over r takes 100 rows/s"), now=1.5)
    (first,) = gate.send(0, 100, 2, connect=True)
    gate.durable(first)
    told = answer(gate.send(100, 50, 2))
    assert isinstance(told, Wait)
    assert "100 rows/s, shared by its tenants, because a run over r takes 100 rows/s;" in told.message
    assert isinstance(answer(gate.offer(100, 50, 2)), Wait), "before its rows cost anything"
    (other,) = gate.send(0, 50, 3, stream="r/b", connect=True)
    assert isinstance(other, Append), "it is within its share"
    gate.feed(IntakeLimited(), now=1.5)
    assert isinstance(gate.send(100, 50, 2)[0], Append)


def test_another_rate_holds_for_what_waits_too():
    rate = RowRate(10.0)
    rate.taken("a", 100, 0.0)
    assert rate.wait("b", 10, 0.0) == pytest.approx(10.0, abs=0.1)
    rate.limit(100.0, 0.0)
    assert rate.left("b", 0.0) == pytest.approx(1.0, abs=0.1)
    rate.limit(0.0, 0.0)
    assert rate.wait("b", 10, 0.0) == 0.0


def tenants_of(tmp_path, tokens, shares):
    path = tmp_path / "tokens.toml"
    whose = {"a1": "acme", "a2": "acme", "b": "beta"}
    entries = [
        entry(name, tokens[name], f'push = ["*"]\ntenant = "{tenant}"') for name, tenant in whose.items()
    ]
    path.write_text("".join(entries) + shares)
    return path


def test_tokens_of_a_tenant_have_one_limit_and_its_share(tmp_path):
    tokens = {each: new_token() for each in ("a1", "a2", "b")}
    file = tenants_of(tmp_path, tokens, '[[tenant]]\nname = "beta"\nshare = 3\n')
    known = TokenFile(file)
    assert [known.entry(tokens[each]).caller for each in ("a1", "a2", "b")] == ["acme", "acme", "beta"]
    assert (known.share("beta"), known.share("acme"), known.share(None)) == (3.0, 1.0, 1.0)
    limits = Limits(calls_per_token=1, rows_per_second=1000.0)
    security = Security(tokens=file)
    with (
        Gate("127.0.0.1:0", tmp_path / "gate", limits=limits, security=security) as gate,
        RawPush(gate.address, options=bearer(tokens["a1"])) as first,
        RawPush(gate.address, options=bearer(tokens["b"])) as other,
    ):
        first.send("reports/1", 0, rows(0, 3000), connect=True)
        first.wait_for("reports/1", 3000)
        refused = RawPush(gate.address, options=bearer(tokens["a2"]))
        refused.close()
        assert "1 pushes of this token are open, its limit" in str(refused.error)
        first.send("reports/1", 3000, rows(3000, 10))
        assert "shared by its tenants" in first.answer()["message"]
        other.send("reports/2", 0, rows(0, 10), connect=True)
        other.wait_for("reports/2", 10)
        assert other.heard.empty()


@pytest.mark.parametrize("shares", ['[[tenant]]\nname = "beta"\n', '[[tenant]]\nname = "beta"\nshare = 0\n'])
def test_a_share_that_is_none_is_said(tmp_path, shares):
    tokens = {each: new_token() for each in ("a1", "a2", "b")}
    with pytest.raises(BadToken, match="give a name and a share above 0"):
        TokenFile(tenants_of(tmp_path, tokens, shares))
    assert hash_of(tokens["b"]) in (tmp_path / "tokens.toml").read_text()
