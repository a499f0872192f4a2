"""The REST API: one OpenAPI schema, problems as JSON, API keys."""
