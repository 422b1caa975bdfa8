"""Session windows: the operator, its verbs, and what its channels do."""

from penstock.operators.sessions.node import Sessions
from penstock.operators.sessions.verbs import GroupedSessionVerbs, Sessioned, SessionVerbs

__all__ = ["GroupedSessionVerbs", "SessionVerbs", "Sessioned", "Sessions"]
