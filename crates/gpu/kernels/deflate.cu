// Deflate (RFC 1951): matching, parsing and Huffman coding without a trip back to the host.
//
// A block of 512 threads takes one chunk of up to 64 KiB and makes one raw Deflate stream of it.
// tests/stand-in/src/deflate produces the same bytes.
//
//   load     bytes into shared memory, sorted into byte planes where a filter asks for it
//   count    bytes -> what a literal will roughly cost
//   seek     every position at once, a tile after the other: the two last places with the same
//            hash in earlier tiles
//   parse    each warp takes 4 KiB, 32 positions at once: those places and fixed short offsets
//            are compared in parallel; lazy choice of matches, tokens and symbol counts
//   code     canonical Huffman codes of at most 15 bits
//   write    bit lengths -> prefix sums -> bits into shared memory -> slot
//
// Results do not depend on scheduling: hash buckets are updated by maximum, all else by sums.

#define THREADS 512
#define WARPS (THREADS / WARP)
#define CHUNK_BYTES 65536
#define PART_BYTES (CHUNK_BYTES / WARPS)  // a warp's share when parsing
#define SLOT_BYTES (CHUNK_BYTES + 16)
#define STORED_PIECE 32768

#define TABLE_BITS 13
#define DISTANCE_MAX 32768
#define MATCH_MIN 4
#define MATCH_MAX 258
#define MATCH_SEARCHED 32  // compared while searching; chosen matches are extended

#define LITERALS 286
#define DISTANCES 30
#define LENGTHS 19
#define END_OF_BLOCK 256
#define ITEMS_MAX (LITERALS + DISTANCES)

// Estimated bits of a match's length and distance symbols, without their extra bits.
#define LENGTH_BITS 7
#define DISTANCE_BITS 5

#define MATCH_TOKEN 0x80000000u

// Building one Huffman code.
struct Tree {
    u32 key[288];     // weight and symbol, to be ranked
    u32 weight[290];  // of the leaves, rarest first
    u16 symbol[288];
    u16 leaf_parent[290];
    u32 inner[290];
    u16 inner_parent[290];
    u8 length[288];   // per symbol
    u32 count[16];    // codes per length
    u32 first[16];    // first code of a length
};

struct Work {
    u32 data[CHUNK_BYTES / 4 + 8];  // the chunk; when it is parsed, the bits to write
    u32 table[1 << TABLE_BITS];     // last and last but one position of a hash; before: counters
    u32 literal_count[288];
    u32 distance_count[32];
    u32 length_count[32];
    u32 literal_code[288];          // reversed code, length << 16
    u32 distance_code[32];
    u32 length_code[32];
    u8 length[ITEMS_MAX];           // of all codes, literals first
    u16 item[ITEMS_MAX];            // the same as runs: symbol, extra << 5
    u32 items;
    u32 literals, distances, lengths;  // numbers in the block's header
    u32 literal_cost[WARPS];
    u32 bits[WARPS];
    u32 header_bits;
    Tree tree;
};

// What the host asks for; two blocks share a multiprocessor.
static_assert(sizeof(Work) <= 110 * 1024, "dynamic shared memory of deflate_chunks");

__device__ __forceinline__ u32 load4(const u32* data, u32 at) {
    return __funnelshift_r(data[at / 4], data[at / 4 + 1], at % 4 * 8);
}

__device__ __forceinline__ u32 byte_at(const u32* data, u32 at) {
    return data[at / 4] >> at % 4 * 8 & 255;
}

// Length symbol, number and value of its extra bits; `length` is the length less 3.
__device__ __forceinline__ u32 length_symbol(u32 length, u32& extra_bits, u32& extra) {
    extra_bits = extra = 0;
    if (length == 255) return 285;
    if (length < 4) return 257 + length;
    extra_bits = 29 - __clz(length);
    extra = length & ((1u << extra_bits) - 1);
    return 261 + 4 * extra_bits + (length >> extra_bits & 3);
}

// The same for a distance less 1.
__device__ __forceinline__ u32 distance_symbol(u32 distance, u32& extra_bits, u32& extra) {
    extra_bits = extra = 0;
    if (distance < 2) return distance;
    extra_bits = 30 - __clz(distance);
    extra = distance & ((1u << extra_bits) - 1);
    return 2 + 2 * extra_bits + (distance >> extra_bits & 1);
}

