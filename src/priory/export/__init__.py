"""Models for other places: the HTML report and ONNX graphs."""
