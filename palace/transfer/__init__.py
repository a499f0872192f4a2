"""Import files of other programs, export and restore palaces."""
