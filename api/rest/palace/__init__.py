"""The palace itself: its places and drawers, its trash, its record, its owner's choices."""
