// A stand-in for libcuda.so.1: the driver calls that Pinwheel makes, on threads of the host.
//
// A stream is a thread, a graph a list of recorded kernels, and the kernels are the real source, compiled as C. It
// shows the order of calls, the protocol and every error path of an unmodified binary; nothing of orderings or speed.
// It checks what a driver would: the calling thread's context, non-blocking streams, flags 0, registered memory, no
// calls into a poisoned context.
//
//   cc -O2 -shared -fPIC -pthread -I engine/kernels -o DIR/libcuda.so.1 engine/tests/fake-driver/fake.c
//   LD_LIBRARY_PATH=DIR pinwheel run --device cuda …
//
// FAKE_DEVICES=N (0: none), FAKE_VERSION=13000, FAKE_CAPABILITY=90, FAKE_POOL=0 (MiB of device memory that the driver
// keeps, and allocates from first: free memory is less only beyond them), and FAKE_RULES, a list of
// CALL:CODE:FROM:COUNT[:KIND] parted by commas: from its FROM-th use on, COUNT uses (0: all) of CALL answer CODE. KIND
// sticky: the context answers it from then on and runs nothing more; where it is an error of a kernel, so do all
// contexts, and none is created any more. KIND fault: the graph is launched and its kernel fails with CODE: no graph of
// the process runs any more, and 150 ms later all contexts answer CODE, as on an H100. KIND delay: the graph is
// launched, and runs CODE milliseconds late.
// A build with -DWITHOUT_GRAPH_UPLOAD lacks a symbol, as an old library would.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "predecoder.cu"

typedef uint64_t Address;
enum { OK, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
       ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
       ILLEGAL_ADDRESS = 700, NOT_CAPTURED = 901 };

// Kernels, by their names and the sizes of their arguments.
typedef union { struct Silo silo; u64 word; u32 half; unsigned char bytes[sizeof(struct Silo)]; } Argument;
#define ARGUMENTS_MAX 4
typedef struct Context Context;
typedef struct { const char *name; int sizes[ARGUMENTS_MAX]; } Function;
static Function functions[] = {
    { "pinwheel_shot", { sizeof(struct Silo), 4 } }, { "pinwheel_litmus_out", { 8, 8, 8 } },
    { "pinwheel_litmus_in", { 8, 8, 8, 8 } },        { "pinwheel_stall", { 8, 8 } },
    { "pinwheel_poke", { 8, 8 } },
};
#define FUNCTIONS (sizeof functions / sizeof *functions)
typedef struct { Function *function; unsigned blocks; Argument arguments[ARGUMENTS_MAX]; } Step;
#define STEPS_MAX 8
typedef struct { int count; Step steps[STEPS_MAX]; } Graph;
typedef struct { Context *context; Graph graph; } Executable;
typedef struct { Context *context; u64 ns; int pending; } Event;
typedef struct Job { struct Job *next; Graph graph; Event *event; int delay_ms; } Job;
typedef struct Stream {
    struct Stream *next;
    Context *context;
    pthread_t thread;
    Job *first, *last;
    int is_busy, is_capturing;
    Graph captured;
} Stream;
typedef struct Memory { struct Memory *next; void *at; size_t bytes; } Memory;
struct Context { int poison, is_ending; Stream *streams; Memory *memory; };
typedef struct Registered { struct Registered *next; Address from, to; } Registered;

// One lock and one condition for everything.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static __thread Context *current;
static Registered *registered;
// Bytes of device memory in use, of all contexts.
static size_t used;
// The error of a kernel that the process keeps: no context works any more, and none is created.
static int kept;
// The error of a kernel that the driver has not noticed yet.
static int faulted;

static int is_of_a_kernel(int code)
{
    return code == 226 || code == 700 || code == 702 || (code >= 714 && code <= 719) || code == 721;
}
static void poison(Context *context, int code) { context->poison = code; if (is_of_a_kernel(code)) kept = code; }
static int lost(Context *context) { return kept ? kept : context->poison; }
static int setting(const char *name, int otherwise) { char *text = getenv(name); return text ? atoi(text) : otherwise; }

