"""Summaries of branches: sentences of the turns, the cues that classify them, and the text within a budget."""
