"""The version of Cortex, in one place so that packaging and status agree."""

__version__ = "1.0.0"
