"""What is known of what was said: facts, episodes, and dreams that tidy them up."""
