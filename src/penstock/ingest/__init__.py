"""How live streams enter over Arrow Flight and are read from there: the only room that knows Flight."""
