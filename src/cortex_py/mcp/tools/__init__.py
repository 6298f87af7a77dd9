"""The tools, one module per part of a family."""
