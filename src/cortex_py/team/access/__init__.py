"""Callers of a shared server: API tokens, tokens of an OpenID Connect issuer, organisations, and the audit log."""
