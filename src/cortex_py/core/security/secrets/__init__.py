"""Secret detection: provider formats, names with values, context, and the scanner that combines them."""
