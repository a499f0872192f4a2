"""Filing: stores a conversation's messages in drawers, byte for byte."""
