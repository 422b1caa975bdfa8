"""Reading a source without a run."""

import pickle

import pyarrow as pa

from penstock.connect import SourceContext
from penstock.expressions.schema import Schema
from penstock.state.storage import Location


def opened(source, session, folder, schema, warn=print):
    schema = Schema.parse(schema)
    context = SourceContext(
        session=session, name="t", schema=schema, time="time", folder=Location.of(folder), warn=warn
    )
    return source.conform("t", schema).open(context)


def split_rows(reader, after, upto, columns, tasks=2):
    """The tuples of all splits, in their order, as workers get them."""
    splits = [pickle.loads(pickle.dumps(each)) for each in reader.splits(after, upto, tasks)]
    return pa.Table.from_batches(
        [batch.select(list(columns)) for split in splits for batch in split.read(columns)]
    )


def frame_rows(reader, session, after, upto):
    """The tuples of all DataFrames, as dicts."""
    return [row.asDict() for frame in reader.frames(session, after, upto) for row in frame.collect()]


def offsets(reader, after=None, most=100):
    """All offsets that a reader gives one after another."""
    found = []
    after = {} if after is None else after
    while len(found) < most and (ahead := reader.ahead(after)) is not None:
        found.append(ahead)
        after = ahead.offset
    return found
