"""Used by several pages: lists in pages, values in addresses, counts, snippets."""
