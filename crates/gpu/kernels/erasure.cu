// Matrix times shards over GF(2^8), polynomial 0x11d: encodes parity and rebuilds lost shards.
//
// out[r] = sum over i of matrix[r][i] * in[i], byte by byte.
//
// A product by a constant is linear in the bits of the other factor, so a byte is cut into bits
// 0-2, 3-5 and 6-7 and the product is the sum of three small look-ups. `__byte_perm` looks up
// four bytes at once in a table of eight held in two registers; the selectors depend on the data
// alone and serve all rows. A thread takes 16 bytes of every shard; a block ROWS rows.

#define SHARDS_MAX 128
#define ROWS 8
#define TABLE_WORDS 8  // 5 used: two for bits 0-2, two for bits 3-5, one for bits 6-7

struct Shards {
    const u8* in[SHARDS_MAX];
    u8* out[SHARDS_MAX];
};

__device__ __forceinline__ u32 multiply_by_two(u32 value) {
    return (value << 1) ^ (value & 0x80 ? 0x11d : 0);
}

__device__ u32 multiply(u32 a, u32 b) {
    u32 product = 0;
    for (; b; b >>= 1, a = multiply_by_two(a))
        if (b & 1) product ^= a;
    return product;
}

// Products of `factor` with four consecutive numbers from `first` on, each shifted: one a byte.
__device__ u32 products(u32 factor, u32 first, u32 shift) {
    u32 word = 0;
    for (u32 i = 0; i < 4; i++) word |= multiply(factor, (first + i) << shift) << 8 * i;
    return word;
}

// Selector nibbles out of four 3-bit values in the low bits of the four bytes.
__device__ __forceinline__ u32 selector(u32 values) {
    return __byte_perm(values | values >> 4, 0, 0x4420);
}

__device__ __forceinline__ uint4 load_tail(const u8* from, u32 bytes) {
    u32 word[4] = {0, 0, 0, 0};
    for (u32 i = 0; i < bytes; i++) word[i / 4] |= (u32)from[i] << 8 * (i % 4);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

__device__ __forceinline__ void store_tail(u8* to, uint4 value, u32 bytes) {
    u32 word[4] = {value.x, value.y, value.z, value.w};
    for (u32 i = 0; i < bytes; i++) to[i] = word[i / 4] >> 8 * (i % 4);
}

template <int R>
__device__ __forceinline__ void multiply_shards(const Shards& shards, u32 inputs, u32 first_row,
                                                const u32* table, u64 bytes) {
    u64 pieces = (bytes + 15) / 16;
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < pieces; at += step) {
        u32 rest = (u32)min((u64)16, bytes - at * 16);
        u32 sum[R][4] = {};
#pragma unroll 2
        for (u32 i = 0; i < inputs; i++) {
            const u8* from = shards.in[i] + at * 16;
            uint4 data = rest == 16 ? __ldcs((const uint4*)from) : load_tail(from, rest);
            u32 word[4] = {data.x, data.y, data.z, data.w};
            u32 low[4], middle[4], high[4];
            for (int w = 0; w < 4; w++) {
                low[w] = selector(word[w] & 0x07070707);
                middle[w] = selector(word[w] >> 3 & 0x07070707);
                high[w] = selector(word[w] >> 6 & 0x03030303);
            }
            for (int r = 0; r < R; r++) {
                const u32* entry = table + (r * inputs + i) * TABLE_WORDS;
                uint4 tables = *(const uint4*)entry;
                u32 table_high = entry[4];
                for (int w = 0; w < 4; w++) {
                    sum[r][w] ^= __byte_perm(tables.x, tables.y, low[w]) ^
                                 __byte_perm(tables.z, tables.w, middle[w]);
                    sum[r][w] ^= __byte_perm(table_high, 0, high[w]);
                }
            }
        }
        for (int r = 0; r < R; r++) {
            u8* to = shards.out[first_row + r] + at * 16;
            uint4 value = make_uint4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
            if (rest == 16) __stcs((uint4*)to, value);
            else store_tail(to, value, rest);
        }
    }
}

// matrix: rows x inputs coefficients, row by row. Shards are 16-byte aligned; grid.y counts
// groups of ROWS rows. Dynamic shared memory: ROWS * inputs * TABLE_WORDS * 4 bytes.
extern "C" __global__ void __launch_bounds__(256)
multiply_rows(__grid_constant__ const Shards shards, u32 inputs, u32 rows, const u8* matrix,
              u64 bytes) {
    extern __shared__ u32 table[];
    u32 first_row = blockIdx.y * ROWS;
    u32 count = min(rows - first_row, (u32)ROWS);
    for (u32 at = threadIdx.x; at < count * inputs; at += blockDim.x) {
        u32 factor = matrix[first_row * inputs + at];
        u32* entry = table + at * TABLE_WORDS;
        entry[0] = products(factor, 0, 0);
        entry[1] = products(factor, 4, 0);
        entry[2] = products(factor, 0, 3);
        entry[3] = products(factor, 4, 3);
        entry[4] = products(factor, 0, 6);
    }
    __syncthreads();
    switch (count) {
        case 1: return multiply_shards<1>(shards, inputs, first_row, table, bytes);
        case 2: return multiply_shards<2>(shards, inputs, first_row, table, bytes);
        case 3: return multiply_shards<3>(shards, inputs, first_row, table, bytes);
        case 4: return multiply_shards<4>(shards, inputs, first_row, table, bytes);
        case 5: return multiply_shards<5>(shards, inputs, first_row, table, bytes);
        case 6: return multiply_shards<6>(shards, inputs, first_row, table, bytes);
        case 7: return multiply_shards<7>(shards, inputs, first_row, table, bytes);
        case 8: return multiply_shards<8>(shards, inputs, first_row, table, bytes);
    }
}