// Where the filter puts a byte: all first bytes of the elements, then all second ones, and so on;
// what is shorter than an element stays behind.
__device__ __forceinline__ u32 shuffled(u32 at, u32 bytes, u32 element_bytes) {
    u32 count = bytes / element_bytes;
    if (at >= count * element_bytes) return at;
    return at % element_bytes * count + at / element_bytes;
}

// The chunk, zeros behind it. element_bytes is 1 (no filter), 4 or 8.
__device__ __forceinline__ void load_chunk(Work& work, const u8* chunk, u32 bytes,
                                           u32 element_bytes) {
    u32 whole = bytes / 16;
    for (u32 i = threadIdx.x; i < CHUNK_BYTES / 16 + 2; i += THREADS)
        ((uint4*)work.data)[i] = element_bytes == 1 && i < whole ? ((const uint4*)chunk)[i]
                                                                 : make_uint4(0, 0, 0, 0);
    __syncthreads();
    u8* data = (u8*)work.data;
    if (element_bytes == 1) {
        u32 at = whole * 16 + threadIdx.x;
        if (at < bytes) data[at] = chunk[at];
        return;
    }
    for (u32 at = threadIdx.x * 4; at < bytes; at += THREADS * 4) {
        u32 count = min(bytes - at, 4u);
        u32 word = count == 4 ? *(const u32*)(chunk + at) : 0;
        for (u32 i = 0; i < count; i++)
            data[shuffled(at + i, bytes, element_bytes)] =
                count == 4 ? word >> 8 * i : chunk[at + i];
    }
}

// What a literal of each part will cost in 1/256 bits, judged by the whole chunk's bytes.
__device__ __forceinline__ void literal_costs(Work& work, u32 bytes) {
    u32 warp = threadIdx.x / WARP, first = warp * PART_BYTES;
    u32* own = work.table + warp * 256;
    for (u32 i = threadIdx.x; i < WARPS * 256; i += THREADS) work.table[i] = 0;
    __syncthreads();
    for (u32 at = first + lane_id(); at < min(first + PART_BYTES, bytes); at += WARP)
        atomicAdd(&own[byte_at(work.data, at)], 1);
    __syncthreads();
    if (threadIdx.x < 256) {
        u32 sum = 0;
        for (u32 i = 0; i < WARPS; i++) sum += work.table[i * 256 + threadIdx.x];
        work.literal_count[threadIdx.x] = sum;
    }
    __syncthreads();
    u32 cost = 0, count = 0, all = log2_256(bytes);
    for (u32 symbol = lane_id(); symbol < 256; symbol += WARP) {
        count += own[symbol];
        if (own[symbol]) cost += own[symbol] * (all - log2_256(work.literal_count[symbol]));
    }
    count = warp_sum(count);
    cost = count ? warp_sum(cost) / count : 0;
    if (lane_id() == 0) work.literal_cost[warp] = max(cost, 256u);
    __syncthreads();
}

// Common bytes of two places that agree in the first four, at most `limit`. Each aligned word is
// loaded once.
__device__ __forceinline__ u32 common_bytes(const u32* data, u32 at, u32 candidate, u32 limit) {
    const u32 *here = data + at / 4 + 1, *there = data + candidate / 4 + 1;
    u32 here_low = *here, there_low = *there;
    for (u32 length = 4; length < limit; length += 4) {
        u32 here_high = *++here, there_high = *++there;
        u32 differs = __funnelshift_r(here_low, here_high, at % 4 * 8) ^
                      __funnelshift_r(there_low, there_high, candidate % 4 * 8);
        if (differs) return min(length + (__ffs(differs) - 1) / 8, limit);
        here_low = here_high, there_low = there_high;
    }
    return limit;
}

// Takes the match at `distance` if it is longer than the best so far. `own` are the four bytes
// at `at`.
__device__ __forceinline__ void consider(const u32* data, u32 at, u32 own, u32 distance, u32 limit,
                                         u32& best_length, u32& best_distance) {
    if (distance - 1 >= DISTANCE_MAX || distance > at || best_length == limit) return;
    u32 candidate = at - distance;
    if (own != load4(data, candidate)) return;
    // A longer match also agrees where the best one ends.
    u32 last = best_length - 3;
    if (best_length && load4(data, at + last) != load4(data, candidate + last)) return;
    u32 length = common_bytes(data, at, candidate, limit);
    if (length > best_length) {
        best_length = length;
        best_distance = distance;
    }
}

