"""The rule of lateness on timelines drawn by hand."""

from graphs.accepted import judge
from graphs.examples import counted, graph, matched, rows, source
from graphs.graph import Node, Union


def times(judged, name="a"):
    return [row["time"] for row in judged.accepted[name]]


def test_a_window_takes_what_one_of_its_open_windows_holds():
    #  epoch 0   0 ── 4 ────────────── 11     delay 2: frontier 9, [0, 8) is closed, [4, 12) is open
    #  epoch 1      3 late, 7 and 8 taken
    nodes = [source("a", delay=2)]
    nodes.append(counted(nodes, 0, 8, 4))
    judged = judge(
        graph(
            nodes,
            a=[
                rows((0, "x", 1), (4, "x", 1), (11, "x", 1)),
                rows((3, "x", 1), (7, "x", 1), (8, "x", 1)),
            ],
        )
    )
    assert times(judged) == [0, 4, 11, 7, 8]
    assert judged.late == 1


def test_a_join_takes_what_the_frontier_of_that_side_has_not_passed():
    nodes = [source("a"), source("b")]
    nodes.append(matched(nodes, 0, 1, within=5))
    first, second = rows((10, "x", 1)), rows((9, "x", 1), (10, "x", 2))
    judged = judge(graph(nodes, a=[first, second], b=[[], rows((1, "x", 1))]))
    assert times(judged) == [10, 10]
    assert times(judged, "b") == [1]


def test_what_is_late_for_one_operator_is_taken_by_none():
    #  frontier 10: the window [8, 16) is open and would take 9, the join has passed it
    nodes = [source("a"), source("b")]
    nodes += [counted(nodes, 0, 8, 8), matched(nodes, 0, 1, within=5)]
    judged = judge(graph(nodes, a=[rows((10, "x", 1)), rows((9, "x", 1))], b=[[], []]))
    assert times(judged) == [10]


def test_a_union_promises_the_least_of_its_feeds_and_nothing_before_each_has_come():
    nodes = [source("a"), source("b")]
    nodes.append(Node(Union(), (0, 1), nodes[0].columns, "time"))
    nodes.append(counted(nodes, 2, 4, 4))
    a = [rows((20, "x", 1)), rows((1, "x", 1)), rows((7, "x", 1), (8, "x", 1))]
    judged = judge(graph(nodes, a=a, b=[[], rows((9, "x", 1)), []]))
    assert times(judged) == [20, 1, 8]


def test_tuples_without_a_time_are_rejected_and_move_nothing():
    nodes = [source("a")]
    nodes.append(counted(nodes, 0, 4, 4))
    judged = judge(graph(nodes, a=[rows((None, "x", 1)), rows((0, "x", 1))]))
    assert (times(judged), judged.late, judged.rejected) == ([0], 0, 1)


def test_stages_promise_in_a_row():
    #  window of 4: frontier 9 closes [4, 8), promises 8; a join within 3 after it promises 5
    nodes = [source("a"), source("b")]
    nodes.append(counted(nodes, 0, 4, 4))
    nodes.append(matched(nodes, 2, 2, within=3))
    nodes.append(counted(nodes, 3, 1, 1))
    from graphs.accepted import port

    assert port(graph(nodes, a=[], b=[]), 3, {0: 9, 1: None}) == 5
