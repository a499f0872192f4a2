"""The pages of people, places and things: the list, one of them, merge and split."""
