"""Knowledge derived from messages: facts, episodes, and dreams that tidy up facts."""
