import os

from penstock_lab.reports.machine import this_machine


def test_the_machine_is_read_not_guessed():
    machine = this_machine()
    assert 1 <= machine.cores <= os.cpu_count()
    assert machine.cpu
    assert machine.memory > 100
    assert machine.spark.startswith("4.")
