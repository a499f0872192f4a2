"""The proxy: forwards OpenAI chat requests to the owner's model, with the palace's memory."""
