"""Working memory: short-lived data in Redis that expires by itself."""
