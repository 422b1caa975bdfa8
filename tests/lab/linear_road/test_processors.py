"""The functions of Linear Road over blocks: what they remember, and that cuts change nothing."""

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.expressions.schema import schema_of
from penstock_lab.linear_road.accidents import accident
from penstock_lab.linear_road.accounts import BALANCE_STATE, EXPENDITURE_STATE, Balances, Expenditures
from penstock_lab.linear_road.tolls import SEGMENT_STATE, Segments
from penstock_lab.linear_road.traffic import START_US, Traffic
from penstock_lab.linear_road.vehicles import VEHICLE_STATE, Vehicles

SECOND = 1_000_000
REPORTED = ["vid", "speed", "xway", "lane", "dir", "seg", "pos"]
STATES = {
    function: schema_of(columns).arrow()
    for function, columns in (
        (Vehicles, VEHICLE_STATE),
        (Segments, SEGMENT_STATE),
        (Balances, BALANCE_STATE),
        (Expenditures, EXPENDITURE_STATE),
    )
}
PLACE = ["xway", "dir", "seg", "lane", "pos"]
MOVED = ["time", "vid", *PLACE, "turn", "crosses", "goes_on", "cars", "speed"]
CHANGES = ["kind", "vid", "lane", "crosses", "goes_on", "cars", "speed", "ahead", "turn"]


def stepped(processor, table, keys, cuts=()):
    """The results of a processor over rows in the order of time, in blocks that end at the given rows."""
    states, found = {}, []
    for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        part = table.slice(begin, end - begin)
        if not part.num_rows:
            continue
        of = list(zip(*(part[name].to_pylist() for name in keys), strict=True))
        known = {key: number for number, key in enumerate(dict.fromkeys(of))}
        groups = np.array([known[key] for key in of])
        order = np.argsort(groups, kind="stable")
        rows = part.take(pa.array(order))
        kept = [states.get(key) for key in known]
        block = ps.Block(
            rows=rows.drop_columns(keys),
            groups=groups[order],
            times=rows["time"].cast(pa.int64()).to_numpy(),
            fired=np.zeros(len(order), bool),
            keys=pa.table(dict(zip(keys, map(list, zip(*known, strict=True)), strict=True))),
            state=pa.Table.from_pylist([each or {} for each in kept], STATES[type(processor)]),
            known=np.array([each is not None for each in kept]),
        )
        outcome = processor.step(block)
        keep = np.ones(len(known), bool) if outcome.keep is None else outcome.keep
        for key, state, kept_on in zip(known, outcome.state.to_pylist(), keep, strict=True):
            states[key] = state
            if not kept_on:
                del states[key]
        of_results = rows.select(["time", *keys]).take(pa.array(outcome.at))
        for name in outcome.results.column_names:
            of_results = of_results.append_column(f"result_{name}", outcome.results[name])
        found += [tuple(row.values()) for row in of_results.to_pylist()]
    return found, states


def reports(*rows):
    """Reports of cars: second, car, speed, lane, position; on expressway 0, to the east."""
    second, vid, speed, lane, pos = (np.array(each) for each in zip(*rows, strict=True))
    return pa.table(
        {
            "time": pa.array(START_US + second * SECOND).cast(pa.timestamp("us", tz="UTC")),
            "vid": vid,
            "speed": speed,
            "xway": np.zeros(len(vid), np.int64),
            "lane": lane,
            "dir": np.zeros(len(vid), np.int64),
            "seg": pos // 5280,
            "pos": pos,
        }
    )


def moves(*rows):
    found, _ = stepped(Vehicles(), reports(*rows), ["vid"])
    return [dict(zip(MOVED, row, strict=True)) for row in found]


def test_a_car_crosses_with_its_first_report_and_where_the_segment_changes():
    found = moves((0, 1, 60, 0, 100), (30, 1, 60, 1, 2740), (60, 1, 60, 1, 5380))
    assert [each["crosses"] for each in found] == [True, False, True]
    assert [each["goes_on"] for each in found] == [False, True, True]


def test_after_an_exit_or_a_pause_a_car_is_on_another_trip():
    found = moves((0, 1, 60, 4, 100), (30, 1, 60, 0, 100), (90, 1, 60, 1, 100))
    assert [each["crosses"] for each in found] == [True, True, True]
    assert not any(each["goes_on"] for each in found)


def test_a_second_report_of_a_minute_changes_the_mean_of_its_car():
    found = moves((0, 1, 60, 1, 100), (30, 1, 50, 1, 2740), (60, 1, 40, 1, 5000))
    assert [(each["cars"], each["speed"]) for each in found] == [(1, 60.0), (0, -5.0), (1, 40.0)]


def test_a_car_stands_from_its_fourth_report_until_it_moves():
    found = moves(*((30 * number, 1, 0, 2, 700) for number in range(6)), (180, 1, 20, 2, 1580))
    turns = [(each["time"].second + 60 * each["time"].minute, each["turn"], each["pos"]) for each in found]
    assert [each for each in turns if each[1]] == [(90, 1, 700), (180, -1, 700)]


