"""Compare other memory libraries on the same questions. Loci does not need them.

Kept free of imports: the adapters run as parts of this package in environments of their own.
"""
