// Float codec: numbers -> transform -> byte planes -> rANS where a plane pays, raw where not.
//
// The format is in docs/GPU.md and in crates/reduce/src/float/format.rs; tests/stand-in/src/float encodes to the same
// bytes. A block of 256 threads takes one chunk, each of its eight warps one segment of it.
//
// encode: sample -> choose transform and candidate planes -> count symbols -> normalise ->
//         code segments backwards into a slot; pack brings the slots together.
// decode: tables from the stored frequencies -> decode segments forwards.
//
// A warp codes 32 lanes side by side. A lane holds one state for all planes and takes 8 bytes of
// numbers per round: one f64, two f32 or four bf16. Lanes that must renormalise take the next
// 16-bit words in lane order, so no lane needs a stream of its own.

#define SEGMENTS 8
#define SEGMENT_BYTES 32768
#define CHUNK_BYTES (SEGMENTS * SEGMENT_BYTES)
#define HEADER_BYTES 64
#define SYMBOLS 256
#define FREQUENCIES_BYTES (2 * SYMBOLS)
#define STATES_BYTES (4 * WARP)

#define PROBABILITY_BITS 11
#define PROBABILITY (1u << PROBABILITY_BITS)
#define STATE_MIN (1u << 15)

// A round never produces more words than this many bytes; a segment that comes closer to its
// limit is stored as it is.
#define ROUND_BYTES_MAX 512
#define SEGMENT_SLOT (STATES_BYTES + SEGMENT_BYTES + 2 * ROUND_BYTES_MAX)
#define SEGMENTS_AT (HEADER_BYTES + 8 * FREQUENCIES_BYTES)
#define SLOT_BYTES (SEGMENTS_AT + SEGMENTS * SEGMENT_SLOT)

#define SAMPLED_ROUNDS 4  // per segment

#define MODE_STORED 0
#define MODE_CODED 1
#define ROTATE 0
#define DELTA 1
#define PLANE_RAW 0
#define PLANE_CONSTANT 1
#define PLANE_CODED 2
#define ESCAPED FULL

struct Header {
    u8 mode, transform, element_bytes, tail_bytes;
    u32 elements;
    u8 plane_mode[8];
    u8 plane_constant[8];
    u8 tail[8];
    u32 words[SEGMENTS];
};

template <int E> struct Number;
template <> struct Number<2> { typedef u16 T; };
template <> struct Number<4> { typedef u32 T; };
template <> struct Number<8> { typedef u64 T; };

__device__ __forceinline__ u32 round16(u32 bytes) { return (bytes + 15) & ~15u; }

template <typename T>
__device__ __forceinline__ T rotate(T value) {
    return (T)(value << 1) | (T)(value >> (8 * sizeof(T) - 1));
}

template <typename T>
__device__ __forceinline__ T rotate_back(T value) {
    return (T)(value >> 1) | (T)(value << (8 * sizeof(T) - 1));
}

// Difference to the number before, with its sign in the lowest bit.
template <typename T>
__device__ __forceinline__ T difference(T value, T before) {
    T delta = (T)(value - before);
    return (T)((T)(delta << 1) ^ (T)(0 - (T)(delta >> (8 * sizeof(T) - 1))));
}

template <typename T>
__device__ __forceinline__ T difference_back(T coded) {
    return (T)((T)(coded >> 1) ^ (T)(0 - (T)(coded & 1)));
}

// The numbers of this lane in a round; zeros past the end.
template <int E>
struct Lane {
    typedef typename Number<E>::T T;
    static const int COUNT = 8 / E;
    T value[COUNT];
    T before;  // the number ahead of the first
    u32 first;
    u32 valid;

    __device__ __forceinline__ void place(u32 round, u32 count) {
        first = (round * WARP + lane_id()) * COUNT;
        valid = first >= count ? 0 : min(count - first, (u32)COUNT);
    }

    __device__ __forceinline__ void load(const T* segment, u32 round, u32 count) {
        place(round, count);
        if (valid == COUNT) {
            u64 word = *(const u64*)(segment + first);
            for (int i = 0; i < COUNT; i++) value[i] = (T)(word >> (8 * E * i % 64));
        } else {
            for (int i = 0; i < COUNT; i++) value[i] = i < valid ? segment[first + i] : 0;
        }
        before = valid && first ? segment[first - 1] : 0;
    }

    __device__ __forceinline__ T coded(int i, u32 transform) const {
        if (i >= valid) return 0;
        if (transform == ROTATE) return rotate(value[i]);
        return difference(value[i], i ? value[i - 1] : before);
    }
};

