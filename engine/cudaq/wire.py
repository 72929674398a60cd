"""Runs a program of CUDA-Q unchanged, with its decoders at a port instead of in its process.

    PINWHEEL_CUDAQ_PORT=9000 python wire.py libwire.so PROGRAM [ARGUMENT ..]

The wheels of CUDA-Q have the compiler's pass for such calls and leave out the runtime behind it, which `wire.c`
replaces. In the wheels' kernels the three calls name functions of the process. Here they get the names and the
arguments that a decoding server knows, and go through the pass. At the end the number of calls is printed to standard
error.
"""

import ctypes
import runpy
import sys

import cudaq
import cudaq_qec
from cudaq.mlir.ir import Module
from cudaq.mlir.passmanager import PassManager

PASSES = "builtin.module(realtime-device-call,inline,canonicalize,cse)"
# Of each function, what stands in the wheels' kernel and what takes its place.
CALLS = {
    "reset_decoder": [
        ("@_ZN5cudaq3qec8decoding10simulation13reset_decoderEm", "@reset_decoder"),
    ],
    "enqueue_syndromes": [
        ("cc.device_call @simulation_enqueue_syndromes(%arg0, %0, %arg2) : (i64, !cc.sequence<i1>, i64)",
         "%mapping = arith.constant 0 : i64\n"
         "cc.device_call @enqueue_syndromes(%arg0, %arg2, %mapping, %0) : (i64, i64, i64, !cc.sequence<i1>)"),
        ("@simulation_enqueue_syndromes(i64, !cc.sequence<i1>, i64)",
         "@enqueue_syndromes(i64, i64, i64, !cc.sequence<i1>)"),
    ],
    "get_corrections": [
        ("@simulation_get_corrections", "@get_corrections"),
    ],
}
# The module that compiles kernels; `cudaq.kernel` is a function.
runtime = sys.modules["cudaq.kernel.kernel_decorator"].cudaq_runtime
in_process = runtime.checkRegisteredCppDeviceKernel


def by_wire(caller, name):
    found = in_process(caller, name)
    function = name.rpartition(".")[2]
    if found is None or function not in CALLS:
        return found
    kernel, code = found
    for before, after in CALLS[function]:
        if before not in code:
            sys.exit(f"wire.py: found another {function}; install cudaq-qec-cu12==0.8.1, whose kernels are expected")
        code = code.replace(before, after)
    module = Module.parse(code, context=caller.context)
    PassManager.parse(PASSES, context=caller.context).run(module.operation)
    return [kernel, str(module)]


def main(library, program, *arguments):
    wire = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    runtime.checkRegisteredCppDeviceKernel = by_wire
    sys.argv = [program, *arguments]
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        replied, lost = ctypes.c_uint64(), ctypes.c_uint64()
        wire.wire_counts(ctypes.byref(replied), ctypes.byref(lost))
        print(f"WIRE replied={replied.value} lost={lost.value}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
