"""Spark's `xxhash64` of Arrow columns: bit for bit what the native expression gives, vectorised in numpy.

So the channel of state can be computed without a stored hash. Several columns chain: the hash of one is the
seed of the next, and a null leaves the seed as it is; so do the fields of a struct and the elements of an
array. Numbers cost about 20 ns a row; texts are hashed in groups of equal length, a few array operations for
each eight bytes of a group. Maps, which Spark does not hash, are hashed as arrays of pairs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.router import Hashes

__all__ = ["SEED", "spark_hash"]

SEED = 42
"""The seed that Spark's function starts from."""

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_LONG_DIGITS = 18  # of decimals that Spark keeps in a long
_CHUNK = 1 << 16  # rows at a time, so that intermediate arrays stay in the cache

_Words = NDArray[np.uint64]


def spark_hash(columns: Sequence[Any], rows: int) -> Hashes:
    """The hash of each of `rows` rows over these Arrow columns (arrays or chunked ones), in their order.

    >>> [int(each) for each in spark_hash([pa.array([1, None], pa.int64())], 2).view(np.int64)]
    [-7001672635703045582, 42]
    """
    hashes = np.full(rows, SEED, np.uint64)
    for column in columns:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(whole, pa.ChunkedArray):
            whole = pa.concat_arrays(whole.chunks)  # several chunks may remain where they are large
        for start in range(0, rows, _CHUNK):
            piece = slice(start, start + _CHUNK)
            _chain(whole[piece], hashes[piece])
    return hashes