// Rules.
enum Kind { PLAIN, STICKY, DELAY, FAULT };
typedef struct { char call[48]; int code, from, count; enum Kind kind; int uses; } Rule;
#define RULES_MAX 8
static Rule rules[RULES_MAX];
static int rules_count;
__attribute__((constructor)) static void read_rules(void)
{
    char *text = getenv("FAKE_RULES");
    if (!text) return;
    char *copy = strdup(text), *rest = copy, *one;
    while ((one = strsep(&rest, ",")) && rules_count < RULES_MAX) {
        Rule *rule = &rules[rules_count++];
        char kind[16] = "";
        if (sscanf(one, "%47[^:]:%d:%d:%d:%15s", rule->call, &rule->code, &rule->from, &rule->count, kind) < 4) {
            fprintf(stderr, "fake driver: FAKE_RULES: cannot read '%s'\n", one);
            _exit(99);
        }
        static const char *const kinds[] = { [STICKY] = "sticky", [DELAY] = "delay", [FAULT] = "fault" };
        for (enum Kind known = STICKY; known <= FAULT; known++) if (!strcmp(kind, kinds[known])) rule->kind = known;
    }
    free(copy);
}
static void *notice(void *nothing)
{
    usleep(150000);
    pthread_mutex_lock(&lock);
    kept = faulted;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    return nothing;
}
// With the lock held.
static void fault(int code)
{
    pthread_t thread;
    if (faulted) return;
    faulted = code;
    if (!pthread_create(&thread, NULL, notice, NULL)) pthread_detach(thread);
}
// The code that `call` answers with, and by how much its graph is late.
static int refused(const char *call, int *delay_ms)
{
    int code = OK;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < rules_count; i++) {
        Rule *rule = &rules[i];
        if (strcmp(rule->call, call)) continue;
        int use = ++rule->uses;
        if (use < rule->from || (rule->count && use >= rule->from + rule->count)) continue;
        if (rule->kind == FAULT) { fault(rule->code); continue; }
        if (rule->kind == DELAY) { if (delay_ms) *delay_ms = rule->code; continue; }
        if (rule->kind == STICKY && current) poison(current, rule->code);
        code = rule->code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}
#define CALL(name) do { int code = refused(name, NULL); if (code) return code; } while (0)
#define IN_CONTEXT(name) \
    do { if (!current) return INVALID_CONTEXT; CALL(name); if (lost(current)) return lost(current); } while (0)

// Running.
static int is_known(Context *context, Address at)
{
    int known = 0;
    pthread_mutex_lock(&lock);
    for (Registered *one = registered; one; one = one->next) known |= one->from <= at && at < one->to;
    for (Memory *one = context->memory; one; one = one->next) known |= (Address)one->at == at;
    pthread_mutex_unlock(&lock);
    return known;
}
static void run_block(Context *context, Step *step)
{
    Argument *a = step->arguments;
    switch (step->function - functions) {
    case 0: pinwheel_shot(a[0].silo, a[1].half); break;
    case 1: pinwheel_litmus_out((struct Lane *)a[0].word, a[1].word, a[2].word); break;
    case 2: pinwheel_litmus_in((struct Lane *)a[0].word, a[1].word, (u64 *)a[2].word, (u64 *)a[3].word); break;
    case 3: pinwheel_stall((u64 *)a[0].word, a[1].word); break;
    case 4:
        if (is_known(context, a[0].word)) pinwheel_poke((u64 *)a[0].word, a[1].word);
        else poison(context, ILLEGAL_ADDRESS);
    }
}
static void *run(void *argument)
{
    Stream *stream = argument;
    Context *context = stream->context;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !context->is_ending) pthread_cond_wait(&change, &lock);
        Job *job = stream->first;
        if (!job) break;
        stream->first = job->next;
        if (!stream->first) stream->last = NULL;
        stream->is_busy = 1;
        while (faulted && !kept) pthread_cond_wait(&change, &lock);
        pthread_mutex_unlock(&lock);
        if (job->delay_ms) usleep(1000 * (unsigned)job->delay_ms);
        for (int i = 0; i < job->graph.count; i++)
            for (blockIdx.x = 0; blockIdx.x < job->graph.steps[i].blocks && !lost(context); blockIdx.x++)
                run_block(context, &job->graph.steps[i]);
        pthread_mutex_lock(&lock);
        if (job->event) { job->event->ns = device_ns(); job->event->pending--; }
        free(job);
        stream->is_busy = 0;
        pthread_cond_broadcast(&change);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}
