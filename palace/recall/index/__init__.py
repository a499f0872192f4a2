"""The palace in arrays, kept in memory between recalls, and what these are read from."""
