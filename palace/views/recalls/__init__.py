"""The page of one recall and why it found what it did, and the owner's test cases."""