struct Match {
    u32 length, distance;
    int gain;  // bits saved against literals, in 1/256; at most 0 where it does not pay
};

// The best match of a position, given where its hash was seen and the end of its part.
__device__ __forceinline__ Match best_match(const u32* data, u32 at, u32 bucket, u32 end,
                                            u32 literal_cost) {
    if (at + MATCH_MIN > end) return {0, 0, 0};
    u32 limit = min(end - at, (u32)MATCH_SEARCHED), own = load4(data, at);
    u32 length = 0, distance = 0;
    consider(data, at, own, 1, limit, length, distance);
    consider(data, at, own, 4, limit, length, distance);
    consider(data, at, own, 8, limit, length, distance);
    consider(data, at, own, at - (bucket >> 16), limit, length, distance);
    consider(data, at, own, at - (bucket & 0xffff), limit, length, distance);
    if (!length) return {0, 0, 0};
    u32 distance_extra, value;
    distance_symbol(distance - 1, distance_extra, value);
    int cost = LENGTH_BITS + DISTANCE_BITS + distance_extra;
    return {length, distance, (int)(length * literal_cost) - (cost << 8)};
}

// For every position the two last ones with its hash, of earlier tiles: last << 16 | last but one.
__device__ __forceinline__ void seek(Work& work, u32 bytes, u32* buckets) {
    for (u32 i = threadIdx.x; i < 1 << TABLE_BITS; i += THREADS) work.table[i] = 0;
    __syncthreads();
    for (u32 at = threadIdx.x; at - threadIdx.x < bytes; at += THREADS) {
        bool whole = at + MATCH_MIN <= bytes;
        u32 hash = FULL, bucket = 0;
        if (whole) {
            hash = load4(work.data, at) * 2654435761u >> (32 - TABLE_BITS);
            bucket = work.table[hash];
            buckets[at] = bucket;
        }
        // In a run the next position would win anyway: no contest for one bucket.
        u32 next = __shfl_down_sync(FULL, hash, 1);
        bool wins = lane_id() == WARP - 1 || next != hash;
        __syncthreads();
        if (whole && wins) atomicMax(&work.table[hash], at << 16 | bucket >> 16);
        __syncthreads();
    }
}

// One warp: how far a match of MATCH_SEARCHED bytes really goes.
__device__ __forceinline__ u32 extend(const u32* data, u32 at, u32 distance, u32 limit) {
    u32 offset = MATCH_SEARCHED + lane_id() * 8, same = 0;
    if (offset < limit) {
        u32 low = load4(data, at + offset) ^ load4(data, at + offset - distance);
        u32 high = load4(data, at + offset + 4) ^ load4(data, at + offset + 4 - distance);
        same = low ? (__ffs(low) - 1) / 8 : high ? 4 + (__ffs(high) - 1) / 8 : 8;
    }
    u32 stopped = __ffs(__ballot_sync(FULL, same < 8)) - 1;
    return min(MATCH_SEARCHED + stopped * 8 + __shfl_sync(FULL, same, stopped), limit);
}

__device__ __forceinline__ void count_token(Work& work, u32 token) {
    if (token & MATCH_TOKEN) {
        u32 bits, extra;
        atomicAdd(&work.literal_count[length_symbol(token >> 16 & 255, bits, extra)], 1);
        atomicAdd(&work.distance_count[distance_symbol(token & 0x7fff, bits, extra)], 1);
    } else {
        atomicAdd(&work.literal_count[token], 1);
    }
}

