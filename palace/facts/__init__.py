"""Facts: what is true, since when, and by which words. `palace.facts.remember` is the way in."""
