// The kernels as plain C, for a test that compares them with the CPU predecoder bit for bit.
//
//   cc -O2 -shared -fPIC -I engine/kernels -o DIR/kernels.so engine/tests/fake-driver/host.c
#include "predecoder.cu"

// One launch of a graph for `blocks` workers from `first` on.
void pinwheel_host_graph(const struct Silo *silo, u32 first, u32 blocks)
{
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) pinwheel_shot(*silo, first);
    // For the check alone, and named here because nothing else does in this file.
    (void)pinwheel_litmus_out, (void)pinwheel_litmus_in, (void)pinwheel_stall, (void)pinwheel_poke;
}
