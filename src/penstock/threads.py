"""Threads that serve others: an error that ends one is logged and told, never lost with the thread."""

import logging
import threading
from collections.abc import Callable

__all__ = ["service"]


def service(
    name: str,
    work: Callable[[], object],
    logger: logging.Logger,
    died: Callable[[Exception], object] | None = None,
) -> threading.Thread:
    """A thread, not yet started, that runs `work` and does not keep the process alive.

    An error that leaves `work` is logged with its trace. Then `died` is called with it: whoever waits for the
    thread is answered there, or the process is ended with a reason.
    """

    def run() -> None:
        try:
            work()
        except Exception as error:
            logger.critical("thread %s was ended by an error", name, exc_info=True)
            if died is not None:
                died(error)

    return threading.Thread(target=run, name=name, daemon=True)
