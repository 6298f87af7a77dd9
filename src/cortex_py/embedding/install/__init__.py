"""Installation of the bundled model: download, checks, 8-bit quantisation, and writing the ONNX graph."""
