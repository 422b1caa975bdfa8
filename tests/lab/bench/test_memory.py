import subprocess
import sys
import time

from penstock_lab.bench.memory import Usage

HOLD_200_MB = "data = bytearray(200 * 2**20); print('held', flush=True); input()"
SPIN_HALF_A_SECOND = (
    "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\ninput()"
)


def test_the_memory_of_a_child_counts():
    with Usage(interval=0.02) as alone:
        time.sleep(0.1)
    with (
        Usage(interval=0.02) as usage,
        subprocess.Popen(
            [sys.executable, "-c", HOLD_200_MB], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child,
    ):
        child.stdout.readline()
        while usage.peak_mb - alone.peak_mb < 190:
            time.sleep(0.02)
        child.communicate(b"\n")
    assert usage.peak_mb - alone.peak_mb < 300


def test_the_processor_time_of_a_child_that_ended_counts():
    with (
        Usage(interval=0.02) as usage,
        subprocess.Popen([sys.executable, "-c", SPIN_HALF_A_SECOND], stdin=subprocess.PIPE) as child,
    ):
        while usage.cpu_s < 0.5:
            time.sleep(0.02)
        child.communicate(b"\n")
    assert usage.cpu_s >= 0.5


def test_processor_time_of_before_the_block_does_not_count():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    with Usage() as usage:
        time.sleep(0.01)
    assert usage.cpu_s < 0.4
