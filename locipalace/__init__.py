"""Loci, a memory palace for AI chat.

`locipalace.client` asks a server over HTTP; `locipalace.sdk` keeps a palace in this process; the
command `locipalace` starts Loci and works with its memories.
"""

__version__ = "0.7.0"
