"""Gates: where streams enter, over Arrow Flight, durable before acknowledged."""

from penstock.ingest.gate import Gate
from penstock.ingest.limits import Limits
from penstock.ingest.metadata import Metadata
from penstock.ingest.security import Security

__all__ = ["Gate", "Limits", "Metadata", "Security"]