// What the encoder's warps share. The counters are dead when the tables are filled.
template <int E>
struct Encoder {
    static const int COPIES = 32 / E;  // of each counter, against conflicts
    union {
        u32 counter[E * SYMBOLS * COPIES];
        uint2 table[E * SYMBOLS];
    };
    u32 cost[2][E];
    u32 plane_mode[E];
    u32 transform;
    Header header;
};

template <int E>
__device__ __forceinline__ void clear_counters(Encoder<E>& shared) {
    for (u32 i = threadIdx.x; i < E * SYMBOLS * Encoder<E>::COPIES; i += blockDim.x)
        shared.counter[i] = 0;
}

// Counts a few rounds of the segment under both transforms.
template <int E>
__device__ __forceinline__ void sample(Encoder<E>& shared, const typename Number<E>::T* segment,
                                       u32 count) {
    const int copies = Encoder<E>::COPIES / 2;
    u32 rounds = (count + WARP * Lane<E>::COUNT - 1) / (WARP * Lane<E>::COUNT);
    u32 step = max(rounds / SAMPLED_ROUNDS, 1u);
    for (u32 k = 0; k < SAMPLED_ROUNDS && k * step < rounds; k++) {
        Lane<E> lane;
        lane.load(segment, k * step, count);
        for (int i = 0; i < Lane<E>::COUNT; i++) {
            if (i >= lane.valid) continue;
            for (int transform = 0; transform < 2; transform++) {
                u64 coded = lane.coded(i, transform);
                for (int plane = 0; plane < E; plane++) {
                    u32 symbol = (u32)(coded >> 8 * plane) & 255;
                    u32 at = (transform * E + plane) * SYMBOLS + symbol;
                    atomicAdd(&shared.counter[at * copies + lane_id() % copies], 1);
                }
            }
        }
    }
}

// Bits (in 1/256) that a plane of the sample takes; 8 a symbol where coding hardly pays. Warps
// 0 to E-1.
template <int E>
__device__ __forceinline__ void estimate(Encoder<E>& shared, u32 plane) {
    const int copies = Encoder<E>::COPIES / 2;
    for (int transform = 0; transform < 2; transform++) {
        u32 samples = 0, weighted = 0;
        for (int i = 0; i < SYMBOLS / WARP; i++) {
            u32 at = (transform * E + plane) * SYMBOLS + i * WARP + lane_id(), count = 0;
            for (int copy = 0; copy < copies; copy++) count += shared.counter[at * copies + copy];
            samples += count;
            if (count) weighted += count * log2_256(count);
        }
        samples = warp_sum(samples);
        u32 cost = samples ? samples * log2_256(samples) - warp_sum(weighted) : 0;
        if (cost > samples * 1920) cost = samples * 2048;
        if (lane_id() == 0) shared.cost[transform][plane] = cost;
        if (lane_id() == 0 && transform == 0) shared.plane_mode[plane] = samples;
    }
}

// Thread 0: the cheaper transform; planes worth counting are PLANE_CODED for now.
template <int E>
__device__ __forceinline__ void choose(Encoder<E>& shared) {
    u32 sum[2] = {0, 0};
    for (int transform = 0; transform < 2; transform++)
        for (int plane = 0; plane < E; plane++) sum[transform] += shared.cost[transform][plane];
    shared.transform = sum[1] < sum[0] ? DELTA : ROTATE;
    for (int plane = 0; plane < E; plane++) {
        bool pays = shared.cost[shared.transform][plane] < shared.plane_mode[plane] * 2048;
        shared.plane_mode[plane] = pays ? PLANE_CODED : PLANE_RAW;
    }
}

template <int E>
__device__ __forceinline__ void count_symbols(Encoder<E>& shared,
                                              const typename Number<E>::T* segment, u32 count) {
    const int copies = Encoder<E>::COPIES;
    u32 rounds = (count + WARP * Lane<E>::COUNT - 1) / (WARP * Lane<E>::COUNT);
    u32 transform = shared.transform, copy = lane_id() % copies;
    bool candidate[E];
    for (int plane = 0; plane < E; plane++) candidate[plane] = shared.plane_mode[plane] == PLANE_CODED;
    for (u32 round = 0; round < rounds; round++) {
        Lane<E> lane;
        lane.load(segment, round, count);
        for (int i = 0; i < Lane<E>::COUNT; i++) {
            u64 coded = lane.coded(i, transform);
            for (int plane = 0; plane < E; plane++) {
                u32 symbol = (u32)(coded >> 8 * plane) & 255;
                if (candidate[plane] && i < lane.valid)
                    atomicAdd(&shared.counter[(plane * SYMBOLS + symbol) * copies + copy], 1);
            }
        }
    }
}

