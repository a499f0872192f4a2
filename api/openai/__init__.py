"""The proxy: OpenAI's chat protocol, passed on to the owner's model, with the palace's memory."""
