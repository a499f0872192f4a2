"""What lasts for minutes or a day, what was shown already, and what conversations came to."""
