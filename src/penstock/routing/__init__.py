"""Where a tuple goes: pure algorithms on numpy arrays, without I/O, Spark or a clock."""
