// Lists of marked pages, and copying them from a region to a dense staging buffer.
//
// marks -> list_count -> scan -> list_fill -> indices in ascending order -> gather.
// The order is that of the region, whatever the scheduler does: lists are reproducible.

#define LIST_SPAN 4096  // pages per block of list_count and list_fill: 256 threads x 16
#define PER_THREAD 16

// Bit i: page `first + i` has a mark with (mark & mask) == want.
__device__ __forceinline__ u32 wanted(const u8* marks, u64 first, u64 count, u32 mask, u32 want) {
    u32 bits = 0;
    for (int i = 0; i < PER_THREAD; i++)
        if (first + i < count && (marks[first + i] & mask) == want) bits |= 1u << i;
    return bits;
}

// Sum over the block's 256 threads of the values of the threads before this one.
__device__ __forceinline__ u32 block_sum_before(u32 value, u32* total) {
    __shared__ u32 warp_total[8];
    u32 before = warp_sum_before(value);
    u32 warp = threadIdx.x / WARP;
    if (lane_id() == WARP - 1) warp_total[warp] = before + value;
    __syncthreads();
    u32 sum = 0;
    for (u32 i = 0; i < 8; i++) {
        if (i < warp) before += warp_total[i];
        sum += warp_total[i];
    }
    *total = sum;
    return before;
}

extern "C" __global__ void __launch_bounds__(256)
list_count(const u8* marks, u64 count, u32 mask, u32 want, u64* totals) {
    u64 first = (u64)blockIdx.x * LIST_SPAN + threadIdx.x * PER_THREAD;
    u32 total;
    block_sum_before(__popc(wanted(marks, first, count, mask, want)), &total);
    if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(256)
list_fill(const u8* marks, u64 count, u32 mask, u32 want, const u64* starts, u64* indices) {
    u64 first = (u64)blockIdx.x * LIST_SPAN + threadIdx.x * PER_THREAD;
    u32 bits = wanted(marks, first, count, mask, want);
    u32 total;
    u64 at = starts[blockIdx.x] + block_sum_before(__popc(bits), &total);
    for (; bits; bits &= bits - 1) indices[at++] = first + __ffs(bits) - 1;
}

// values[i] becomes the sum of all before it, each rounded up to `align` (a power of two);
// values[count] the sum of all. One block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024)
scan(const u64* sizes, u64* starts, u64 count, u64 align) {
    __shared__ u64 part[1024];
    u64 span = (count + 1023) / 1024;
    u64 first = threadIdx.x * span, end = min(first + span, count);
    u64 sum = 0;
    for (u64 i = first; i < end; i++) sum += (sizes[i] + align - 1) & ~(align - 1);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (u32 step = 1; step < 1024; step *= 2) {
        u64 other = threadIdx.x >= step ? part[threadIdx.x - step] : 0;
        __syncthreads();
        part[threadIdx.x] += other;
        __syncthreads();
    }
    u64 at = part[threadIdx.x] - sum;
    for (u64 i = first; i < end; i++) {
        starts[i] = at;
        at += (sizes[i] + align - 1) & ~(align - 1);
    }
    if (threadIdx.x == 1023) starts[count] = part[1023];
}

// Copies the listed pages to staging, one warp per page; page_bytes is a multiple of 16.
extern "C" __global__ void __launch_bounds__(256)
gather(const u8* region, const u64* indices, u64 count, u32 page_bytes, u8* staging) {
    u64 warps = (u64)gridDim.x * blockDim.x / WARP;
    for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP; i < count; i += warps) {
        const uint4* from = (const uint4*)(region + indices[i] * page_bytes);
        uint4* to = (uint4*)(staging + i * page_bytes);
#pragma unroll 4
        for (u32 at = lane_id(); at < page_bytes / 16; at += WARP) __stcs(to + at, __ldcs(from + at));
    }
}

// Brings pieces of different lengths from their slots together. Slots and starts are multiples
// of 16 bytes; the bytes up to the next multiple are copied along. One block per piece.
extern "C" __global__ void __launch_bounds__(256)
pack_slots(const u8* slots, u64 slot_bytes, const u64* sizes, const u64* starts, u8* out) {
    const uint4* from = (const uint4*)(slots + blockIdx.x * slot_bytes);
    uint4* to = (uint4*)(out + starts[blockIdx.x]);
    u64 words = (sizes[blockIdx.x] + 15) / 16;
    for (u64 at = threadIdx.x; at < words; at += blockDim.x) __stcs(to + at, __ldcs(from + at));
}
