"""Observations in, decisions out: the policies that adapt a running system, without clock and without I/O."""
