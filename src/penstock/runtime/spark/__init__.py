"""Every contact with Spark's own classes: plans, exchanges, routes as expressions, tasks on workers."""
