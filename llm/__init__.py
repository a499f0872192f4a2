"""Models: chat and embedding calls, providers, costs, and what was sent."""
