"""Filing: a conversation's messages into drawers, to the byte, before anything is made of them."""
