"""Text to vectors, on this machine by default, without torch.

`service` is the public service with guards, cache and batching. `backends` holds the models behind one protocol.
This file imports nothing, so that importing one module stays cheap.
"""

__all__: list[str] = []
