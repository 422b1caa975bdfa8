"""Spark SQL as users write it: types, schemas, durations, scalar expressions, conditions over pairs."""
