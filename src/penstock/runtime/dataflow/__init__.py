"""What tasks do with rows, on Arrow and without Spark: the map side, the exchange, and the channels."""
