"""Prompts: fact extraction prompts for language models, and validation of the answers."""
