"""The memory tools: capture, recall, and the life of a memory."""
