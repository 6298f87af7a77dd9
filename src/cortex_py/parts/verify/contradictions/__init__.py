"""Claims that exclude each other: within one text, or a claim and a stored memory. Pure."""
