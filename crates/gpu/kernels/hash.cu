// Keyed XXH3-128 of pages, identical to the CPU's, and what changed since last time.
//
// One warp hashes one page. XXH3 adds stripes of 64 bytes into eight 64-bit lanes; within a block
// of 16 stripes the additions commute, so 32 threads take 16 bytes each of eight stripes at once
// and the sums are folded at the end. Between blocks the lanes are scrambled, which does not
// commute: four blocks are summed independently and then chained.
//
// A page is a multiple of 1024 bytes (one block), so that its last stripe is the last of a block.

#define BLOCK_BYTES 1024
#define GROUP 4  // blocks summed before they are chained

#define PRIME32_1 0x9E3779B1ull
#define PRIME32_2 0x85EBCA77ull
#define PRIME32_3 0xC2B2AE3Dull
#define PRIME64_1 0x9E3779B185EBCA87ull
#define PRIME64_2 0xC2B2AE3D27D4EB4Full
#define PRIME64_3 0x165667B19E3779F9ull
#define PRIME64_4 0x85EBCA77C2B2AE63ull
#define PRIME64_5 0x27D4EB2F165667C5ull
#define AVALANCHE 0x165667919E3779F9ull

#define MARK_ZERO 1
#define MARK_CHANGED 2

// The secret as the algorithm reads it: whole words, and three unaligned runs of eight words.
struct Keys {
    u64 word[24];
    u64 last[8];  // of the last stripe
    u64 low[8];   // of the low half of the digest
    u64 high[8];
};

struct Pair {
    u64 a, b;
};

// Adds 16 bytes of one stripe into its pair of lanes.
__device__ __forceinline__ void accumulate(Pair& sum, uint4 data, Pair key) {
    u64 first = (u64)data.y << 32 | data.x;
    u64 second = (u64)data.w << 32 | data.z;
    u64 keyed_a = first ^ key.a;
    u64 keyed_b = second ^ key.b;
    sum.a += (u64)(u32)keyed_a * (keyed_a >> 32) + second;
    sum.b += (u64)(u32)keyed_b * (keyed_b >> 32) + first;
}

// Sums each of the eight values over the eight stripes (lane bits 2 to 4), and leaves one sum per
// thread: block = lane / 8, lane of the hash = 2 * (lane % 4) + (lane / 4) % 2.
__device__ __forceinline__ u64 fold_stripes(const u64 (&value)[2 * GROUP]) {
    u64 four[4], two[2];
    bool upper = lane_id() & 16;
    for (int i = 0; i < 4; i++) {
        u64 mine = upper ? value[4 + i] : value[i];
        u64 theirs = upper ? value[i] : value[4 + i];
        four[i] = mine + __shfl_xor_sync(FULL, theirs, 16);
    }
    upper = lane_id() & 8;
    for (int i = 0; i < 2; i++) {
        u64 mine = upper ? four[2 + i] : four[i];
        u64 theirs = upper ? four[i] : four[2 + i];
        two[i] = mine + __shfl_xor_sync(FULL, theirs, 8);
    }
    upper = lane_id() & 4;
    return (upper ? two[1] : two[0]) + __shfl_xor_sync(FULL, upper ? two[0] : two[1], 4);
}

// The secret for this thread's 16 bytes: of a block's first eight stripes, of its second eight,
// and of the second eight where the page ends with them.
struct StripeKeys {
    Pair first, second, last;

    __device__ __forceinline__ StripeKeys(const Keys& keys, u32 stripe, u32 pair) {
        first = {keys.word[stripe + pair], keys.word[stripe + pair + 1]};
        second = {keys.word[8 + stripe + pair], keys.word[8 + stripe + pair + 1]};
        last.a = stripe == 7 ? keys.last[pair] : second.a;
        last.b = stripe == 7 ? keys.last[pair + 1] : second.b;
    }
};