def _chain(column: Any, hashes: Hashes) -> None:
    """Replace every hash by the one that takes in the column's value, where there is one."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return
    # A signalling NaN is a value like others.
    with np.errstate(over="ignore", invalid="ignore"):
        if column.null_count == 0:
            hashes[:] = _hashed(column, hashes)
            return
        known = np.asarray(column.is_valid())
        hashes[known] = _hashed(column.drop_null(), hashes[known])


def _hashed(column: Any, seeds: _Words) -> _Words:
    kind = column.type
    if pa.types.is_struct(kind):
        return _fields(column, seeds)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _elements(column, seeds)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _texts(column, seeds, np.int32)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _texts(column, seeds, np.int64)
    if pa.types.is_decimal128(kind):
        return _decimals(column, seeds)
    for matches, words in _NUMBERS:
        if matches(kind):
            values, hashed = words(column)
            return hashed(values, seeds)
    raise BadRouting(f"a key of type {kind} has no hash; give keys of atomic types, such as string or bigint")


def _fields(column: Any, seeds: _Words) -> _Words:
    """Each field after the other."""
    hashes = seeds.copy()
    for field in column.flatten():
        _chain(field, hashes)
    return hashes


def _elements(column: Any, seeds: _Words) -> _Words:
    """Each element after the other: of all rows the first ones, then the second ones, and so on."""
    values = column.values
    if pa.types.is_map(column.type):
        values = pa.StructArray.from_arrays([column.keys, column.items], ["key", "value"])
    bounds = np.asarray(column.offsets).astype(np.int64)
    starts, lengths = bounds[:-1], np.diff(bounds)
    hashes = seeds.copy()
    for place in range(int(lengths.max()) if len(lengths) else 0):
        rows = np.flatnonzero(lengths > place)
        part = hashes[rows]
        _chain(values.take(pa.array(starts[rows] + place)), part)
        hashes[rows] = part
    return hashes


def _numpy(column: Any, type_: Any) -> NDArray[Any]:
    """The values of a column without nulls, in a type of the same width."""
    return np.asarray(column.view(type_).to_numpy(zero_copy_only=False))


def _integers(column: Any) -> tuple[_Words, "_Hash"]:
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if column.type.bit_width == 64:
        return values.astype(np.int64).view(np.uint64), _longs
    return values.astype(np.int32).view(np.uint32).astype(np.uint64), _ints


def _booleans(column: Any) -> tuple[_Words, "_Hash"]:
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.uint64), _ints


def _floats(column: Any) -> tuple[_Words, "_Hash"]:
    """The bits of numbers, with one zero and one NaN as in Java."""
    values = np.asarray(column.to_numpy(zero_copy_only=False)) + 0.0  # turns -0.0 into 0.0
    values[np.isnan(values)] = np.nan
    if column.type.bit_width == 64:
        return values.view(np.uint64), _longs
    return values.astype(np.float32).view(np.uint32).astype(np.uint64), _ints


def _days(column: Any) -> tuple[_Words, "_Hash"]:
    return _numpy(column.cast(pa.date32()), pa.int32()).view(np.uint32).astype(np.uint64), _ints


def _times(column: Any) -> tuple[_Words, "_Hash"]:
    """Microseconds, for any unit and zone."""
    unit = pa.duration("us") if pa.types.is_duration(column.type) else pa.timestamp("us", column.type.tz)
    return _numpy(column.cast(unit), pa.int64()).view(np.uint64), _longs


_Hash = Callable[[_Words, _Words], _Words]

_NUMBERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], tuple[_Words, _Hash]]], ...] = (
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, _floats),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_date, _days),
    (pa.types.is_timestamp, _times),
    (pa.types.is_duration, _times),
)


def _turned(words: _Words, bits: int) -> _Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _mixed(hashes: _Words) -> _Words:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def _ints(values: _Words, seeds: _Words) -> _Words:
    hashes = (seeds + _P5 + np.uint64(4)) ^ (values * _P1)
    return _mixed(_turned(hashes, 23) * _P2 + _P3)


def _longs(values: _Words, seeds: _Words) -> _Words:
    return _mixed(_word(seeds + _P5 + np.uint64(8), values))


def _word(hashes: _Words, words: _Words) -> _Words:
    """Eight more bytes."""
    return _turned(hashes ^ (_turned(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _texts(column: Any, seeds: _Words, offset: type[np.signedinteger[Any]]) -> _Words:
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, offset)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return _by_length(held, bounds[:-1], np.diff(bounds), seeds)


def _by_length(data: NDArray[np.uint8], starts: Any, lengths: Any, seeds: _Words) -> _Words:
    hashes = np.empty(len(seeds), np.uint64)
    order = np.argsort(lengths, kind="stable")
    ends = np.flatnonzero(np.diff(lengths[order], append=-1)) + 1
    begin = 0
    for end in ends.tolist():
        rows = order[begin:end]
        size = int(lengths[rows[0]])
        taken = data[starts[rows, None] + np.arange(size)]
        hashes[rows] = _bytes(taken, seeds[rows])
        begin = end
    return hashes


def _bytes(taken: NDArray[np.uint8], seeds: _Words) -> _Words:
    """The hash of rows of equally many bytes."""
    size = taken.shape[1]
    words = np.ascontiguousarray(taken[:, : size // 8 * 8]).view("<u8").astype(np.uint64, copy=False)
    at = size // 32 * 4
    hashes = (_lanes(words[:, :at], seeds) if at else seeds + _P5) + np.uint64(size)
    for place in range(at, words.shape[1]):
        hashes = _word(hashes, words[:, place])
    done = words.shape[1] * 8
    if size - done >= 4:
        half = np.ascontiguousarray(taken[:, done : done + 4]).view("<u4")[:, 0].astype(np.uint64)
        hashes = _turned(hashes ^ (half * _P1), 23) * _P2 + _P3
        done += 4
    for place in range(done, size):
        hashes = _turned(hashes ^ (taken[:, place].astype(np.uint64) * _P5), 11) * _P1
    return _mixed(hashes)


def _lanes(words: _Words, seeds: _Words) -> _Words:
    """The state after all whole blocks of 32 bytes: four lanes that each take every fourth word."""
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds, seeds - _P1]
    for place in range(words.shape[1]):
        lane = place % 4
        lanes[lane] = _turned(lanes[lane] + words[:, place] * _P2, 31) * _P1
    hashes = np.zeros(len(seeds), np.uint64)
    for words_of, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        hashes += _turned(words_of, bits)
    for words_of in lanes:
        hashes = (hashes ^ (_turned(words_of * _P2, 31) * _P1)) * _P1 + _P4
    return hashes


def _decimals(column: Any, seeds: _Words) -> _Words:
    """Up to 18 digits as a long, more as the shortest big-endian bytes that hold the number."""
    halves = np.frombuffer(column.buffers()[1], "<u8").reshape(-1, 2)
    halves = halves[column.offset : column.offset + len(column)]
    if column.type.precision <= _LONG_DIGITS:
        return _longs(halves[:, 0].astype(np.uint64), seeds)
    big = np.ascontiguousarray(halves[:, ::-1].astype(">u8")).view(np.uint8).reshape(-1, 16)
    sign = np.where(big[:, :1] >= 128, 255, 0).astype(np.uint8)
    # A leading byte is spare if it repeats the sign and the next one begins with it.
    spare = (big[:, :-1] == sign) & ((big[:, 1:] >= 128) == (sign == 255))
    skipped = np.cumprod(spare, axis=1).sum(axis=1)
    starts = np.arange(len(big)) * 16 + skipped
    return _by_length(big.reshape(-1), starts, 16 - skipped, seeds)