// One warp: tokens of its part, written over `buckets` from the part's start on.
//
// Windows of 32 positions: which lanes would start a match is known at once; the warp then only
// walks from match to match, and passes over windows that a match covers. A match that the next
// position of the window beats is passed over too (lazy).
__device__ __forceinline__ u32 parse(Work& work, u32 bytes, u32* buckets) {
    u32 first = threadIdx.x / WARP * PART_BYTES;
    u32 end = min(first + PART_BYTES, bytes), tokens = 0;
    u32 literal_cost = work.literal_cost[threadIdx.x / WARP];
    u32 ahead = 0, expected = FULL;  // the next window's buckets are on their way
    for (u32 next = first, base = first; base < end; base = max(base + WARP, next & ~31u)) {
        u32 at = base + lane_id();
        u32 bucket = base == expected ? ahead : at < end ? buckets[at] : 0;
        expected = base + WARP;
        ahead = at + WARP < end ? buckets[at + WARP] : 0;
        Match match = best_match(work.data, at, bucket, end, literal_cost);
        u32 length = match.length, distance = match.distance;
        int after_gain = __shfl_down_sync(FULL, match.gain, 1);
        bool beaten = lane_id() < WARP - 1 && length < MATCH_SEARCHED && after_gain > match.gain;
        bool starts = match.gain > 0 && !beaten;
        u32 starting = __ballot_sync(FULL, starts);
        u32 literals = 0, chosen = 0;
        __syncwarp();
        u32 here = next - base;
        while (here < WARP) {
            u32 rest = starting & FULL << here;
            if (!rest) {
                literals |= FULL << here;
                here = WARP;
                break;
            }
            u32 lane = __ffs(rest) - 1;
            literals |= (FULL << here) & ((1u << lane) - 1);
            chosen |= 1u << lane;
            u32 taken = __shfl_sync(FULL, length, lane);
            if (taken == MATCH_SEARCHED) {
                u32 back = __shfl_sync(FULL, distance, lane);
                taken = extend(work.data, base + lane, back, min((u32)MATCH_MAX, end - base - lane));
                if (lane_id() == lane) length = taken;
            }
            here = lane + taken;
        }
        next = base + here;
        literals &= __ballot_sync(FULL, at < end);
        u32 emitted = literals | chosen;
        if (emitted >> lane_id() & 1) {
            u32 token = byte_at(work.data, at);
            if (chosen >> lane_id() & 1) token = MATCH_TOKEN | (length - 3) << 16 | (distance - 1);
            buckets[first + tokens + __popc(emitted & lanes_before())] = token;
            count_token(work, token);
        }
        tokens += __popc(emitted);
        __syncwarp();
    }
    return tokens;
}

// Thread 0: joins the two lightest again and again; leaves and inner nodes each come in order,
// with endlessly heavy ones behind them. A leaf goes before an inner node of the same weight.
__device__ void merge(Tree& tree, u32 leaves) {
    u32 leaf = 0, node = 0;
    for (u32 made = 0; made + 1 < leaves; made++) {
        u32 leaf_first = tree.weight[leaf], leaf_second = tree.weight[leaf + 1];
        u32 node_first = tree.inner[node], node_second = tree.inner[node + 1];
        if (leaf_second <= node_first) {
            tree.inner[made] = leaf_first + leaf_second;
            tree.leaf_parent[leaf] = tree.leaf_parent[leaf + 1] = made;
            leaf += 2;
        } else if (node_second < leaf_first) {
            tree.inner[made] = node_first + node_second;
            tree.inner_parent[node] = tree.inner_parent[node + 1] = made;
            node += 2;
        } else {
            tree.inner[made] = leaf_first + node_first;
            tree.leaf_parent[leaf++] = made;
            tree.inner_parent[node++] = made;
        }
    }
}

// Thread 0: no code longer than `limit`, and the first code of each length.
__device__ void limit_lengths(Tree& tree, u32 limit) {
    u32 total = 0;
    for (u32 length = 1; length <= limit; length++) total += tree.count[length] << (limit - length);
    for (; total > 1u << limit; total--) {
        tree.count[limit]--;
        u32 length = limit - 1;
        while (!tree.count[length]) length--;
        tree.count[length]--;
        tree.count[length + 1] += 2;
    }
    u32 code = 0;
    for (u32 length = 1; length <= limit; length++) {
        tree.first[length] = code;
        code = (code + tree.count[length]) << 1;
    }
}

