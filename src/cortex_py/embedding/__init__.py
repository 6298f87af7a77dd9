"""Embedding: text to vectors, on this machine, without torch.

Import the modules directly; this file stays empty of code so that nothing heavy is loaded by accident.
`backend` is the protocol the rest of Cortex knows, `onnx_backend` the one that ships, `model_files`
installs and describes the model.
"""

__all__: list[str] = []
