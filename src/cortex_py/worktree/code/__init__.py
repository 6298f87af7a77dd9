"""Source code: languages, syntax trees, definitions, imports, and the division of a text into parts."""
