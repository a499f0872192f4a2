"""The trash: moving there, restoring, deleting for good."""
