"""`cortex.suggestions`: the log of uses, candidates for a task, their ranking, and what answers to them teach."""