// The eight symbols of a lane of the warp that normalises a plane: lane * 8 and the next seven.
struct Symbols {
    u32 count[8], frequency[8];
    u32 mode;

    __device__ __forceinline__ u32 scaled(u32 factor) {
        u32 sum = 0;
        for (int i = 0; i < 8; i++) {
            frequency[i] = count[i] ? max(count[i] * factor >> 20, 1u) : 0;
            sum += frequency[i];
        }
        return warp_sum(sum);
    }

    // Frequencies that sum to PROBABILITY: the largest factor that stays below it, and what is
    // left goes to the most frequent symbol (the first of equals).
    __device__ __forceinline__ void normalise(u32 total) {
        u32 high = (PROBABILITY << 20) / total, low = high - high / 8;
        while (low < high) {
            u32 middle = low + (high - low + 1) / 2;
            if (scaled(middle) <= PROBABILITY) low = middle;
            else high = middle - 1;
        }
        u32 rest = PROBABILITY - scaled(low);
        u32 best = 0;
        for (int i = 0; i < 8; i++) best = max(best, count[i] << 8 | (255 - (lane_id() * 8 + i)));
        best = __reduce_max_sync(FULL, best);
        for (int i = 0; i < 8; i++)
            if ((255 - (best & 255)) == lane_id() * 8 + i) frequency[i] += rest;
    }

    __device__ __forceinline__ u32 coded_bytes() const {
        u32 bits = 0;
        for (int i = 0; i < 8; i++)
            if (count[i]) bits += count[i] * ((PROBABILITY_BITS << 8) - log2_256(frequency[i]));
        return (warp_sum(bits) >> 8) / 8;
    }
};

// One warp: reads a candidate plane's counters, decides what becomes of the plane.
template <int E>
__device__ __forceinline__ void decide(Encoder<E>& shared, u32 plane, Symbols& symbols) {
    const int copies = Encoder<E>::COPIES;
    symbols.mode = shared.plane_mode[plane];
    if (symbols.mode == PLANE_RAW) return;
    u32 total = 0, distinct = 0, constant = 0;
    for (int i = 0; i < 8; i++) {
        u32 at = (plane * SYMBOLS + lane_id() * 8 + i) * copies, count = 0;
        for (int copy = 0; copy < copies; copy++) count += shared.counter[at + copy];
        symbols.count[i] = count;
        total += count;
        distinct += count != 0;
        if (count) constant = lane_id() * 8 + i;
    }
    total = warp_sum(total);
    distinct = warp_sum(distinct);
    if (distinct == 1) {
        constant = __reduce_max_sync(FULL, constant);
        symbols.mode = PLANE_CONSTANT;
        if (lane_id() == 0) shared.header.plane_constant[plane] = constant;
        return;
    }
    symbols.normalise(total);
    if (symbols.coded_bytes() + FREQUENCIES_BYTES >= total - total / 32) symbols.mode = PLANE_RAW;
}

// What a coding step needs of one symbol: x reciprocal, y frequency, bias and shift.
__device__ __forceinline__ uint2 encoder_entry(u32 frequency, u32 start) {
    if (frequency < 2) return make_uint2(FULL, frequency | (start + PROBABILITY - 1) << 11);
    u32 shift = 32 - __clz(frequency - 1);
    u32 reciprocal = (u32)(((1ull << (shift + 31)) + frequency - 1) / frequency);
    return make_uint2(reciprocal, frequency | start << 11 | (shift - 1) << 23);
}

// One warp: fills the plane's coding table, and its frequencies in the slot.
template <int E>
__device__ __forceinline__ void fill_table(Encoder<E>& shared, u32 plane, const Symbols& symbols,
                                           u8* slot) {
    if (lane_id() == 0) shared.plane_mode[plane] = symbols.mode;
    if (symbols.mode != PLANE_CODED) return;
    u32 sum = 0;
    for (int i = 0; i < 8; i++) sum += symbols.frequency[i];
    u32 start = warp_sum_before(sum);
    u16* stored = (u16*)(slot + HEADER_BYTES + plane * FREQUENCIES_BYTES);
    for (int i = 0; i < 8; i++) {
        u32 symbol = lane_id() * 8 + i;
        shared.table[plane * SYMBOLS + symbol] = encoder_entry(symbols.frequency[i], start);
        stored[symbol] = symbols.frequency[i];
        start += symbols.frequency[i];
    }
}

