import os
import threading

import pyarrow as pa

from penstock.expressions.duck import cursor


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
