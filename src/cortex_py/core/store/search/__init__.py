"""Candidates for a query: filters and scopes, word and vector retrieval in the process or in the engine."""
