"""HTTP on this machine: whether Cortex is well, and what it holds."""