// One step of all lanes: `words` grows downwards.
__device__ __forceinline__ void encode_symbol(u32& state, u16*& words, uint2 entry, bool active) {
    u32 frequency = entry.y & (PROBABILITY - 1);
    bool full = active && state >= frequency << 20;
    u32 mask = __ballot_sync(FULL, full);
    words -= __popc(mask);
    if (full) {
        words[__popc(mask & lanes_before())] = (u16)state;
        state >>= 16;
    }
    u32 quotient = __umulhi(state, entry.x) >> (entry.y >> 23);
    u32 coded = state + (entry.y >> 11 & 4095) + quotient * (PROBABILITY - frequency);
    if (active) state = coded;
}

// The bytes of one plane of a lane's numbers, as one word.
template <int E>
__device__ __forceinline__ u32 plane_bytes(const u64 (&coded)[8 / E], int plane) {
    u32 bytes = 0;
    for (int i = 0; i < 8 / E; i++) bytes |= ((u32)(coded[i] >> 8 * plane) & 255) << 8 * i;
    return bytes;
}

template <int E>
__device__ __forceinline__ void store_plane(u8* plane_start, u32 first, u32 bytes) {
    if (E == 8) plane_start[first] = bytes;
    if (E == 4) *(u16*)(plane_start + first) = bytes;
    if (E == 2) *(u32*)(plane_start + first) = bytes;
}

// One warp: codes its segment into its part of the slot; returns the number of words.
template <int E>
__device__ __forceinline__ u32 encode_segment(const Encoder<E>& shared,
                                              const typename Number<E>::T* segment, u32 count,
                                              u8* slot) {
    u32 stride = round16(count), raw_planes = 0, coded_planes = 0;
    u32 mode[E], raw_at[E];
    for (int plane = 0; plane < E; plane++) {
        mode[plane] = shared.plane_mode[plane];
        raw_at[plane] = STATES_BYTES + raw_planes * stride;
        raw_planes += mode[plane] == PLANE_RAW;
        coded_planes += mode[plane] == PLANE_CODED;
    }
    u16* end = (u16*)(slot + SEGMENT_SLOT);
    u16* limit = (u16*)(slot + STATES_BYTES + raw_planes * stride + ROUND_BYTES_MAX);
    u16* words = end;
    u32 state = STATE_MIN, transform = shared.transform;
    u32 rounds = (count + WARP * Lane<E>::COUNT - 1) / (WARP * Lane<E>::COUNT);
    for (u32 round = rounds; round-- > 0;) {
        if (words < limit) return ESCAPED;
        Lane<E> lane;
        lane.load(segment, round, count);
        u64 coded[Lane<E>::COUNT];
        for (int i = 0; i < Lane<E>::COUNT; i++) coded[i] = lane.coded(i, transform);
        for (int plane = 0; plane < E; plane++)
            if (mode[plane] == PLANE_RAW && lane.first < stride)
                store_plane<E>(slot + raw_at[plane], lane.first, plane_bytes<E>(coded, plane));
        for (int i = Lane<E>::COUNT - 1; i >= 0; i--)
            for (int plane = E - 1; plane >= 0; plane--) {
                if (mode[plane] != PLANE_CODED) continue;
                u32 symbol = (u32)(coded[i] >> 8 * plane) & 255;
                encode_symbol(state, words, shared.table[plane * SYMBOLS + symbol], i < lane.valid);
            }
    }
    if (coded_planes) ((u32*)slot)[lane_id()] = state;
    return end - words;
}

__device__ __forceinline__ u32 segment_elements(u32 elements, u32 element_bytes, u32 segment) {
    u32 most = SEGMENT_BYTES / element_bytes, first = segment * most;
    return first >= elements ? 0 : min(elements - first, most);
}

// Bytes of a segment in the packed chunk.
__device__ __forceinline__ u32 segment_bytes(const Header& header, u32 segment) {
    u32 count = segment_elements(header.elements, header.element_bytes, segment);
    if (header.words[segment] == ESCAPED) return round16(count * header.element_bytes);
    u32 raw = 0, coded = 0;
    for (int plane = 0; plane < header.element_bytes; plane++) {
        raw += header.plane_mode[plane] == PLANE_RAW;
        coded += header.plane_mode[plane] == PLANE_CODED;
    }
    return raw * round16(count) + (coded ? STATES_BYTES + round16(2 * header.words[segment]) : 0);
}

__device__ __forceinline__ u32 tables_bytes(const Header& header) {
    u32 coded = 0;
    for (int plane = 0; plane < 8; plane++) coded += header.plane_mode[plane] == PLANE_CODED;
    return coded * FREQUENCIES_BYTES;
}