// The block: canonical code of the counted symbols (288 at most), lengths in tree.length too.
__device__ void build_code(Tree& tree, const u32* counts, u32 symbols, u32 limit, u32* codes) {
    u32 own = threadIdx.x;
    bool used = own < symbols && counts[own];
    if (own < 288) {
        tree.key[own] = used ? counts[own] << 9 | own : FULL;
        tree.length[own] = 0;
    }
    if (own < 290) tree.weight[own] = tree.inner[own] = FULL;
    if (own < 16) tree.count[own] = 0;
    u32 leaves = __syncthreads_count(used);
    if (used) {
        u32 rank = 0;
        for (u32 i = 0; i < symbols; i++) rank += tree.key[i] < tree.key[own];
        tree.symbol[rank] = own;
        tree.weight[rank] = counts[own];
    }
    __syncthreads();
    if (own == 0) merge(tree, leaves);
    __syncthreads();
    if (own < leaves) {
        u32 depth = 1;
        if (leaves > 1)
            for (u32 node = tree.leaf_parent[own]; node != leaves - 2; node = tree.inner_parent[node])
                depth++;
        atomicAdd(&tree.count[min(depth, limit)], 1);
    }
    __syncthreads();
    if (own == 0) limit_lengths(tree, limit);
    __syncthreads();
    if (own < leaves) {
        u32 length = limit, rarer = tree.count[limit];
        while (own >= rarer) rarer += tree.count[--length];
        tree.length[tree.symbol[own]] = length;
    }
    __syncthreads();
    if (own < symbols) {
        u32 length = tree.length[own], code = tree.first[length];
        for (u32 i = 0; i < own; i++) code += tree.length[i] == length;
        codes[own] = length ? __brev(code) >> (32 - length) | length << 16 : 0;
    }
    __syncthreads();
}

// The block: the code lengths one after the other, those of unused symbols at the ends left off.
__device__ void list_lengths(Work& work) {
    if (threadIdx.x == 0) {
        work.literals = LITERALS;
        while (work.literals > 257 && !work.literal_code[work.literals - 1]) work.literals--;
        work.distances = DISTANCES;
        while (work.distances > 1 && !work.distance_code[work.distances - 1]) work.distances--;
    }
    if (threadIdx.x < LENGTHS) work.length_count[threadIdx.x] = 0;
    __syncthreads();
    u32 at = threadIdx.x;
    if (at < work.literals) work.length[at] = work.literal_code[at] >> 16;
    else if (at < work.literals + work.distances)
        work.length[at] = work.distance_code[at - work.literals] >> 16;
    __syncthreads();
}

// Thread 0: code lengths as runs, RFC 1951 3.2.7.
__device__ void list_runs(Work& work) {
    u32 all = work.literals + work.distances, items = 0;
    u16* item = work.item;
    for (u32 at = 0; at < all;) {
        u32 length = work.length[at], run = 1;
        while (at + run < all && work.length[at + run] == length) run++;
        at += run;
        if (length == 0) {
            for (; run >= 11; run -= min(run, 138u)) item[items++] = 18 | (min(run, 138u) - 11) << 5;
            if (run >= 3) item[items++] = 17 | (run - 3) << 5, run = 0;
        } else {
            item[items++] = length, run--;
            for (; run >= 3; run -= min(run, 6u)) item[items++] = 16 | (min(run, 6u) - 3) << 5;
        }
        for (; run; run--) item[items++] = length;
    }
    work.items = items;
}

__device__ __forceinline__ u32 length_order(u32 i) {
    const u8 order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    return order[i];
}

__device__ __forceinline__ u32 item_extra_bits(u32 symbol) {
    return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}

// Thread 0: number of code length codes, and the bits of the whole block header.
__device__ void size_header(Work& work) {
    work.lengths = LENGTHS;
    while (work.lengths > 4 && !work.length_code[length_order(work.lengths - 1)]) work.lengths--;
    u32 bits = 17 + 3 * work.lengths;
    for (u32 symbol = 0; symbol < LENGTHS; symbol++)
        bits += work.length_count[symbol] *
                ((work.length_code[symbol] >> 16) + item_extra_bits(symbol));
    work.header_bits = bits;
}

// Adds up to 64 bits at a position; the words start as zeros.
__device__ __forceinline__ void put(u32* out, u32 at, u64 value, u32 bits) {
    if (!bits) return;
    u32 word = at / 32, shift = at % 32;
    u64 low = value << shift;
    atomicOr(&out[word], (u32)low);
    if (shift + bits > 32) atomicOr(&out[word + 1], (u32)(low >> 32));
    if (shift + bits > 64) atomicOr(&out[word + 2], (u32)(value >> (64 - shift)));
}

