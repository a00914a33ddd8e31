"""ONNX Runtime on the CPU provider: plain `run`, with its fused attention op, or with inputs and outputs bound
in advance."""

import os

import onnxruntime as ort

from .. import onnx_models


class Engine:
    def __init__(self, mode):
        self.versions = {"onnxruntime": ort.__version__}
        self.mode, self.sessions = mode, {}

    def build(self, program):
        mha = self.mode == "mha"
        makers = {
            "tiny": lambda: onnx_models.add_relu_sum(("P", "Q")),
            "add_relu_sum": onnx_models.add_relu_sum,
            "relu_sum": onnx_models.relu_sum,
            "chain": onnx_models.chain,
            "encoder": lambda: onnx_models.encoder(fused_attention=mha),
            "minilm": lambda: onnx_models.minilm(fused_attention=mha),
        }
        options = ort.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.sessions[program] = ort.InferenceSession(makers[program](), options, providers=["CPUExecutionProvider"])

    def bind(self, program, arrays):
        session = self.sessions[program]
        feed = {i.name: a for i, a in zip(session.get_inputs(), arrays)}
        if self.mode != "iobinding":
            return session.run, (None, feed)
        binding = session.io_binding()
        for name, array in feed.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
        self.output = ort.OrtValue.ortvalue_from_numpy(session.run(None, feed)[0])
        binding.bind_ortvalue_output(session.get_outputs()[0].name, self.output)
        return session.run_with_iobinding, (binding,)

    def to_numpy(self, result):
        return self.output.numpy() if self.mode == "iobinding" else result[0]
