"""Dates and times in English text: phrases into periods."""