static void put(Stream *stream, Job *job)
{
    pthread_mutex_lock(&lock);
    if (stream->last) stream->last->next = job; else stream->first = job;
    stream->last = job;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}
static int is_ours(Stream *stream) { return stream && stream->context == current; }

// Driver and devices.
int cuDriverGetVersion(int *version) {
    CALL("cuDriverGetVersion");
    *version = setting("FAKE_VERSION", 13000);
    return OK;
}
int cuInit(unsigned flags) {
    CALL("cuInit");
    if (flags) return INVALID_VALUE;
    return setting("FAKE_DEVICES", 1) ? OK : NO_DEVICE;
}
int cuDeviceGetCount(int *count) {
    CALL("cuDeviceGetCount");
    *count = setting("FAKE_DEVICES", 1);
    return *count ? OK : NO_DEVICE;
}
int cuDeviceGet(int *device, int index) {
    *device = index;
    return index < setting("FAKE_DEVICES", 1) ? OK : INVALID_DEVICE;
}
int cuDeviceGetName(char *name, int bytes, int device) {
    snprintf(name, (size_t)bytes, "Pinwheel fake %d", device);
    return OK;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)1 << 34; return OK; }
int cuDeviceGetAttribute(int *value, int which, int device)
{
    int capability = setting("FAKE_CAPABILITY", 90);
    *value = which == 75 ? capability / 10 : which == 76 ? capability % 10 : which == 33 ? device + 1 : which == 19;
    return OK;
}
int cuGetErrorName(int code, const char **name)
{
    static const struct { int code; const char *name; } names[] = {
        { 1, "CUDA_ERROR_INVALID_VALUE" }, { 2, "CUDA_ERROR_OUT_OF_MEMORY" }, { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE" },
        { 100, "CUDA_ERROR_NO_DEVICE" }, { 101, "CUDA_ERROR_INVALID_DEVICE" }, { 201, "CUDA_ERROR_INVALID_CONTEXT" },
        { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU" }, { 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
        { 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" }, { 719, "CUDA_ERROR_LAUNCH_FAILED" },
        { 999, "CUDA_ERROR_UNKNOWN" } };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code) { *name = names[i].name; return OK; }
    return INVALID_VALUE;
}

// Contexts.
int cuCtxCreate_v4(Context **context, void *parameters, unsigned flags, int device)
{
    (void)flags;
    CALL("cuCtxCreate_v4");
    if (kept) return kept;
    if (parameters) return INVALID_VALUE;
    if (device >= setting("FAKE_DEVICES", 1)) return INVALID_DEVICE;
    *context = current = calloc(1, sizeof **context);
    return OK;
}
int cuCtxSetCurrent(Context *context) { CALL("cuCtxSetCurrent"); current = context; return OK; }
int cuCtxSynchronize(void)
{
    IN_CONTEXT("cuCtxSynchronize");
    pthread_mutex_lock(&lock);
    for (Stream *one = current->streams; one; one = one->next)
        while (one->first || one->is_busy) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
    return lost(current);
}
int cuCtxDestroy_v2(Context *context)
{
    int poison = context->poison;
    CALL("cuCtxDestroy_v2");
    pthread_mutex_lock(&lock);
    context->is_ending = 1;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    for (Stream *one = context->streams, *next; one; one = next) {
        next = one->next;
        pthread_join(one->thread, NULL);
        free(one);
    }
    for (Memory *one = context->memory, *next; one; one = next) {
        next = one->next;
        used -= one->bytes;
        free(one->at);
        free(one);
    }
    if (current == context) current = NULL;
    // The handle itself stays, so that a late use meets a poisoned context and no freed memory.
    *context = (Context){ .poison = INVALID_CONTEXT };
    return poison;
}

// Code.
int cuModuleLoadData(void **module, const void *image)
{
    IN_CONTEXT("cuModuleLoadData");
    // A fatbin begins with this number.
    if (memcmp(image, "\x50\xed\x55\xba", 4)) return INVALID_VALUE;
    *module = functions;
    return OK;
}
int cuModuleGetFunction(Function **function, void *module, const char *name)
{
    IN_CONTEXT("cuModuleGetFunction");
    (void)module;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (!strcmp(functions[i].name, name)) { *function = &functions[i]; return OK; }
    return NOT_FOUND;
}

// Memory.
int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    IN_CONTEXT("cuMemGetInfo_v2");
    *total = (size_t)1 << 34;
    size_t pool = (size_t)setting("FAKE_POOL", 0) << 20;
    *unused = *total / 2 - (used > pool ? used : pool);
    return OK;
}
int cuMemAlloc_v2(Address *address, size_t bytes)
{
    IN_CONTEXT("cuMemAlloc_v2");
    if (bytes > (size_t)1 << 34) return OUT_OF_MEMORY;
    Memory *memory = malloc(sizeof *memory);
    void *at = aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    memset(at, 0xa5, bytes);
    pthread_mutex_lock(&lock);
    *memory = (Memory){ current->memory, at, bytes };
    current->memory = memory;
    used += bytes;
    pthread_mutex_unlock(&lock);
    *address = (Address)at;
    return OK;
}
int cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
    IN_CONTEXT("cuMemcpyHtoD_v2");
    memcpy((void *)to, from, bytes);
    return OK;
}
int cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) {
    IN_CONTEXT("cuMemcpyDtoH_v2");
    memcpy(to, (void *)from, bytes);
    return OK;
}
int cuMemsetD8_v2(Address to, unsigned char value, size_t bytes) {
    IN_CONTEXT("cuMemsetD8_v2");
    memset((void *)to, value, bytes);
    return OK;
}
int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    IN_CONTEXT("cuMemHostRegister_v2");
    Address from = (Address)at, to = from + bytes;
    if (!(flags & 2) || from % 4096 || bytes % 4096) return INVALID_VALUE;
    int code = OK;
    pthread_mutex_lock(&lock);
    for (Registered *one = registered; one; one = one->next)
        if (from < one->to && one->from < to) code = ALREADY_REGISTERED;
    if (!code) {
        Registered *more = malloc(sizeof *more);
        *more = (Registered){ registered, from, to };
        registered = more;
    }
    pthread_mutex_unlock(&lock);
    return code;
}
int cuMemHostUnregister(void *at)
{
    if (!current) return INVALID_CONTEXT;
    int code = NOT_REGISTERED;
    pthread_mutex_lock(&lock);
    for (Registered **one = &registered; *one; one = &(*one)->next)
        if ((*one)->from == (Address)at) { Registered *gone = *one; *one = gone->next; free(gone); code = OK; break; }
    pthread_mutex_unlock(&lock);
    return code;
}
int cuMemHostGetDevicePointer_v2(Address *address, void *at, unsigned flags)
{
    IN_CONTEXT("cuMemHostGetDevicePointer_v2");
    if (flags || !is_known(current, (Address)at)) return INVALID_VALUE;
    *address = (Address)at;
    return OK;
}