// The sums of up to GROUP blocks from `first` on, folded; adds to `any` the bits that are set.
__device__ __forceinline__ u64 sum_blocks(const uint4* data, u32 first, u32 blocks,
                                          const StripeKeys& keys, u32& any) {
    uint4 part[2 * GROUP];
    for (int i = 0; i < 2 * GROUP; i++) {
        bool there = first + i / 2 < blocks;
        part[i] = there ? __ldcs(data + (first * 2 + i) * WARP) : make_uint4(0, 0, 0, 0);
    }
    u64 sums[2 * GROUP];
    for (int block = 0; block < GROUP; block++) {
        bool last = first + block + 1 == blocks;
        Pair sum = {0, 0};
        accumulate(sum, part[2 * block], keys.first);
        Pair second = {last ? keys.last.a : keys.second.a, last ? keys.last.b : keys.second.b};
        accumulate(sum, part[2 * block + 1], second);
        sums[2 * block] = sum.a;
        sums[2 * block + 1] = sum.b;
    }
    for (int i = 0; i < 2 * GROUP; i++) any |= part[i].x | part[i].y | part[i].z | part[i].w;
    return fold_stripes(sums);
}

__device__ __forceinline__ u64 start_of(u32 lane) {
    const u64 start[8] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3,
                          PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};
    return start[lane];
}

__device__ __forceinline__ u64 scramble(u64 lane, u64 key) {
    return (lane ^ lane >> 47 ^ key) * PRIME32_1;
}

// Threads with bit 2 clear return the low half of the digest, the others the high half.
__device__ __forceinline__ u64 finish(u64 lane, const Keys& keys, u32 page_bytes) {
    bool high = lane_id() & 4;
    u32 pair = 2 * (lane_id() & 3);
    u64 other = __shfl_xor_sync(FULL, lane, 4);
    u64 even = high ? other ^ keys.high[pair] : lane ^ keys.low[pair];
    u64 odd = high ? lane ^ keys.high[pair + 1] : other ^ keys.low[pair + 1];
    u64 sum = even * odd ^ __umul64hi(even, odd);
    sum += __shfl_xor_sync(FULL, sum, 1);
    sum += __shfl_xor_sync(FULL, sum, 2);
    sum += high ? ~(page_bytes * PRIME64_2) : page_bytes * PRIME64_1;
    sum = (sum ^ sum >> 37) * AVALANCHE;
    return sum ^ sum >> 32;
}

__device__ __forceinline__ u64 big_endian(u64 value) {
    u32 low = __byte_perm((u32)value, 0, 0x0123);
    u32 high = __byte_perm((u32)(value >> 32), 0, 0x0123);
    return (u64)low << 32 | high;
}

// digests: two words a page, the bytes of the CPU's digest.
// before: digests of the last checkpoint, or null when everything is new.
// marks: one byte a page, MARK_ZERO and MARK_CHANGED.
extern "C" __global__ void __launch_bounds__(256)
hash_pages(const u8* pages, u64 page_count, u32 page_bytes, __grid_constant__ const Keys keys,
           u64* digests, const u64* before, u8* marks) {
    u32 stripe = lane_id() / 4, pair = 2 * (lane_id() & 3);
    u32 hash_lane = pair + (lane_id() / 4 & 1);
    StripeKeys stripe_keys(keys, stripe, pair);
    u64 key_scramble = keys.word[16 + hash_lane];
    u64 start = start_of(hash_lane);
    u32 blocks = page_bytes / BLOCK_BYTES;

    u64 warps = (u64)gridDim.x * blockDim.x / WARP;
    u64 page = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    for (; page < page_count; page += warps) {
        const uint4* data = (const uint4*)(pages + page * page_bytes) + lane_id();
        u64 lane = start;
        u32 any = 0;
        for (u32 first = 0; first < blocks; first += GROUP) {
            u64 folded = sum_blocks(data, first, blocks, stripe_keys, any);
            for (int block = 0; block < GROUP; block++) {
                u64 sum = __shfl_sync(FULL, folded, block * 8 | (lane_id() & 7));
                if (first + block < blocks) {
                    lane += sum;
                    if (first + block + 1 < blocks) lane = scramble(lane, key_scramble);
                }
            }
        }
        u64 half = big_endian(finish(lane, keys, page_bytes));
        bool zero = !__any_sync(FULL, any);
        bool writes = (lane_id() & 27) == 0;  // thread 0: low half, thread 4: high half
        u64 at = page * 2 + (lane_id() & 4 ? 0 : 1);
        bool differs = writes && (!before || before[at] != half);
        bool changed = __any_sync(FULL, differs);
        if (writes) digests[at] = half;
        if (lane_id() == 0) marks[page] = (zero ? MARK_ZERO : 0) | (changed ? MARK_CHANGED : 0);
    }
}
