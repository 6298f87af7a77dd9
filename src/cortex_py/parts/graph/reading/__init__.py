"""Extracts entities and relationships from text, without a language model: `extract` combines the other modules."""
