"""The lab: measurements of Penstock, published experiments, a simulated cluster and synthetic streams."""
