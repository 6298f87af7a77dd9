"""The embedding tools: vectors, the model, and the state of the service."""
