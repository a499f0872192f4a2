"""Other memory libraries, asked the same questions. Nothing of Loci needs them.

Kept free of imports: the adapters run as parts of this package in environments of their own.
"""
