"""The three example models, exported from Python with one example input each.

usage: python export.py [FOLDER]        needs torch, onnxruntime and pt2onnx
"""
import os
import sys

import torch
import torch.nn as nn

import pt2onnx

folder = sys.argv[1] if len(sys.argv) > 1 else "."


class DynamicLinear(nn.Module):
    def __init__(self):
        super(DynamicLinear, self).__init__()
        self.linear = nn.Linear(10, 5)

    def forward(self, x):
        return self.linear(x)


model = DynamicLinear()
dummy_input = torch.randn(3, 10)
pt2onnx.export(model, dummy_input, os.path.join(folder, "dynamic_linear.onnx"),
               input_names=['input'], output_names=['output'],
               dynamic_axes={'input': {0: 'batch_size'}, 'output': {0: 'batch_size'}})


class DynamicRNN(nn.Module):
    def __init__(self):
        super(DynamicRNN, self).__init__()
        self.rnn = nn.RNN(input_size=10, hidden_size=20, batch_first=True)
        self.fc = nn.Linear(20, 5)

    def forward(self, x):
        output, hidden = self.rnn(x)
        return self.fc(output[:, -1, :])


model = DynamicRNN()
dummy_input = torch.randn(3, 5, 10)
pt2onnx.export(model, dummy_input, os.path.join(folder, "dynamic_rnn.onnx"),
               input_names=['input'], output_names=['output'],
               dynamic_axes={'input': {0: 'batch_size', 1: 'sequence_length'}, 'output': {0: 'batch_size'}})


class DynamicReshape(nn.Module):
    def forward(self, x):
        batch_size = x.size(0)
        return x.view(batch_size, -1)


model = DynamicReshape()
dummy_input = torch.randn(3, 4, 5)
pt2onnx.export(model, dummy_input, os.path.join(folder, "dynamic_reshape.onnx"),
               input_names=['input'], output_names=['output'],
               dynamic_axes={'input': {0: 'batch_size'}, 'output': {0: 'batch_size'}})
