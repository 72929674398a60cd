// A worker's graph: takes its mail, predecodes the shot, writes the outputs and then the ready word.
//
// Runs on a device, in one captured graph for each group of workers: one kernel, one block for each worker. As plain C
// in tests. A launch serves every worker of its group whose doorbell shows a generation that was not taken yet, so a
// group may be launched with fewer shots than it has workers. Bounds: one shot for each worker; a job number or payload
// address outside its memory is refused. Never spins, and never changes a word of the host's by more than a load or a
// store.
//
// Why the result is the same for every order of threads: all of them look at the shot as it came, each bit of it is
// resolved by one thread at most, and what is done is an exclusive or.
//
// Why one kernel: the next kernel of a graph begins about a microsecond after the one before (measured on an H100),
// which every shot would pay twice.
#include "layout.h"

struct Company {
    u32 count;  // other fired detectors nearby, as far as one or several matters
    u32 one;    // one of them
};

ON_DEVICE struct Company company(const struct Silo *silo, const u64 *syndrome, u32 index)
{
    struct Company found = { 0, 0 };
    for (u32 i = silo->near_from[index]; i < silo->near_from[index + 1] && found.count < 2; i++) {
        u64 fired = syndrome[silo->near_word[i]] & silo->near_mask[i];
        if (fired != 0) {
            found.count += ones(fired);
            found.one = silo->near_word[i] * 64 + lowest(fired);
        }
    }
    return found;
}

ON_DEVICE u32 way_to(const struct Silo *silo, u32 index, u32 partner)
{
    u32 end = silo->way_from[index + 1];
    for (u32 i = silo->way_from[index]; i < end; i++)
        if (silo->way_partner[i] == partner) return i;
    return BOUNDARY;
}

// Resolves `index` if it stands alone or, as the lower of the two, with one partner; returns the events removed.
ON_DEVICE u32 resolve(const struct Silo *silo, const u64 *syndrome, u64 *residual, u64 *flips, u32 index)
{
    struct Company mine = company(silo, syndrome, index);
    u32 partner = mine.count == 0 ? BOUNDARY : mine.one;
    if (mine.count > 1 || (mine.count == 1 && partner < index)) return 0;
    u32 way = way_to(silo, index, partner);
    if (way == BOUNDARY) return 0;
    if (partner != BOUNDARY) {
        struct Company theirs = company(silo, syndrome, partner);
        if (theirs.count != 1 || theirs.one != index) return 0;
        flip(residual + partner / 64, 1ull << (partner % 64));
    }
    flip(residual + index / 64, 1ull << (index % 64));
    for (u32 i = 0; i < silo->observable_words; i++) {
        u64 by = silo->way_flips[(u64)way * silo->observable_words + i];
        if (by != 0) flip(flips + i, by);
    }
    return partner == BOUNDARY ? 1 : 2;
}

