"""The memory of one person: drawers, facts, recall, and the pages that show them."""
