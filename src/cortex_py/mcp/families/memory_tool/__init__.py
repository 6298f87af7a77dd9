"""The memory tool of Claude's API as one tool, for models that know it. It is served only if it is asked for."""
