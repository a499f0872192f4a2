"""What happens to a message: it is filed, mined, read for facts, and summed up."""
