"""Whether what is said is borne out by what is known."""
