"""Working memory: what is needed for minutes or a day, in Redis, and goes by itself."""
