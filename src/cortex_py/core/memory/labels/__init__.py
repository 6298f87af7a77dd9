"""Labels: the category and namespace of a note, its key phrases and tags, and its better form."""
