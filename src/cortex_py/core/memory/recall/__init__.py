"""Recall: parse a filter, find candidates, match and rank them, and return a page of results."""
