/* Sends a b8 file of shots to an engine through shared memory and prints an answer a line:
 *
 *     cc -std=c11 -O2 -o send send.c && ./send /dev/shm/pinwheel/input-NAME shots.b8
 *
 * "index status observables" by index; status 0 is answered, anything else the error code. */
#include "pinwheel_shm.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *said) {
    fprintf(stderr, "send: %s\n", said);
    return 2;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 3) return fail("found other words, expected the region's path and a file of shots");
    int file = open(words[1], O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return fail("found no region there, expected one; start: pinwheel run --input shm:NAME");
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(file, F_SETLK, &whole) < 0) return fail("found another client, expected none; end it");
    struct stat stat;
    if (fstat(file, &stat) < 0 || stat.st_size < PW_HEADER_BYTES) return fail("found no whole region");
    pw_header *region = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (region == MAP_FAILED) return fail("found the region not to be mapped");
    if (region->magic != PW_MAGIC || region->version != PW_VERSION || region->region_bytes != (uint64_t)stat.st_size)
        return fail("found a region of another version, expected 1; use this engine's header");
    if (region->encoding != 0) return fail("found a region of 32-bit words, expected bits");

    size_t bytes = (size_t)((region->bits + 7) / 8);
    FILE *shots = fopen(words[2], "rb");
    if (!shots) return fail("found no file of shots, expected one");
    fseek(shots, 0, SEEK_END);
    uint64_t total = (uint64_t)ftell(shots) / bytes;
    rewind(shots);
    uint64_t *answers = calloc((size_t)total + 1, 2 * sizeof *answers);
    uint64_t slots = region->slots, streams = region->streams;
    char *waiting = calloc((size_t)slots, 1);
    if (!answers || !waiting) return fail("found no memory");

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t session = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    region->client_pid = (uint64_t)getpid();
    region->session = session;
    double from = seconds();
    while (atomic_load_explicit(&region->granted, memory_order_acquire) != session || region->state != PW_STATE_LIVE)
        if (seconds() - from > 10) return fail("found no engine within 10 s, expected one; see its console");

    uint64_t sent = 0, heard = 0, oldest = 0;
    from = seconds();
    while (heard < total) {
        atomic_fetch_add_explicit(&region->client_heartbeat, 1, memory_order_relaxed);
        uint64_t slot = sent % slots;
        if (sent < total && !waiting[slot] && pw_is_vacant(region, slot)) {
            char *record = (char *)region + pw_shot_at(region, slot);
            memset(record, 0, (size_t)region->shot_stride);
            pw_shot head = {.sequence = sent / streams, .stream = sent % streams, .bits = region->bits};
            memcpy(record, &head, sizeof head);
            if (fread(record + sizeof head, 1, bytes, shots) != bytes) return fail("found the file cut short");
            pw_publish(region, slot);
            waiting[slot] = 1;
            sent++;
        }
        for (uint64_t at = oldest; at < sent; at++) {
            slot = at % slots;
            uint64_t word = waiting[slot] ? pw_answered(region, slot) : 0;
            if (word == 0) continue;
            pw_answer head;
            memcpy(&head, pw_answer_of(region, slot), sizeof head);
            uint64_t flips = 0;
            memcpy(&flips, (char *)pw_answer_of(region, slot) + sizeof head, region->observables ? 8 : 0);
            pw_collected(region, slot);
            waiting[slot] = 0;
            uint64_t index = head.sequence * streams + head.stream;
            if (index >= total) return fail("found an answer to no shot of ours");
            answers[2 * index] = word >> 48 == PW_ERROR_PREFIX ? word & 0xffff : 0;
            answers[2 * index + 1] = flips;
            heard++;
        }
        while (oldest < sent && !waiting[oldest % slots]) oldest++;
        if (seconds() - from > 60) return fail("found answers missing after 60 s, expected all");
    }
    for (uint64_t index = 0; index < total; index++)
        printf("%llu %llu %llx\n", (unsigned long long)index, (unsigned long long)answers[2 * index],
            (unsigned long long)answers[2 * index + 1]);
    return 0;
}
