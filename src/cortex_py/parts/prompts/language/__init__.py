"""The language of prompts and templates: placeholders, expressions, blocks, filters and rendering. Pure."""
