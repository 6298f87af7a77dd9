"""Who may call a shared server, and what was called: tokens, signed tokens of an issuer, and the audit log."""
