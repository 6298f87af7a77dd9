"""The first minute: where you stand, the tour, and completion in your shell."""
