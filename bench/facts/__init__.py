"""Labelled scenarios: which facts must be active at the end, and which retired."""
