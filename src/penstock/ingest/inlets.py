"""The schema of each inlet: the first one pushed holds, and every later push must equal it."""

import threading

import pyarrow as pa

from penstock.errors import UnknownInlet, WrongSchema
from penstock.ingest.catalogue import Catalogue
from penstock.ingest.wire import inlet_of

__all__ = ["Inlets"]


class Inlets:
    """The schemas of a gate's inlets, durable with the first rows."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._lock = threading.Lock()

    def schema(self, inlet: str) -> pa.Schema:
        """The schema of an inlet."""
        known = self._catalogue.schemas
        if inlet not in known:
            raise UnknownInlet(
                f"no inlet {inlet!r} here; the inlets are: {', '.join(sorted(known)) or 'none yet'}"
            )
        return known[inlet]

    def check(self, stream: str, schema: pa.Schema) -> None:
        """Refuse a stream whose schema is not that of its inlet; the first stream of an inlet brings it."""
        inlet = inlet_of(stream)
        with self._lock:
            known = self._catalogue.schemas.get(inlet)
            if known is None:
                self._catalogue.add_schema(inlet, _storable(stream, schema))
            elif not known.equals(schema):
                raise WrongSchema(
                    f"stream {stream!r} has the schema ({_text(schema)}); its inlet {inlet!r} has "
                    f"({_text(known)}): send that, or choose another inlet"
                )


def _storable(stream: str, schema: pa.Schema) -> pa.Schema:
    for field in schema:
        if _has_dictionary(field.type):
            raise WrongSchema(
                f"stream {stream!r}: column {field.name!r} is {field.type}; dictionaries are not "
                "stored: send the plain values"
            )
    return schema.remove_metadata()


def _has_dictionary(kind: pa.DataType) -> bool:
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return pa.types.is_dictionary(kind) or any(map(_has_dictionary, inner))


def _text(schema: pa.Schema) -> str:
    return ", ".join(f"{each.name} {each.type}{'' if each.nullable else ' not null'}" for each in schema)
