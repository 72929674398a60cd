// What the kernels take from their machine: system-scope atomics, the block, a clock.
//
// Two sides. On a device: libcu++'s atomics at system scope, no fence, nothing volatile. On a host (the project's own
// tests, and its stand-in for a driver): a block is one thread, so its barrier is nothing and its steps are plain C.
#ifndef PINWHEEL_SEAM_H
#define PINWHEEL_SEAM_H

typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __CUDACC__

#include <cuda/atomic>
#include <cuda/ptx>

// A block of any kernel may have as many threads as a device allows.
#define KERNEL extern "C" __global__ void __launch_bounds__(1024)
#define ON_DEVICE static __device__ __forceinline__
#define SHARED __shared__

typedef cuda::atomic_ref<u64, cuda::thread_scope_system> SystemWord;
typedef cuda::atomic_ref<u64, cuda::thread_scope_block> BlockWord;

ON_DEVICE u64 load_acquire(u64 *word) { return SystemWord(*word).load(cuda::memory_order_acquire); }
ON_DEVICE u64 load_relaxed(u64 *word) { return SystemWord(*word).load(cuda::memory_order_relaxed); }
ON_DEVICE void store_release(u64 *word, u64 value) { SystemWord(*word).store(value, cuda::memory_order_release); }
ON_DEVICE void store_relaxed(u64 *word, u64 value) { SystemWord(*word).store(value, cuda::memory_order_relaxed); }
// Of one block, in device memory. The host's flags are loaded and stored only: few PCIe hosts have native atomics.
ON_DEVICE void flip(u64 *word, u64 bits) { BlockWord(*word).fetch_xor(bits, cuda::memory_order_relaxed); }
ON_DEVICE void add(u64 *word, u64 by) { BlockWord(*word).fetch_add(by, cuda::memory_order_relaxed); }
ON_DEVICE u32 ones(u64 bits) { return (u32)__popcll(bits); }
ON_DEVICE u32 lowest(u64 bits) { return (u32)__ffsll((long long)bits) - 1u; }
ON_DEVICE u64 device_ns(void) { return cuda::ptx::get_sreg_globaltimer(); }
ON_DEVICE void block_barrier(void) { __syncthreads(); }

#else

#include <time.h>

#define KERNEL static void
#define ON_DEVICE static inline
#define SHARED

struct Index { u32 x; };
static __thread struct Index blockIdx;
static const struct Index threadIdx = { 0 };
static const struct Index blockDim = { 1 };

ON_DEVICE u64 load_acquire(u64 *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
ON_DEVICE u64 load_relaxed(u64 *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
ON_DEVICE void store_release(u64 *word, u64 value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
ON_DEVICE void store_relaxed(u64 *word, u64 value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }
ON_DEVICE void flip(u64 *word, u64 bits) { *word ^= bits; }
ON_DEVICE void add(u64 *word, u64 by) { *word += by; }
ON_DEVICE u32 ones(u64 bits) { return (u32)__builtin_popcountll(bits); }
ON_DEVICE u32 lowest(u64 bits) { return (u32)__builtin_ctzll(bits); }
ON_DEVICE void block_barrier(void) {}
ON_DEVICE u64 device_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000ull + (u64)now.tv_nsec;
}

#endif
#endif
