import json
from dataclasses import asdict

from penstock.runtime.frontier import Frontier, SteadyTime


def advance(frontier, seen, steady=0, looked=0, delay=0, idle=None):
    return frontier.advance(seen, steady=steady, looked=looked, delay=delay, idle=idle)


def test_the_slowest_stream_decides():
    assert advance(Frontier(), {"a": 100, "b": 40}, delay=10).value == 30


def test_it_never_goes_back():
    first = advance(Frontier(), {"a": 100})
    assert advance(first, {"b": 5}).value == 100


def test_an_idle_stream_holds_nobody_back():
    #   a ──100────────200───300──▶
    #   b ──40── (silent) ────────▶
    first = advance(Frontier(), {"a": 100, "b": 40}, steady=0, idle=50)
    second = advance(first, {"a": 200}, steady=70, looked=60, idle=50)
    assert second.value == 40
    assert advance(second, {"a": 300}, steady=80, looked=75, idle=50).value == 300


def test_an_idle_stream_that_comes_back_counts_again():
    first = advance(Frontier(), {"a": 100, "b": 40}, steady=0, idle=50)
    second = advance(first, {"a": 200}, steady=70, looked=60, idle=50)
    third = advance(second, {"a": 300}, steady=80, looked=75, idle=50)
    assert advance(third, {"a": 400, "b": 350}, steady=90, looked=85, idle=50).value == 350


def test_a_pause_between_the_offer_and_the_epoch_is_no_silence():
    """Defect 22: the second epoch was offered its tuples before the pause, and b is back in the third."""
    #   steady   0 ── offer ── (pause of 1000) ── epoch ──▶
    first = advance(Frontier(), {"a": 100, "b": 40}, steady=0, idle=50)
    paused = advance(first, {"a": 200}, steady=1010, looked=10, idle=50)
    assert advance(paused, {"a": 300, "b": 250}, steady=1030, looked=1020, idle=50).value == 250


def test_an_epoch_that_left_something_proves_no_silence():
    """Defect 22: a backlog does not make the streams idle that come later in it."""
    from dataclasses import replace

    first = advance(Frontier(), {"a": 100, "b": 40}, steady=0, idle=50)
    for step in range(1, 5):
        first = replace(
            advance(first, {"a": 100 + step}, steady=100 * step, looked=100 * step - 10, idle=50), whole=False
        )
    assert first.value == 40
    assert advance(first, {"a": 300, "b": 250}, steady=600, looked=590, idle=50).value == 250


def test_silence_of_all_streams_moves_the_frontier_with_time():
    """Defect 30: when every stream was idle the frontier stayed for ever."""
    seen = advance(Frontier(), {"a": 100, "b": 40}, steady=1000, looked=990, delay=10, idle=50)
    values = []
    for steady in (1030, 1060, 1090, 1120):
        seen = advance(seen, {}, steady=steady, looked=steady - 5, delay=10, idle=50)
        values.append(seen.value)
    # The last tuple came at 1000; the silence was 55 when the second epoch was offered nothing.
    assert values == [30, 30, 100 + 55 - 10, 100 + 85 - 10]


def test_without_idle_silence_means_nothing():
    seen = advance(Frontier(), {"a": 100}, steady=0)
    for steady in (1000, 2000):
        seen = advance(seen, {}, steady=steady, looked=steady - 5)
    assert seen.value == 100


def test_nothing_seen_is_no_promise():
    assert advance(Frontier(), {}).value is None
    assert advance(Frontier(), {}, steady=900, looked=800, idle=5).value is None


def test_steady_time_goes_on_after_a_restart_and_never_back():
    """Defect 22: time without a driver and steps of a clock do not count."""
    readings = iter([100.0, 100.5, 90.0, 90.25])
    steady = SteadyTime(longest=10_000_000, clock=lambda: next(readings))
    steady.resume(7_000_000)
    assert [steady.read() for _ in range(3)] == [7_500_000, 7_500_000, 7_750_000]


def promise(frontier, promised=None, seen=(), least=None, waiting=(), **more):
    given = {"steady": 0, "looked": 0, "delay": 0, "idle": None, **more}
    return frontier.advance(dict(seen), **given, promised=promised, least=least, waiting=waiting)


def test_a_promise_closes_what_a_quiet_stream_holds_open():
    #   a ──100──────────▶
    #   b ──40──promise 95▶
    first = advance(Frontier(), {"a": 100, "b": 40}, delay=10)
    assert promise(first, {"b": 95}, delay=10).value == 90
    assert promise(first, {"b": 60}, delay=10).value == 60


def test_a_stream_without_tuples_counts_with_its_promise():
    assert promise(Frontier(), {"b": 60}, {"a": 100}).value == 60
    held = promise(Frontier(), {}, {"a": 100}, waiting=["b"])
    assert (held.value, promise(held, {"b": 60}, waiting=["b"]).value) == (None, 60)


def test_a_promise_is_a_sign_of_life_once():
    #   steady      0    60   70   130
    #   a ──────── 100 ─200──300──400──▶
    #   b ────────p50── p50 ─p50 ─p50──▶   the same promise again and again: idle after 50
    seen = promise(Frontier(), {"b": 50}, {"a": 100}, idle=50)
    for steady, time in ((60, 200), (70, 300), (130, 400)):
        seen = promise(seen, {"b": 50}, {"a": time}, steady=steady, looked=steady - 5, idle=50)
    assert seen.value == 400
    assert promise(seen, {"b": 450}, {"a": 500}, steady=140, looked=135, idle=50).value == 450


def test_a_promise_of_the_whole_source_counts_for_every_stream():
    first = advance(Frontier(), {"": 40}, delay=10)
    assert promise(first, least=95, delay=10).value == 95
    assert promise(first, least=5, delay=10).value == 30
    assert promise(Frontier(), least=7).value == 7


def test_a_promise_without_end_stays_within_64_bits():
    ended = promise(Frontier(), {"a": 2**63 - 1, "b": 2**63 - 1}, least=2**63 - 1)
    assert ended.value == 2**62


def test_an_epoch_that_is_run_again_knows_the_same_promises():
    before = promise(Frontier(), {"b": 50}, {"a": 100})
    restored = Frontier(**json.loads(json.dumps(asdict(before))))
    assert restored == before
    assert promise(restored, {"b": 70}, {"a": 110}) == promise(before, {"b": 70}, {"a": 110})
