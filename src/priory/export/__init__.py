"""Export of models: the HTML report and ONNX graphs."""
