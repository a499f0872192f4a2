"""Working memory, the ledger, and episodes."""