@pytest.fixture(scope="module")
def driven():
    table = Traffic(seconds=420, begin=5400, most=40, accidents=500, seed=3).reports
    return table.filter(pa.compute.equal(table["type"], 0)).select(["time", *REPORTED])


@pytest.mark.parametrize("seed", range(2))
def test_cuts_change_nothing(driven, seed):
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, driven.num_rows, 12)).tolist()
    whole, kept = stepped(Vehicles(), driven, ["vid"])
    in_parts, left = stepped(Vehicles(), driven, ["vid"], cuts)
    assert sorted(whole) == sorted(in_parts)
    assert kept == left
    assert any(row[7] for row in whole)

    changes = changed(whole)
    cuts = np.sort(rng.integers(0, changes.num_rows, 12)).tolist()
    whole, kept = stepped(Segments(), changes, ["xway", "dir", "seg"])
    in_parts, left = stepped(Segments(), changes, ["xway", "dir", "seg"], cuts)
    assert sorted(whole, key=str) == sorted(in_parts, key=str)
    assert kept == left


def changed(found):
    """Rows for segments from the moves of cars, with notices of accidents now and then."""
    driven = [row for row in found if row[7] >= 0]
    columns = list(zip(*sorted(driven), strict=True))
    table = dict(zip(MOVED, map(list, columns), strict=True))
    count = len(driven)
    notice = np.arange(count) % 50 == 0
    table["kind"] = np.where(notice, 0, 1)
    table["ahead"] = np.where(notice, np.arange(count) // 50 % 5, -1)
    table["turn"] = np.where(notice, np.where(np.arange(count) % 100 == 0, 1, -1), 0)
    table["crosses"] = np.array(table["crosses"]) & ~notice
    return pa.table(table).select(["time", "xway", "dir", "seg", *CHANGES])


def entries(*rows):
    """Second, car, qid, toll, whether the car goes on."""
    second, vid, qid, toll, goes_on = (list(each) for each in zip(*rows, strict=True))
    time = pa.array(START_US + np.array(second) * SECOND).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"time": time, "vid": vid, "qid": qid, "toll": toll, "goes_on": goes_on})


ACCOUNT = entries(
    (0, 1, -1, 100, False),
    (10, 1, 7, 0, False),  # told, and not yet charged
    (30, 1, -1, 20, True),
    (40, 1, 8, 0, False),
    (60, 2, -1, 50, False),
    (90, 1, -1, 5, False),  # another trip: nobody pays the 20
    (120, 1, -1, 0, True),
    (130, 1, 9, 0, False),
)


@pytest.mark.parametrize("cuts", [(), (1,), (2, 3), (1, 2, 3, 4, 5, 6, 7)])
def test_a_toll_is_charged_when_the_car_goes_on(cuts):
    found, _ = stepped(Balances(), ACCOUNT, ["vid"], cuts)
    assert [row[2:] for row in found] == [(7, 0), (8, 100), (9, 105)]


@pytest.mark.parametrize("cuts", [(), (1,), (2,)])
def test_an_expenditure_is_what_the_history_has(cuts):
    rows = entries((0, 1, -1, 30, False), (5, 1, 3, 0, False), (6, 2, 4, 0, False))
    found, states = stepped(Expenditures(), rows, ["vid"], cuts)
    assert [row[2:] for row in found] == [(3, 30), (4, 0)]
    assert states == {(1,): {"toll": 30}}


def visited(*turns):
    """What the function for accidents tells: (second, turn) of cars, and a timer where the turn is None."""
    state, told = None, []
    for second, turn in turns:
        time = pa.scalar(START_US + second * SECOND, pa.timestamp("us", tz="UTC")).as_py()
        row = None if turn is None else {"seg": 2, "turn": turn}
        visit = accident((0, 0, 1, 11_000), time, row, state)
        state = visit.state
        told.append(([(each["seg"], each["ahead"], each["turn"]) for each in visit.results], visit.timer))
    return told, state


def test_an_accident_is_told_to_five_segments_at_the_begin_of_the_next_minute():
    told, _ = visited((10, 1), (25, 1), (60, None))
    assert told[0] == ([], None)
    assert told[1][1].minute == 1
    assert told[2] == ([(2, 0, 1), (1, 1, 1), (0, 2, 1)], None)  # there is nothing before segment 0


def test_an_accident_that_is_cleared_is_told_off_and_forgotten():
    told, state = visited((10, 1), (25, 1), (60, None), (70, -1), (90, -1), (120, None))
    assert told[-1] == ([(2, 0, -1), (1, 1, -1), (0, 2, -1)], None)
    assert state is None


def test_an_accident_within_a_minute_is_never_told():
    told, state = visited((10, 1), (25, 1), (40, -1), (50, -1))
    assert all(not results for results, _ in told)
    assert told[-1][1] is None
    assert state is None
