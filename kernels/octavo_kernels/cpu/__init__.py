"""The CPU backend: packed weights, kernels that read the paged cache in place, and a program replayed in one native call.

`src/` is C++ with a C interface, built with the wheel and loaded through ctypes; without it the same ops run on torch.
"""
