"""The traffic of a city, live: a synthetic feed, the traffic query, a live view and a chart."""
