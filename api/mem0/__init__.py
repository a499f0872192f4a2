"""mem0's API, so that its client works with Loci.

Its requests have `Token` in `Authorization`, ours have `Bearer`; this decides which view answers at
addresses that both use.
"""
