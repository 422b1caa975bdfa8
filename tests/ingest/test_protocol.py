import dataclasses
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadMessage
from penstock.ingest.wire import protocol
from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.protocol import (
    DIRECTORY_REQUESTS,
    GATE_REQUESTS,
    InletSchema,
    OpenPush,
    Push,
    Request,
    decode_answers,
    decode_ticket,
    encode_answers,
)

MESSAGES = [
    each
    for each in vars(protocol).values()
    if isinstance(each, type) and dataclasses.is_dataclass(each) and issubclass(each, Message)
]
ANSWERS = [protocol.Acknowledged, protocol.Wait, protocol.Refusal, protocol.Redirect]
TICKETS = [protocol.IndexTicket, protocol.ReadTicket]

SAFE = st.characters(min_codepoint=33, max_codepoint=0x2FF, categories=("L", "N", "P"))
TEXT = st.text(SAFE, min_size=1, max_size=12)
STREAM = st.builds("{}/{}".format, TEXT.filter(lambda each: not each.startswith("/")), TEXT)
SEQUENCE = st.integers(0, 2**62 - 1)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
OBJECT = st.dictionaries(TEXT, SCALARS | st.lists(SCALARS, max_size=2), max_size=3)
JSON = st.recursive(
    SCALARS | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
BY_CHECK = {
    "as_stream": STREAM,
    "as_reader": TEXT,
    "as_readers": st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    "as_text": TEXT,
    "as_flag": st.booleans(),
    "as_whole": st.integers(-(2**63) + 1, 2**63 - 1),
    "as_count": st.integers(0, 2**63 - 1),
    "as_sequence": SEQUENCE,
    "as_seconds": st.floats(0, 1e9),
    "as_rates": st.lists(st.floats(0, 1e9), max_size=3).map(tuple),
    "as_object": OBJECT,
    "as_streams": st.lists(STREAM, max_size=3).map(tuple),
    "as_texts": st.lists(TEXT, max_size=3).map(tuple),
    "as_objects": st.lists(OBJECT, max_size=2).map(tuple),
    "as_sequences": st.dictionaries(STREAM, SEQUENCE, max_size=3),
    "as_gates": st.dictionaries(STREAM, TEXT, max_size=3),
    "as_ranges": st.lists(
        st.tuples(STREAM, st.integers(0, 2**61), st.integers(0, 2**61)).map(
            lambda each: (each[0], each[1], each[1] + each[2])
        ),
        max_size=3,
    ).map(tuple),
    "as_runs": st.lists(st.tuples(STREAM, SEQUENCE, st.integers(0, 2**40)), max_size=3).map(tuple),
    "as_metadata": st.dictionaries(STREAM, st.none() | OBJECT, max_size=3),
    "<lambda>": st.none() | TEXT,
}


def drawn(kind):
    if kind is OpenPush:
        return st.just(OpenPush.current())
    parts = {}
    for each in dataclasses.fields(kind):
        if each.name == "op":
            continue
        value = BY_CHECK[each.metadata["check"].__name__]
        parts[each.name] = value if each.default is dataclasses.MISSING else st.just(each.default) | value
    return st.builds(kind, **parts)


def decoded(kind, body):
    if kind in ANSWERS:
        (answer,) = decode_answers(body)
        return answer
    return decode_ticket(body) if kind in TICKETS else kind.decode(body)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_is_read_as_it_was_written(kind):
    @settings(max_examples=30)
    @given(drawn(kind))
    def check(message):
        body = message.encode()
        assert decoded(kind, body) == message
        assert json.loads(body) == json.loads(decoded(kind, body).encode())

    check()


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_what_is_not_a_message_is_refused_in_words(kind):
    names = [each.name for each in dataclasses.fields(kind)]

    @settings(max_examples=30)
    @given(
        st.binary(max_size=40)
        | JSON.map(json.dumps).map(str.encode)
        | st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON)).map(json.dumps).map(str.encode)
    )
    def check(body):
        refused = ""
        try:
            assert isinstance(decoded(kind, body), Message)
        except BadMessage as error:
            refused = str(error)
        assert len(refused) < 400

    check()


@given(st.lists(st.one_of(*map(drawn, ANSWERS)), min_size=1, max_size=4))
def test_several_answers_go_as_one_message(answers):
    assert decode_answers(encode_answers(answers)) == answers


def test_fields_of_a_later_version_are_passed_over():
    assert Push.decode(b'{"stream": "r/a", "sequence": 3, "epoch": 9}') == Push("r/a", 3)


def test_every_request_is_in_a_table_and_says_what_it_is_about():
    requests = {each for each in MESSAGES if issubclass(each, Request)}
    assert requests == {*GATE_REQUESTS.values(), *DIRECTORY_REQUESTS.values()}
    for each in requests:
        assert issubclass(each.reply, Message)
        assert len(each.about()) > 20


def test_a_schema_travels_as_arrow_writes_it():
    schema = pa.schema([("time", pa.timestamp("us")), ("n", pa.list_(pa.int64()))])
    assert InletSchema.decode(InletSchema.of("reports", schema).encode()).arrow() == schema
    with pytest.raises(BadMessage, match="cannot be read"):
        InletSchema("reports", "AAAA").arrow()
