"""English: dates, intent, names, titles and facts. Another language is a folder beside this one."""
