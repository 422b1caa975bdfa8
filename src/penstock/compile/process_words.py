"""A keyed stateful function in words: how it is called, in which order, its timers and its state."""

from penstock.keyed import Processor
from penstock.query import Process, words

__all__ = ["process_words"]


def process_words(process: Process) -> list[str]:
    """What the channels of a keyed stateful function do."""
    return [
        f"function: {_function(process)}",
        f"order: {_order(process)}",
        *_timers(process),
        _state(process),
    ]


def _function(process: Process) -> str:
    if isinstance(process.function, Processor):
        return f"{process.name} over Arrow, called with the rows of many keys at once"
    return f"{process.name}, one Python call for each row; a ps.Processor takes many at once"


def _order(process: Process) -> str:
    if process.order == "arrival":
        return "as rows arrive, sorted within an epoch; results depend on how epochs were cut"
    return "event time; a row waits in a segment until the frontier has passed it"


def _timers(process: Process) -> list[str]:
    if process.timeout is None:
        return ["timers: those that the function sets, fired when the frontier has passed them"]
    return [f"timers: a key without a row for {words(process.timeout)} of event time is told so"]


def _state(process: Process) -> str:
    columns = ", ".join(f"{each.name} {each.type}" for each in process.state.columns)
    return (
        f"state: {columns} of every key, in segments sorted by hash; an epoch writes the keys that it touches"
    )
