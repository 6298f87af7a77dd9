"""Bridges: memories as other programs expect to find and change them."""
