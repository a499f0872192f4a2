"""A reader of facts that learns from statements. What it was worth: docs/adr/0024."""
