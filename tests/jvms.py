"""JVMs for short runs, where starting takes longer than running."""

import os


def lean() -> None:
    """Let the drivers that this process and its children start take little processor time.

    One thread that collects garbage, no optimising compilation, no search for errors in Spark's bytecode. A
    run of three epochs took 24 s of processor time instead of 31, measured once on a busy machine.
    """
    os.environ["SPARK_SUBMIT_OPTS"] = (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    )
