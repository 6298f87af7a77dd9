"""Embedding models behind one protocol: bundled ONNX, ONNX folders, sentence-transformers, MLX, OpenAI-compatible."""
