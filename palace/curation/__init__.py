"""Curation: changes of a palace by its user, such as deleting, moving, renaming and merging."""
