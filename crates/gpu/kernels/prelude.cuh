// What every kernel source starts with; put in front of each by the loader.
//
// NVRTC is given no system headers, so the sized types are ours.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define FULL 0xffffffffu
#define WARP 32

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & (WARP - 1); }

// Mask of the lanes before this one.
__device__ __forceinline__ u32 lanes_before() { return (1u << lane_id()) - 1; }

__device__ __forceinline__ u32 warp_sum(u32 value) {
    for (int step = WARP / 2; step; step /= 2) value += __shfl_xor_sync(FULL, value, step);
    return value;
}

// Sum of the values of the lanes before this one.
__device__ __forceinline__ u32 warp_sum_before(u32 value) {
    u32 sum = value;
    for (int step = 1; step < WARP; step *= 2) {
        u32 other = __shfl_up_sync(FULL, sum, step);
        if (lane_id() >= step) sum += other;
    }
    return sum - value;
}

// log2(value) in 1/256 bits, the fraction taken as linear. Integer arithmetic, so that the CPU
// reference takes the same decisions. value >= 1.
__device__ __forceinline__ u32 log2_256(u32 value) {
    u32 whole = 31 - __clz(value);
    return whole << 8 | (value << (31 - whole) & 0x7fffffff) >> 23;
}
