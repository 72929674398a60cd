/* The calls of a CUDA-Q kernel to its decoders, by UDP: the three functions that its compiler's pass
 * `realtime-device-call` calls, in place of the runtime that the wheels leave out.
 *
 *     cc -std=c11 -O2 -shared -fPIC -o libwire.so wire.c
 *
 * PINWHEEL_CUDAQ_PORT is the port at 127.0.0.1. Each call waits for its reply. Nothing is sent again: a server takes a
 * datagram that comes twice for new measurements. One thread may call at a time. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { HEADER = 24, SLOT = 256, REQUEST = 0x43555152, REPLY = 0x43555153, TIMEOUT_S = 5 };
/* What a kernel takes for the end of a call that failed here. Other numbers are statuses of the server. */
enum { TOO_LARGE = 1, NO_CHANNEL = 2, TIMED_OUT = 4, REPLY_TOO_LARGE = 5, NO_REPLY_TO_THIS = 6 };

struct header {
    uint32_t magic, function_or_status, bytes, id;
    uint64_t time;
};
_Static_assert(sizeof(struct header) == HEADER, "packed");

struct frame {
    uint64_t capacity;
    union {
        struct header header;
        unsigned char slot[SLOT];
    } request, reply;
};

static int channel = -1;
static uint32_t last_id;
static uint64_t calls, failed;

/* Calls that had their reply, and those that had none or another. */
void wire_counts(uint64_t *replied, uint64_t *lost) {
    *replied = calls - failed;
    *lost = failed;
}

static int open_channel(void) {
    const char *port = getenv("PINWHEEL_CUDAQ_PORT");
    if (port == NULL) return -1;
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int opened = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (opened < 0) return -1;
    if (setsockopt(opened, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) < 0 ||
        connect(opened, (struct sockaddr *)&server, sizeof server) < 0) {
        close(opened);
        return -1;
    }
    return opened;
}

int32_t __cudaq_device_call_acquire_realtime_frame(uint32_t device, uint32_t function, uint64_t bytes,
                                                   uint64_t capacity, void **frame, void **request, void **result) {
    (void)device; /* All decoders have one port: their number is in the payload. */
    if (bytes > SLOT - HEADER || capacity > SLOT - HEADER) return TOO_LARGE;
    if (channel < 0) channel = open_channel();
    struct frame *made = channel < 0 ? NULL : calloc(1, sizeof *made);
    if (made == NULL) return NO_CHANNEL;
    made->capacity = capacity;
    made->request.header = (struct header){.magic = REQUEST, .function_or_status = function, .bytes = (uint32_t)bytes};
    *frame = made;
    *request = made->request.slot + HEADER;
    if (result != NULL) *result = made->reply.slot + HEADER;
    return 0;
}

static int32_t exchange(struct frame *frame, uint64_t *received) {
    /* Without gaps: a server takes one for a lost request. */
    frame->request.header.id = ++last_id;
    if (send(channel, frame->request.slot, SLOT, 0) != SLOT) return NO_CHANNEL;
    struct header *reply = &frame->reply.header;
    ssize_t came;
    /* A reply to an earlier call, which had ended without one, is passed over. */
    do came = recv(channel, frame->reply.slot, SLOT, 0);
    while (came < 0 ? errno == EINTR : came >= HEADER && reply->magic == REPLY && (int32_t)(reply->id - last_id) < 0);
    if (came < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? TIMED_OUT : NO_REPLY_TO_THIS;
    if (came < HEADER || reply->magic != REPLY || reply->id != last_id) return NO_REPLY_TO_THIS;
    if (reply->bytes > frame->capacity || reply->bytes > came - HEADER) return REPLY_TOO_LARGE;
    *received = reply->bytes;
    return 0;
}

int32_t __cudaq_device_call_dispatch_realtime_frame(void *frame, uint64_t *received) {
    struct frame *sent = frame;
    *received = 0;
    calls++;
    int32_t error = exchange(sent, received);
    if (error != 0) failed++;
    return error != 0 ? error : (int32_t)sent->reply.header.function_or_status;
}

void __cudaq_device_call_safely_release_realtime_frame(void *frame) { free(frame); }