// Streams, graphs, events.
int cuStreamCreate(Stream **stream, unsigned flags)
{
    IN_CONTEXT("cuStreamCreate");
    if (flags != 1) return INVALID_VALUE;
    Stream *one = calloc(1, sizeof *one);
    one->context = current;
    one->next = current->streams;
    current->streams = one;
    if (pthread_create(&one->thread, NULL, run, one)) return OUT_OF_MEMORY;
    *stream = one;
    return OK;
}
int cuStreamSynchronize(Stream *stream)
{
    IN_CONTEXT("cuStreamSynchronize");
    if (!is_ours(stream)) return INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    while (stream->first || stream->is_busy) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
    return lost(current);
}
int cuStreamQuery(Stream *stream)
{
    IN_CONTEXT("cuStreamQuery");
    pthread_mutex_lock(&lock);
    int is_idle = !stream->first && !stream->is_busy;
    pthread_mutex_unlock(&lock);
    return is_idle ? OK : NOT_READY;
}
int cuStreamBeginCapture_v2(Stream *stream, int mode)
{
    IN_CONTEXT("cuStreamBeginCapture_v2");
    if (!is_ours(stream) || mode != 1) return INVALID_VALUE;
    stream->is_capturing = 1;
    stream->captured.count = 0;
    return OK;
}
int cuStreamEndCapture(Stream *stream, Graph **graph)
{
    IN_CONTEXT("cuStreamEndCapture");
    if (!stream->is_capturing) return NOT_CAPTURED;
    stream->is_capturing = 0;
    *graph = malloc(sizeof **graph);
    **graph = stream->captured;
    return OK;
}
int cuGraphInstantiateWithFlags(Executable **executable, Graph *graph, unsigned long long flags)
{
    IN_CONTEXT("cuGraphInstantiateWithFlags");
    if (flags || !graph->count) return INVALID_VALUE;
    *executable = malloc(sizeof **executable);
    **executable = (Executable){ current, *graph };
    return OK;
}
int cuGraphDestroy(Graph *graph) { free(graph); return OK; }
#ifndef WITHOUT_GRAPH_UPLOAD
int cuGraphUpload(Executable *executable, Stream *stream) {
    IN_CONTEXT("cuGraphUpload");
    (void)executable;
    return is_ours(stream) ? OK : INVALID_HANDLE;
}
#endif
int cuGraphLaunch(Executable *executable, Stream *stream)
{
    if (!current) return INVALID_CONTEXT;
    int delay_ms = 0, code = refused("cuGraphLaunch", &delay_ms);
    if (code) return code;
    if (lost(current)) return lost(current);
    if (!executable || !is_ours(stream) || executable->context != current) return INVALID_HANDLE;
    Job *job = calloc(1, sizeof *job);
    job->graph = executable->graph;
    job->delay_ms = delay_ms;
    put(stream, job);
    return OK;
}
int cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Stream *stream, void **arguments, void **extra)
{
    IN_CONTEXT("cuLaunchKernel");
    if (!gx || gy * gz != 1 || !bx || bx > 1024 || by * bz != 1 || shared || extra || !is_ours(stream)) return INVALID_VALUE;
    Step step = { function, gx, { { .word = 0 } } };
    for (int i = 0; i < ARGUMENTS_MAX && function->sizes[i]; i++)
        memcpy(step.arguments[i].bytes, arguments[i], (size_t)function->sizes[i]);
    if (stream->is_capturing) {
        if (stream->captured.count == STEPS_MAX) return OUT_OF_MEMORY;
        stream->captured.steps[stream->captured.count++] = step;
        return OK;
    }
    Job *job = calloc(1, sizeof *job);
    job->graph.count = 1;
    job->graph.steps[0] = step;
    put(stream, job);
    return OK;
}
int cuEventCreate(Event **event, unsigned flags)
{
    IN_CONTEXT("cuEventCreate");
    if (flags) return INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    (*event)->context = current;
    return OK;
}
int cuEventRecord(Event *event, Stream *stream)
{
    IN_CONTEXT("cuEventRecord");
    if (!is_ours(stream)) return INVALID_HANDLE;
    Job *job = calloc(1, sizeof *job);
    job->event = event;
    pthread_mutex_lock(&lock);
    event->pending++;
    pthread_mutex_unlock(&lock);
    put(stream, job);
    return OK;
}
static int is_pending(Event *event) {
    pthread_mutex_lock(&lock);
    int pending = event->pending;
    pthread_mutex_unlock(&lock);
    return pending > 0;
}
int cuEventQuery(Event *event) { IN_CONTEXT("cuEventQuery"); return is_pending(event) ? NOT_READY : OK; }
int cuEventElapsedTime_v2(float *ms, Event *from, Event *to)
{
    IN_CONTEXT("cuEventElapsedTime_v2");
    if (is_pending(from) || is_pending(to)) return NOT_READY;
    if (!from->ns || !to->ns) return INVALID_HANDLE;
    *ms = (float)((double)(to->ns - from->ns) / 1e6);
    return OK;
}
