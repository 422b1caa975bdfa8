"""Who may do what: certificates and tokens of clients, and how servers check them."""

from penstock.ingest.security.access import TLS, Access
from penstock.ingest.security.tokens import Rights, Security, TokenFile, hash_of, new_token

__all__ = ["TLS", "Access", "Rights", "Security", "TokenFile", "hash_of", "new_token"]