// One warp: the block header.
__device__ void write_header(Work& work, u32 last) {
    if (lane_id() == 0) {
        u32 start = last | 2 << 1 | (work.literals - 257) << 3 | (work.distances - 1) << 8 |
                    (work.lengths - 4) << 13;
        put(work.data, 0, start, 17);
    }
    if (lane_id() < work.lengths)
        put(work.data, 17 + 3 * lane_id(), work.length_code[length_order(lane_id())] >> 16, 3);
    u32 at = 17 + 3 * work.lengths;
    for (u32 base = 0; base < work.items; base += WARP) {
        u32 item = base + lane_id() < work.items ? work.item[base + lane_id()] : FULL, bits = 0;
        u64 value = 0;
        if (item != FULL) {
            u32 code = work.length_code[item & 31];
            value = (code & 0xffff) | (item >> 5) << (code >> 16);
            bits = (code >> 16) + item_extra_bits(item & 31);
        }
        u32 before = warp_sum_before(bits);
        put(work.data, at + before, value, bits);
        at += __shfl_sync(FULL, before + bits, WARP - 1);
    }
}

// The bits of a token, first bit lowest.
__device__ __forceinline__ u64 token_bits(const Work& work, u32 token, u32& bits) {
    if (!(token & MATCH_TOKEN)) {
        u32 code = work.literal_code[token];
        bits = code >> 16;
        return code & 0xffff;
    }
    u32 extra_bits, extra;
    u32 code = work.literal_code[length_symbol(token >> 16 & 255, extra_bits, extra)];
    bits = code >> 16;
    u64 value = (code & 0xffff) | extra << bits;
    bits += extra_bits;
    code = work.distance_code[distance_symbol(token & 0x7fff, extra_bits, extra)];
    value |= (u64)(code & 0xffff) << bits;
    bits += code >> 16;
    value |= (u64)extra << bits;
    bits += extra_bits;
    return value;
}

__device__ __forceinline__ u32 count_bits(const Work& work, const u32* tokens, u32 count) {
    u32 sum = 0;
    for (u32 base = 4 * lane_id(); base < count; base += 4 * WARP) {
        uint4 four = *(const uint4*)(tokens + base);
        u32 token[4] = {four.x, four.y, four.z, four.w};
        for (int i = 0; i < 4; i++) {
            u32 bits = 0;
            if (base + i < count) token_bits(work, token[i], bits);
            sum += bits;
        }
    }
    return warp_sum(sum);
}

// Two tokens a lane and round.
__device__ __forceinline__ void write_tokens(Work& work, const u32* tokens, u32 count, u32 at) {
    uint2 two = *(const uint2*)(tokens + 2 * lane_id());
    for (u32 base = 2 * lane_id(); base - 2 * lane_id() < count; base += 2 * WARP) {
        uint2 ahead = make_uint2(0, 0);
        if (base + 2 * WARP < count) ahead = *(const uint2*)(tokens + base + 2 * WARP);
        u32 bits = 0, more_bits = 0;
        u64 value = 0, more = 0;
        if (base < count) value = token_bits(work, two.x, bits);
        if (base + 1 < count) more = token_bits(work, two.y, more_bits);
        two = ahead;
        u32 before = warp_sum_before(bits + more_bits);
        if (bits + more_bits <= 64) {
            put(work.data, at + before, value | more << bits % 64, bits + more_bits);
        } else {
            put(work.data, at + before, value, bits);
            put(work.data, at + before + bits, more, more_bits);
        }
        at += __shfl_sync(FULL, before + bits + more_bits, WARP - 1);
    }
}

// The block: the chunk in stored pieces; returns the size.
__device__ u32 write_stored(const u8* chunk, u32 bytes, u32 element_bytes, u32 last, u8* slot) {
    u32 pieces = (bytes + STORED_PIECE - 1) / STORED_PIECE;
    for (u32 from = threadIdx.x; from < bytes; from += THREADS) {
        u32 at = element_bytes == 1 ? from : shuffled(from, bytes, element_bytes);
        slot[at + 5 * (at / STORED_PIECE + 1)] = chunk[from];
    }
    u32 piece = threadIdx.x;
    if (piece < pieces) {
        u8* header = slot + piece * (STORED_PIECE + 5);
        u32 length = min((u32)STORED_PIECE, bytes - piece * STORED_PIECE);
        header[0] = last && piece + 1 == pieces;
        header[1] = length, header[2] = length >> 8;
        header[3] = ~length, header[4] = ~length >> 8;
    }
    return bytes + 5 * pieces;
}

