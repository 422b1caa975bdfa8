"""Rescaling: requests, frequent keys, split keys, and the state that moves in an epoch."""
