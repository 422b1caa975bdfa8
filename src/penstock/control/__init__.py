"""Control: observations in, decisions with their reasons out; no clock, no I/O, no Spark."""
