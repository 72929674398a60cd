// What a round trip from the host through a GPU and back takes by several methods: the figures beside which
// `pinwheel gpu-check` stands. Each round hands over 19 words, as a shot of 1,200 detectors, and takes 19 words back.
//
// Runs on one core, the last one allowed, twice over all methods. Prints p50, p99 and p99.9 in microseconds, without
// the first tenth of the rounds. Bounds: ROUNDS rounds a method.
//
//   nvcc -O3 -std=c++17 -arch=native -o round_trips engine/kernels/round_trips.cu && ./round_trips
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <cuda_runtime.h>
#include <sched.h>
#include <time.h>
#include <vector>

typedef unsigned long long u64;

const int WORDS = 19;
const int THREADS = 128;
const int ROUNDS = 20000;
const u64 STOP = ~0ull;

// Memory of the host that the device maps. The words that publish others lie in lines of their own.
struct Mapped {
    alignas(64) u64 doorbell;
    alignas(64) u64 in[WORDS];
    alignas(64) u64 out[WORDS];
    alignas(64) u64 ready;
};

#define MUST(call) must((call), #call)
static void must(cudaError_t code, const char *call)
{
    if (code == cudaSuccess) return;
    fprintf(stderr, "round_trips: %s: %s\n", call, cudaGetErrorString(code));
    exit(1);
}

__device__ u64 load(u64 *word)
{
    return cuda::atomic_ref<u64, cuda::thread_scope_system>(*word).load(cuda::memory_order_acquire);
}
__device__ void store(u64 *word, u64 value)
{
    cuda::atomic_ref<u64, cuda::thread_scope_system>(*word).store(value, cuda::memory_order_release);
}

// One kernel: words in, words out, ready.
__global__ void whole(Mapped *host)
{
    if (threadIdx.x < WORDS) host->out[threadIdx.x] = ~host->in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) store(&host->ready, load(&host->doorbell));
}

// The same in three, by way of device memory.
__global__ void input(Mapped *host, u64 *device)
{
    if (threadIdx.x < WORDS) device[threadIdx.x] = host->in[threadIdx.x];
    if (threadIdx.x == WORDS) device[WORDS] = load(&host->doorbell);
}
__global__ void middle(u64 *device)
{
    if (threadIdx.x < WORDS) device[threadIdx.x] = ~device[threadIdx.x];
}
__global__ void output(Mapped *host, u64 *device)
{
    if (threadIdx.x < WORDS) host->out[threadIdx.x] = device[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) store(&host->ready, device[WORDS]);
}

// A kernel that stays on the device and polls the doorbell until it shows STOP.
__global__ void resident(Mapped *host)
{
    __shared__ u64 doorbell;
    for (u64 last = 0;;) {
        if (threadIdx.x == 0)
            while ((doorbell = load(&host->doorbell)) == last) {}
        __syncthreads();
        last = doorbell;
        if (last == STOP) return;
        if (threadIdx.x < WORDS) host->out[threadIdx.x] = ~host->in[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) store(&host->ready, last);
    }
}

static Mapped *host, *mapped;
static cudaStream_t stream;
static u64 *device;
static u64 number;

static double now_us()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double quantile(const std::vector<double> &sorted, double share)
{
    return sorted[(size_t)(share * (double)(sorted.size() - 1))];
}

template <class Start, class Wait> static void measure(const char *name, Start start, Wait wait)
{
    std::vector<double> times;
    for (int round = 0; round < ROUNDS; round++) {
        double began = now_us();
        number++;
        for (int w = 0; w < WORDS; w++) host->in[w] = number * 31 + w;
        __atomic_store_n(&host->doorbell, number, __ATOMIC_RELEASE);
        start();
        wait();
        double ended = now_us();
        for (int w = 0; w < WORDS; w++)
            if (host->out[w] != ~(number * 31 + w)) {
                fprintf(stderr, "round_trips: %s: word %d of round %d is wrong\n", name, w, round);
                exit(1);
            }
        if (round >= ROUNDS / 10) times.push_back(ended - began);
    }
    std::sort(times.begin(), times.end());
    double p50 = quantile(times, 0.5), p99 = quantile(times, 0.99), p999 = quantile(times, 0.999);
    printf("%-34s p50 %6.2f  p99 %6.2f  p99.9 %6.2f us\n", name, p50, p99, p999);
    fflush(stdout);
}

template <class Launches> static cudaGraphExec_t captured(Launches launches)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launches();
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphUpload(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    return executable;
}

static void pin()
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    CPU_ZERO(&one);
    for (int core = CPU_SETSIZE - 1; core >= 0; core--)
        if (CPU_ISSET(core, &allowed)) {
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

int main()
{
    // Before pinning: the driver's threads inherit the cores.
    MUST(cudaFree(0));
    pin();
    MUST(cudaHostAlloc((void **)&host, sizeof *host, cudaHostAllocMapped));
    memset(host, 0, sizeof *host);
    MUST(cudaHostGetDevicePointer((void **)&mapped, host, 0));
    MUST(cudaMalloc(&device, 4 * WORDS * sizeof *device));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    u64 *copy = device + 2 * WORDS;

    auto copies = [&] {
        MUST(cudaMemcpyAsync(copy, host->in, WORDS * sizeof *copy, cudaMemcpyHostToDevice, stream));
        middle<<<1, THREADS, 0, stream>>>(copy);
        MUST(cudaMemcpyAsync(host->out, copy, WORDS * sizeof *copy, cudaMemcpyDeviceToHost, stream));
    };
    auto three = [&] {
        input<<<1, THREADS, 0, stream>>>(mapped, device);
        middle<<<1, THREADS, 0, stream>>>(device);
        output<<<1, THREADS, 0, stream>>>(mapped, device);
    };
    auto one = [&] { whole<<<1, THREADS, 0, stream>>>(mapped); };
    cudaGraphExec_t of_copies = captured(copies), of_three = captured(three), of_one = captured(one);
    auto launch = [&](cudaGraphExec_t graph) { return [=] { MUST(cudaGraphLaunch(graph, stream)); }; };
    auto synchronize = [] { MUST(cudaStreamSynchronize(stream)); };
    auto query = [] {
        cudaError_t code;
        while ((code = cudaStreamQuery(stream)) == cudaErrorNotReady) {}
        MUST(code);
    };
    auto word = [] { while (__atomic_load_n(&host->ready, __ATOMIC_ACQUIRE) != number) {} };

    for (int turn = 0; turn < 2; turn++) {
        measure("copies and kernel, synchronize", copies, synchronize);
        measure("copies and kernel, query", copies, query);
        measure("graph of copies, synchronize", launch(of_copies), synchronize);
        measure("three kernels, word", three, word);
        measure("graph of three kernels, word", launch(of_three), word);
        measure("one kernel, word", one, word);
        measure("graph of one kernel, word", launch(of_one), word);
        MUST(cudaStreamSynchronize(stream));
        resident<<<1, THREADS, 0, stream>>>(mapped);
        measure("resident kernel, word", [] {}, word);
        __atomic_store_n(&host->doorbell, STOP, __ATOMIC_RELEASE);
        MUST(cudaStreamSynchronize(stream));
    }
}