// The block: counts -> codes -> the header's contents.
__device__ void build_codes(Work& work) {
    if (threadIdx.x == 0) {
        work.literal_count[END_OF_BLOCK] = 1;
        bool any = false;
        for (u32 i = 0; i < DISTANCES; i++) any |= work.distance_count[i] != 0;
        // A block without matches still names one distance.
        if (!any) work.distance_count[0] = 1;
    }
    __syncthreads();
    build_code(work.tree, work.literal_count, LITERALS, 15, work.literal_code);
    build_code(work.tree, work.distance_count, DISTANCES, 15, work.distance_code);
    list_lengths(work);
    if (threadIdx.x == 0) list_runs(work);
    __syncthreads();
    if (threadIdx.x < work.items) atomicAdd(&work.length_count[work.item[threadIdx.x] & 31], 1);
    __syncthreads();
    build_code(work.tree, work.length_count, LENGTHS, 7, work.length_code);
    if (threadIdx.x == 0) size_header(work);
    __syncthreads();
}

__device__ void compress_chunk(Work& work, const u8* chunk, u32 bytes, u32 element_bytes,
                               u32 last, u32* tokens, u8* slot, u64* size) {
    u32 warp = threadIdx.x / WARP;
    load_chunk(work, chunk, bytes, element_bytes);
    __syncthreads();
    literal_costs(work, bytes);
    seek(work, bytes, tokens);
    if (threadIdx.x < 288) work.literal_count[threadIdx.x] = 0;
    if (threadIdx.x < 32) work.distance_count[threadIdx.x] = 0;
    __syncthreads();
    u32 count = parse(work, bytes, tokens);
    __syncthreads();
    build_codes(work);

    const u32* own = tokens + warp * PART_BYTES;
    u32 bits = count_bits(work, own, count);
    if (lane_id() == 0) work.bits[warp] = bits;
    for (u32 i = threadIdx.x; i < CHUNK_BYTES / 4 + 8; i += THREADS) work.data[i] = 0;
    __syncthreads();
    u32 at = work.header_bits, end = at;
    for (u32 i = 0; i < WARPS; i++) {
        if (i < warp) at += work.bits[i];
        end += work.bits[i];
    }
    u32 end_code = work.literal_code[END_OF_BLOCK];
    u32 end_bits = end + (end_code >> 16);
    u32 packed = last ? (end_bits + 7) / 8 : (end_bits + 3 + 7) / 8 + 4;
    if (packed >= bytes + 5 * ((bytes + STORED_PIECE - 1) / STORED_PIECE)) {
        u32 stored = write_stored(chunk, bytes, element_bytes, last, slot);
        if (threadIdx.x == 0) *size = stored;
        __syncthreads();
        return;
    }
    if (warp == 0) write_header(work, last);
    if (threadIdx.x == 0) {
        put(work.data, end, end_code & 0xffff, end_code >> 16);
        // An empty stored block, not the last one: its three bits and its length are zeros.
        if (!last) put(work.data, packed * 8 - 16, 0xffff, 16);
    }
    write_tokens(work, own, count, at);
    __syncthreads();
    for (u32 i = threadIdx.x; i < (packed + 15) / 16; i += THREADS)
        ((uint4*)slot)[i] = ((const uint4*)work.data)[i];
    if (threadIdx.x == 0) *size = packed;
    __syncthreads();
}

// last: 1, every chunk is a stream of its own; 0, it ends between two bytes and others may follow.
// scratch: gridDim.x times CHUNK_BYTES words. Dynamic shared memory: 110 KiB.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
deflate_chunks(const u8* input, u64 input_bytes, u32 element_bytes, u32 last, u32* scratch,
               u8* slots, u64* sizes) {
    extern __shared__ uint4 memory[];
    Work& work = *(Work*)memory;
    u64 chunks = (input_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    for (u64 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        u64 at = chunk * CHUNK_BYTES;
        u32 bytes = (u32)min((u64)CHUNK_BYTES, input_bytes - at);
        compress_chunk(work, input + at, bytes, element_bytes, last,
                       scratch + (u64)blockIdx.x * CHUNK_BYTES, slots + chunk * SLOT_BYTES,
                       sizes + chunk);
    }
}
