import os
import threading

import pyarrow as pa

from penstock.expressions.duck import cursor, evaluate


def test_cursors_of_one_process_share_a_database_but_no_names():
    first, second = cursor(), cursor()
    first.register("rows", pa.table({"x": [1]}))
    second.register("rows", pa.table({"x": [2]}))
    assert first.execute("SELECT x FROM rows").fetchone() == (1,)
    assert second.execute("SELECT x FROM rows").fetchone() == (2,)


def test_threads_and_children_have_their_own():
    found = []
    thread = threading.Thread(target=lambda: found.append(cursor().execute("SELECT 1").fetchone()))
    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        os._exit(0 if cursor().execute("SELECT 2").fetchone() == (2,) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert found == [(1,)]


def test_what_a_coalesce_does_not_reach_is_not_evaluated_where_several_share_it():
    table = pa.table([pa.array([127], pa.int8()), pa.array([5], pa.int8())], names=["a", "b"])
    found = evaluate("SELECT coalesce(b, a + a) AS v, coalesce(b + b, a + a) AS w FROM input", table)
    assert found.to_pylist() == [{"v": 5, "w": 10}]
