"""The tools for saved prompts and templates."""
