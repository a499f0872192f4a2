"""English: dates, intent, names, titles, facts, judging. Another language is a folder beside it."""
