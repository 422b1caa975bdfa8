"""Gates and controllers as processes of their own, to be killed and started again."""

import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import suppress

COMMAND = "from penstock.cli import main; main()"


def free_port():
    """A port below those that any connection may get, so that nobody has it while a server starts again."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Served:
    """`penstock NAME` at a fixed port; what it holds survives `kill` and `start`."""

    def __init__(self, name, folder, *options):
        self.address = f"127.0.0.1:{free_port()}"
        self._command = [
            sys.executable,
            "-c",
            COMMAND,
            name,
            "--address",
            self.address,
            "--folder",
            str(folder),
        ]
        self._command += options
        self._process = None

    def __str__(self):
        return self.address

    def __enter__(self):
        return self if self._process is not None else self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.launch()
        return self.ready()

    def launch(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=os.environ, text=True)

    def ready(self):
        line = self._process.stdout.readline()
        assert self.address in line, line
        return self

    def kill(self, number=signal.SIGKILL):
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(120)
            self._process.stdout.close()
            self._process = None
