"""A city's traffic, live: a synthetic feed, the traffic query over it, a view and a chart."""
