"""In and out: files of other programs, import jobs, export and restore."""