KERNEL pinwheel_shot(struct Silo silo, u32 first)
{
    u32 worker = first + blockIdx.x;
    struct Seat *seat = silo.seats + worker;
    SHARED u64 generation;
    SHARED u64 number;
    SHARED u64 from;
    SHARED u64 began_ns;
    // 1. The mail.
    if (threadIdx.x == 0) {
        // Acquire side of S3: address and job were stored before the doorbell.
        generation = load_acquire(seat->doorbell);
        if (generation == seat->seen) generation = 0;
        if (generation != 0) {
            seat->seen = generation;
            began_ns = device_ns();
            number = load_relaxed(seat->job);
            u64 offset = load_relaxed(seat->address) - silo.payload_host;
            // One that dispatch did not validate reads as an empty syndrome.
            int is_inside = offset % 8 == 0 && offset / 8 <= silo.payload_words - silo.words;
            from = is_inside ? silo.payload + offset : 0;
        }
    }
    block_barrier();
    if (generation == 0 || number >= silo.jobs) return;

    // 2. The shot into device memory.
    const u64 *source = (const u64 *)from;
    u64 *syndrome = silo.syndromes + (u64)worker * silo.words;
    u64 *residual = silo.residuals + (u64)worker * silo.words;
    u64 *flips = silo.flips + (u64)worker * silo.observable_words;
    for (u32 i = threadIdx.x; i < silo.words; i += blockDim.x) residual[i] = syndrome[i] = source ? source[i] : 0;
    for (u32 i = threadIdx.x; i < silo.observable_words; i += blockDim.x) flips[i] = 0;
    block_barrier();

    // 3. The predecoder, where a network would stand.
    u32 removed = 0;
    for (u32 index = threadIdx.x; index < silo.detectors; index += blockDim.x)
        if (syndrome[index / 64] >> (index % 64) & 1) removed += resolve(&silo, syndrome, residual, flips, index);
    if (removed != 0) add(&seat->removed, removed);
    block_barrier();

    // 4. The outputs into the job buffer, then the ready word.
    u64 *residual_out = silo.residuals_out + number * silo.words;
    u64 *flips_out = silo.flips_out + number * silo.observable_words;
    for (u32 i = threadIdx.x; i < silo.words; i += blockDim.x) residual_out[i] = residual[i];
    for (u32 i = threadIdx.x; i < silo.observable_words; i += blockDim.x) flips_out[i] = flips[i];
    block_barrier();
    if (threadIdx.x == 0) {
        u64 ended_ns = device_ns();
        store_relaxed(seat->report, ended_ns - began_ns);
        store_relaxed(seat->report + 1, seat->removed);
        store_relaxed(seat->report + 2, began_ns);
        store_relaxed(seat->report + 3, ended_ns);
        // Release side of S4, system scope. The barrier puts every thread's outputs before it.
        store_release(seat->ready, generation << 2 | READY);
    }
}

// The following are for `pinwheel gpu-check` alone.

// A lane of the litmus: words, and the word of the protocol that publishes them.
struct Lane {
    u64 *words;
    u64 *flag;
};
#define LITMUS_WORDS 16

// Hands `rounds` numbers from `from` on over to the host, as pinwheel_shot does (S4): all threads write words, the
// barrier, one thread stores ready. A block for each lane. The host that claims a number must see no older word.
KERNEL pinwheel_litmus_out(struct Lane *lanes, u64 from, u64 rounds)
{
    struct Lane lane = lanes[blockIdx.x];
    for (u64 round = from; round < from + rounds; round++) {
        for (u32 i = threadIdx.x; i < LITMUS_WORDS; i += blockDim.x) lane.words[i] = round;
        block_barrier();
        if (threadIdx.x == 0) store_release(lane.flag, round << 2 | READY);
        block_barrier();
    }
}

// Takes what the host hands over, as pinwheel_shot does (S3), for `looks` looks; counts numbers taken and, in `broken`,
// words that are older than the number.
KERNEL pinwheel_litmus_in(struct Lane *lanes, u64 looks, u64 *taken, u64 *broken)
{
    struct Lane lane = lanes[blockIdx.x];
    if (threadIdx.x != 0) return;
    u64 last = 0, changes = 0, wrong = 0;
    for (u64 look = 0; look < looks; look++) {
        u64 round = load_acquire(lane.flag);
        if (round == last) continue;
        last = round;
        changes++;
        for (u32 i = 0; i < LITMUS_WORDS; i++) wrong += load_relaxed(lane.words + i) < round;
    }
    taken[blockIdx.x] += changes;
    broken[blockIdx.x] += wrong;
}

// Waits until `*open` is not 0, at most `limit_ns`: a graph that is late on purpose.
KERNEL pinwheel_stall(u64 *open, u64 limit_ns)
{
    u64 until = device_ns() + limit_ns;
    while (load_acquire(open) == 0 && device_ns() < until) {}
}

// Writes where it is told to: a sticky error on purpose.
KERNEL pinwheel_poke(u64 *where, u64 value)
{
    if (threadIdx.x == 0) *where = value;
}
