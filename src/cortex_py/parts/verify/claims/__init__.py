"""From a text to its claims: passages, what they mention, clauses with their verbs, and how sure they sound. Pure."""
