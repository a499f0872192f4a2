"""Facts: what is true, since when, and by which words. `remember` is the way in."""
