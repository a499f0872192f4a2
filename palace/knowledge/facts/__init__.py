"""Facts: what is true, since when, and by which words. `palace.knowledge.facts.remember` is the way in."""
