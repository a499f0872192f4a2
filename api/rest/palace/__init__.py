"""The palace API: places, drawers, trash, traces, activity, the owner's settings."""
