"""Used by several pages: lists in pages, values in addresses, counts, and tags of templates."""
