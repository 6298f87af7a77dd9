"""The kernel: records, the store, the model, the screen, capture and recall. It imports nothing above it."""