// Thread 0: the chunk's header, and its size when packed.
template <int E>
__device__ __forceinline__ u64 seal(Encoder<E>& shared, const u8* chunk, u32 bytes) {
    Header& header = shared.header;
    header.mode = MODE_CODED;
    header.transform = shared.transform;
    header.element_bytes = E;
    header.tail_bytes = bytes % E;
    header.elements = bytes / E;
    for (int plane = 0; plane < E; plane++) header.plane_mode[plane] = shared.plane_mode[plane];
    for (int i = 0; i < bytes % E; i++) header.tail[i] = chunk[bytes - bytes % E + i];
    u64 size = HEADER_BYTES + tables_bytes(header);
    for (u32 segment = 0; segment < SEGMENTS; segment++) size += segment_bytes(header, segment);
    if (size < HEADER_BYTES + (u64)bytes) return size;
    header.mode = MODE_STORED;
    return HEADER_BYTES + (u64)bytes;
}

template <int E>
__device__ __forceinline__ void encode_chunks(const u8* input, u64 input_bytes, u8* slots,
                                              u64* sizes) {
    typedef typename Number<E>::T T;
    __shared__ Encoder<E> shared;
    u64 chunk_at = (u64)blockIdx.x * CHUNK_BYTES;
    u32 bytes = (u32)min((u64)CHUNK_BYTES, input_bytes - chunk_at);
    u8* slot = slots + (u64)blockIdx.x * SLOT_BYTES;
    u32 warp = threadIdx.x / WARP;
    const T* segment = (const T*)(input + chunk_at + warp * SEGMENT_BYTES);
    u32 count = segment_elements(bytes / E, E, warp);

    clear_counters(shared);
    for (u32 i = threadIdx.x; i < sizeof(Header); i += blockDim.x) ((u8*)&shared.header)[i] = 0;
    __syncthreads();
    sample(shared, segment, count);
    __syncthreads();
    if (warp < E) estimate(shared, warp);
    __syncthreads();
    if (threadIdx.x == 0) choose(shared);
    clear_counters(shared);
    __syncthreads();
    count_symbols(shared, segment, count);
    __syncthreads();
    Symbols symbols;
    if (warp < E) decide(shared, warp, symbols);
    __syncthreads();
    if (warp < E) fill_table(shared, warp, symbols, slot);
    __syncthreads();
    u32 words = encode_segment(shared, segment, count,
                               slot + SEGMENTS_AT + (u64)warp * SEGMENT_SLOT);
    if (lane_id() == 0) shared.header.words[warp] = words;
    __syncthreads();
    if (threadIdx.x == 0) sizes[blockIdx.x] = seal(shared, input + chunk_at, bytes);
    __syncthreads();
    if (threadIdx.x < HEADER_BYTES / 4)
        ((u32*)slot)[threadIdx.x] = ((const u32*)&shared.header)[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(256)
float_encode_2(const u8* input, u64 bytes, u8* slots, u64* sizes) {
    encode_chunks<2>(input, bytes, slots, sizes);
}
extern "C" __global__ void __launch_bounds__(256)
float_encode_4(const u8* input, u64 bytes, u8* slots, u64* sizes) {
    encode_chunks<4>(input, bytes, slots, sizes);
}
extern "C" __global__ void __launch_bounds__(256)
float_encode_8(const u8* input, u64 bytes, u8* slots, u64* sizes) {
    encode_chunks<8>(input, bytes, slots, sizes);
}

// Copies with all `threads`; both sides 16-byte aligned, the last piece padded with zeros.
__device__ __forceinline__ void copy_padded(u8* to, const u8* from, u64 bytes, u32 thread,
                                            u32 threads) {
    u64 whole = bytes / 16;
    for (u64 at = thread; at < whole; at += threads) ((uint4*)to)[at] = ((const uint4*)from)[at];
    if (bytes % 16 && thread < 16)
        to[whole * 16 + thread] = thread < bytes % 16 ? from[whole * 16 + thread] : 0;
}

// One warp: a segment from its slot to its place. The words are only 2-byte aligned in the slot.
__device__ __forceinline__ void pack_segment(u8* to, const u8* slot, const u8* raw,
                                             const Header& header, u32 segment) {
    u32 count = segment_elements(header.elements, header.element_bytes, segment);
    u32 words = header.words[segment];
    if (words == ESCAPED)
        return copy_padded(to, raw, (u64)count * header.element_bytes, lane_id(), WARP);
    u32 bytes = segment_bytes(header, segment);
    u32 coded_bytes = tables_bytes(header) ? STATES_BYTES + round16(2 * words) : 0;
    u32 raw_bytes = bytes - coded_bytes;
    copy_padded(to, slot + STATES_BYTES, raw_bytes, lane_id(), WARP);
    if (!coded_bytes) return;
    to += raw_bytes;
    copy_padded(to, slot, STATES_BYTES, lane_id(), WARP);
    const u16* from = (const u16*)(slot + SEGMENT_SLOT) - words;
    u32* pairs = (u32*)(to + STATES_BYTES);
    for (u32 at = lane_id(); at < round16(2 * words) / 4; at += WARP) {
        u32 low = 2 * at < words ? from[2 * at] : 0;
        u32 high = 2 * at + 1 < words ? from[2 * at + 1] : 0;
        pairs[at] = low | high << 16;
    }
}

// One block per chunk; `starts` are multiples of 16.
extern "C" __global__ void __launch_bounds__(256)
float_pack(const u8* input, u64 input_bytes, const u8* slots, const u64* starts, u8* out) {
    __shared__ Header header;
    u64 chunk_at = (u64)blockIdx.x * CHUNK_BYTES;
    u32 bytes = (u32)min((u64)CHUNK_BYTES, input_bytes - chunk_at);
    const u8* slot = slots + (u64)blockIdx.x * SLOT_BYTES;
    u8* to = out + starts[blockIdx.x];
    u32 warp = threadIdx.x / WARP;
    if (threadIdx.x < HEADER_BYTES / 4)
        ((u32*)&header)[threadIdx.x] = ((const u32*)slot)[threadIdx.x];
    __syncthreads();
    copy_padded(to, slot, HEADER_BYTES, threadIdx.x, blockDim.x);
    to += HEADER_BYTES;
    if (header.mode == MODE_STORED)
        return copy_padded(to, input + chunk_at, bytes, threadIdx.x, blockDim.x);
    for (u32 plane = 0; plane < header.element_bytes; plane++) {
        if (header.plane_mode[plane] != PLANE_CODED) continue;
        const u8* frequencies = slot + HEADER_BYTES + plane * FREQUENCIES_BYTES;
        copy_padded(to, frequencies, FREQUENCIES_BYTES, threadIdx.x, blockDim.x);
        to += FREQUENCIES_BYTES;
    }
    for (u32 segment = 0; segment < warp; segment++) to += segment_bytes(header, segment);
    pack_segment(to, slot + SEGMENTS_AT + (u64)warp * SEGMENT_SLOT,
                 input + chunk_at + warp * SEGMENT_BYTES, header, warp);
}

template <int E>
struct Decoder {
    u32 table[E * PROBABILITY];
    Header header;
    u32 bad_header, bad_table;  // two, since a fast warp fills tables while others check the header
};
static_assert(sizeof(Decoder<8>) <= 8 * 8192 + 128, "dynamic shared memory of float_decode_8");

// One warp: the decoding table of a plane; false where the frequencies do not sum up.
__device__ __forceinline__ bool fill_decoder(u32* table, const u16* frequencies) {
    u32 frequency[8], sum = 0;
    for (int i = 0; i < 8; i++) sum += frequency[i] = frequencies[lane_id() * 8 + i];
    u32 start = warp_sum_before(sum);
    if (warp_sum(sum) != PROBABILITY) return false;
    for (u32 symbol = 0; symbol < SYMBOLS; symbol++) {
        u32 own = 0, own_start = start;
        for (int i = 0; i < 8; i++) {
            if (i < symbol % 8) own_start += frequency[i];
            if (i == symbol % 8) own = frequency[i];
        }
        u32 count = __shfl_sync(FULL, own, symbol / 8);
        u32 first = __shfl_sync(FULL, own_start, symbol / 8);
        for (u32 i = lane_id(); i < count; i += WARP)
            table[first + i] = symbol | (count & 2047) << 8 | i << 19;
    }
    return true;
}

// Whether the header fits the chunk that is expected here and the bytes that are there.
__device__ __forceinline__ bool sound(const Header& header, u32 element_bytes, u32 bytes,
                                      u64 stored_bytes) {
    if (header.mode == MODE_STORED) return stored_bytes == HEADER_BYTES + (u64)bytes;
    if (header.mode != MODE_CODED || header.transform > DELTA) return false;
    if (header.element_bytes != element_bytes || header.elements != bytes / element_bytes ||
        header.tail_bytes != bytes % element_bytes)
        return false;
    for (u32 plane = 0; plane < 8; plane++) {
        u32 most = plane < element_bytes ? PLANE_CODED : PLANE_RAW;
        if (header.plane_mode[plane] > most) return false;
    }
    u64 size = HEADER_BYTES + tables_bytes(header);
    for (u32 segment = 0; segment < SEGMENTS; segment++) {
        u32 words = header.words[segment];
        if (words != ESCAPED && words > SEGMENT_BYTES) return false;
        size += segment_bytes(header, segment);
    }
    return size == stored_bytes;
}

__device__ __forceinline__ u32 decode_symbol(u32& state, const u16*& words, const u16* end,
                                             const u32* table, bool active) {
    u32 entry = table[state & (PROBABILITY - 1)];
    u32 decoded = (entry >> 8 & 2047) * (state >> PROBABILITY_BITS) + (entry >> 19);
    bool empty = active && decoded < STATE_MIN;
    u32 mask = __ballot_sync(FULL, empty);
    if (empty) {
        const u16* word = words + __popc(mask & lanes_before());
        decoded = decoded << 16 | (word < end ? *word : 0);
    }
    words += __popc(mask);
    if (active) state = decoded;
    return entry & 255;
}

// Turns coded numbers back; `carry` is the last number of the round before.
template <int E>
__device__ __forceinline__ void restore(Lane<E>& lane, const u64 (&coded)[8 / E], u32 transform,
                                        typename Number<E>::T& carry) {
    typedef typename Number<E>::T T;
    if (transform == ROTATE) {
        for (int i = 0; i < Lane<E>::COUNT; i++) lane.value[i] = rotate_back((T)coded[i]);
        return;
    }
    u64 sum = 0;
    for (int i = 0; i < Lane<E>::COUNT; i++) {
        sum += difference_back((T)coded[i]);
        lane.value[i] = (T)sum;
    }
    u64 all = (T)sum;
    for (int step = 1; step < WARP; step *= 2) {
        u64 other = E == 8 ? __shfl_up_sync(FULL, all, step)
                           : (u64)__shfl_up_sync(FULL, (u32)all, step);
        if (lane_id() >= step) all += other;
    }
    T before = (T)(all - sum) + carry;
    for (int i = 0; i < Lane<E>::COUNT; i++) lane.value[i] = (T)(lane.value[i] + before);
    T last = lane.value[Lane<E>::COUNT - 1];
    carry = E == 8 ? (T)__shfl_sync(FULL, (u64)last, WARP - 1)
                   : (T)__shfl_sync(FULL, (u32)last, WARP - 1);
}

template <int E>
__device__ __forceinline__ void store_numbers(typename Number<E>::T* segment, const Lane<E>& lane) {
    if (lane.valid == Lane<E>::COUNT) {
        u64 word = 0;
        for (int i = 0; i < Lane<E>::COUNT; i++) word |= (u64)lane.value[i] << (8 * E * i % 64);
        *(u64*)(segment + lane.first) = word;
    } else {
        for (int i = 0; i < Lane<E>::COUNT; i++)
            if (i < lane.valid) segment[lane.first + i] = lane.value[i];
    }
}

template <int E>
__device__ __forceinline__ u32 load_plane(const u8* plane_start, u32 first) {
    if (E == 8) return plane_start[first];
    if (E == 4) return *(const u16*)(plane_start + first);
    return *(const u32*)(plane_start + first);
}

// One warp: a segment back to numbers; false where its words do not come out even.
template <int E>
__device__ __forceinline__ bool decode_segment(const Decoder<E>& shared, const u8* from, u32 count,
                                               u32 segment, typename Number<E>::T* out) {
    const Header& header = shared.header;
    u32 stride = round16(count), raw_planes = 0, coded_planes = 0;
    u32 mode[E], raw_at[E];
    for (int plane = 0; plane < E; plane++) {
        mode[plane] = header.plane_mode[plane];
        raw_at[plane] = raw_planes * stride;
        raw_planes += mode[plane] == PLANE_RAW;
        coded_planes += mode[plane] == PLANE_CODED;
    }
    const u8* coded_at = from + raw_planes * stride;
    u32 state = coded_planes ? ((const u32*)coded_at)[lane_id()] : STATE_MIN;
    const u16* words = (const u16*)(coded_at + STATES_BYTES);
    const u16* end = words + (coded_planes ? header.words[segment] : 0);
    typename Number<E>::T carry = 0;
    u32 rounds = (count + WARP * Lane<E>::COUNT - 1) / (WARP * Lane<E>::COUNT);
    for (u32 round = 0; round < rounds; round++) {
        Lane<E> lane;
        lane.place(round, count);
        u64 coded[Lane<E>::COUNT] = {};
        for (int plane = 0; plane < E; plane++) {
            u32 bytes = 0x01010101u * header.plane_constant[plane];
            if (mode[plane] == PLANE_RAW && lane.first < stride)
                bytes = load_plane<E>(from + raw_at[plane], lane.first);
            if (mode[plane] != PLANE_CODED)
                for (int i = 0; i < Lane<E>::COUNT; i++)
                    if (i < lane.valid) coded[i] |= (u64)(bytes >> 8 * i & 255) << 8 * plane;
        }
        for (int i = 0; i < Lane<E>::COUNT; i++)
            for (int plane = 0; plane < E; plane++) {
                if (mode[plane] != PLANE_CODED) continue;
                bool active = i < lane.valid;
                u32 symbol = decode_symbol(state, words, end,
                                           shared.table + plane * PROBABILITY, active);
                if (active) coded[i] |= (u64)symbol << 8 * plane;
            }
        restore<E>(lane, coded, header.transform, carry);
        store_numbers<E>(out, lane);
    }
    return __all_sync(FULL, words == end && state == STATE_MIN);
}

template <int E>
__device__ __forceinline__ void decode_chunks(const u8* packed, const u64* starts,
                                              const u64* sizes, u8* out, u64 out_bytes,
                                              u32* bad_chunks) {
    typedef typename Number<E>::T T;
    extern __shared__ uint4 memory[];
    Decoder<E>& shared = *(Decoder<E>*)memory;
    u64 chunk_at = (u64)blockIdx.x * CHUNK_BYTES;
    u32 bytes = (u32)min((u64)CHUNK_BYTES, out_bytes - chunk_at);
    const u8* from = packed + starts[blockIdx.x];
    u32 warp = threadIdx.x / WARP;
    bool whole = sizes[blockIdx.x] >= HEADER_BYTES;
    if (whole && threadIdx.x < HEADER_BYTES / 4)
        ((u32*)&shared.header)[threadIdx.x] = ((const u32*)from)[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        shared.bad_header = !whole || !sound(shared.header, E, bytes, sizes[blockIdx.x]);
        shared.bad_table = 0;
    }
    __syncthreads();
    if (shared.bad_header) {
        if (threadIdx.x == 0) atomicAdd(bad_chunks, 1);
        return;
    }
    const Header& header = shared.header;
    from += HEADER_BYTES;
    if (header.mode == MODE_STORED) {
        u32 whole = bytes & ~15u;
        copy_padded(out + chunk_at, from, whole, threadIdx.x, blockDim.x);
        u32 at = whole + threadIdx.x;
        if (at < bytes) out[chunk_at + at] = from[at];
        return;
    }
    if (warp < E && header.plane_mode[warp] == PLANE_CODED) {
        u32 coded_before = 0;
        for (u32 plane = 0; plane < warp; plane++)
            coded_before += header.plane_mode[plane] == PLANE_CODED;
        const u16* frequencies = (const u16*)(from + coded_before * FREQUENCIES_BYTES);
        if (!fill_decoder(shared.table + warp * PROBABILITY, frequencies)) shared.bad_table = 1;
    }
    __syncthreads();
    from += tables_bytes(header);
    for (u32 segment = 0; segment < warp; segment++) from += segment_bytes(header, segment);
    u32 count = segment_elements(header.elements, E, warp);
    T* to = (T*)(out + chunk_at + warp * SEGMENT_BYTES);
    bool good = !shared.bad_table;
    if (good && header.words[warp] == ESCAPED) {
        for (u32 at = lane_id(); at < count; at += WARP) to[at] = ((const T*)from)[at];
    } else if (good) {
        good = decode_segment<E>(shared, from, count, warp, to);
    }
    if (!good && lane_id() == 0) atomicAdd(bad_chunks, 1);
    if (threadIdx.x < header.tail_bytes)
        out[chunk_at + bytes - header.tail_bytes + threadIdx.x] = header.tail[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(256)
float_decode_2(const u8* packed, const u64* starts, const u64* sizes, u8* out, u64 bytes, u32* bad) {
    decode_chunks<2>(packed, starts, sizes, out, bytes, bad);
}
extern "C" __global__ void __launch_bounds__(256)
float_decode_4(const u8* packed, const u64* starts, const u64* sizes, u8* out, u64 bytes, u32* bad) {
    decode_chunks<4>(packed, starts, sizes, out, bytes, bad);
}
extern "C" __global__ void __launch_bounds__(256)
float_decode_8(const u8* packed, const u64* starts, const u64* sizes, u8* out, u64 bytes, u32* bad) {
    decode_chunks<8>(packed, starts, sizes, out, bytes, bad);
}
