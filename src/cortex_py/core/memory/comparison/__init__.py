"""Comparison of statements: what they say, in what they differ, and whether two say the same or conflict."""
