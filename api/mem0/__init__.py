"""mem0's own client against Loci: its addresses, its fields and its answers.

Its requests have the scheme `Token` in `Authorization`, ours have `Bearer`; that decides where both
use the same address.
"""
