"""What a language model is asked about messages, and how its answers are checked."""
