"""Names of people, places and things in English text."""
