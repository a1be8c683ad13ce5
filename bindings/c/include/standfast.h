/*
 * Standfast: checkpoint/restart for long-running programs.
 *
 * A program protects regions of its memory. A checkpoint captures them and is written in the
 * background; after a crash the program starts as always and asks for its state:
 *
 *     sf_job *job;
 *     if (sf_init("job=heat; store=/scratch/me", &job) != SF_OK)
 *         die(sf_last_error());
 *     check(sf_protect_typed(job, "field", field, count, SF_F64));
 *     check(sf_protect(job, "step", &step, sizeof step));
 *     if ((code = sf_restart(job, SF_NEWEST, NULL)) != SF_OK && code != SF_MISSING)
 *         die(sf_last_error());                        SF_MISSING: a fresh start
 *     while (step < steps) {
 *         ...
 *         if (step % 100 == 0)
 *             check(sf_checkpoint(job, SF_NEXT, NULL));
 *     }
 *     check(sf_finalize(job));
 *
 * Errors. Functions return SF_OK (0) or a negative code of sf_error; sf_last_error() has the text.
 * Compilers warn where a code is ignored. Results are written only on success. Null pointers,
 * finalized handles, texts that are not UTF-8 and the like give SF_INVALID.
 *
 * Threads. All functions may be called from any thread at any time. What the memory of regions
 * needs is said at sf_protect.
 *
 * Signals. No function may be called from a signal handler. With the setting signal = USR1 (or
 * another one) the library counts that signal, calls the handler that was there before, and takes
 * the checkpoint at the next sf_point. With lab.track = mprotect it handles SIGSEGV. Otherwise it
 * installs no handlers.
 *
 * Fork. A forked child must not use the jobs of its parent (SF_INVALID); it may open others. While
 * a child lives that has not called exec, the job of its dead parent stays locked (SF_BUSY).
 *
 * Structs that the library fills begin with struct_bytes. The program sets it to the size of the
 * struct that it was compiled with, so that it works with later libraries too.
 *
 * Generated from bindings/c/src; do not edit.
 */


#ifndef STANDFAST_H
#define STANDFAST_H

#include <stddef.h>
#include <stdint.h>

/* How the functions are exported. */
#ifndef SF_API
#if defined(__GNUC__) || defined(__clang__)
#define SF_API __attribute__((visibility("default")))
#else
#define SF_API
#endif
#endif

/* A function whose result says whether it has worked. */
#if defined(__GNUC__) || defined(__clang__)
#define SF_CHECKED __attribute__((warn_unused_result))
#else
#define SF_CHECKED
#endif

/**
 * Major version of this header; `sf_version_string` tells that of the library.
 */
#define SF_VERSION_MAJOR 0

/**
 * Minor version of this header.
 */
#define SF_VERSION_MINOR 2

/**
 * Patch version of this header.
 */
#define SF_VERSION_PATCH 0

/**
 * For `sf_checkpoint`: the version after the largest so far.
 */
#define SF_NEXT 0

/**
 * For `sf_restart`: the newest checkpoint that is whole.
 */
#define SF_NEWEST 0

/**
 * Room for the name of a region, with the 0 at its end.
 */
#define SF_NAME_BYTES 256

/**
 * What functions return: `SF_OK`, or a negative code that says what sort of failure it was.
 * `sf_last_error` has the text.
 */
typedef enum sf_error {
    /**
     * Success.
     */
    SF_OK = 0,
    /**
     * Stored bytes are damaged: they do not match their checksum, hash or layout.
     */
    SF_CORRUPT = -10,
    /**
     * The checkpoint, region or file does not exist. From `sf_restart`: a fresh start.
     */
    SF_MISSING = -11,
    /**
     * Somebody else holds it, such as another process that has the job open.
     */
    SF_BUSY = -12,
    /**
     * It may work when tried again.
     */
    SF_TRANSIENT = -13,
    /**
     * No space is left.
     */
    SF_FULL = -14,
    /**
     * The operating system refuses access.
     */
    SF_DENIED = -15,
    /**
     * The device failed to read or write.
     */
    SF_IO = -16,
    /**
     * This build, machine, configuration or format version cannot do it.
     */
    SF_UNSUPPORTED = -17,
    /**
     * An argument, a setting or the order of calls is wrong.
     */
    SF_INVALID = -18,
    /**
     * Standfast's own logic is broken: please report it with the text.
     */
    SF_BUG = -19,
    /**
     * The process or the machine is out of memory, threads or file descriptors.
     */
    SF_EXHAUSTED = -20,
} sf_error;

/**
 * Types of elements, for `sf_protect_typed`.
 */
typedef enum sf_type {
    /**
     * Bytes of no particular type.
     */
    SF_BYTE = 0,
    /**
     * `int8_t`
     */
    SF_I8 = 1,
    /**
     * `uint8_t`
     */
    SF_U8 = 2,
    /**
     * `int16_t`
     */
    SF_I16 = 3,
    /**
     * `uint16_t`
     */
    SF_U16 = 4,
    /**
     * `int32_t`
     */
    SF_I32 = 5,
    /**
     * `uint32_t`
     */
    SF_U32 = 6,
    /**
     * `int64_t`
     */
    SF_I64 = 7,
    /**
     * `uint64_t`
     */
    SF_U64 = 8,
    /**
     * 16-bit floating point, IEEE 754
     */
    SF_F16 = 9,
    /**
     * 16-bit floating point, the upper half of a `float`
     */
    SF_BF16 = 10,
    /**
     * `float`
     */
    SF_F32 = 11,
    /**
     * `double`
     */
    SF_F64 = 12,
    /**
     * Complex number of two `float`
     */
    SF_C32 = 13,
    /**
     * Complex number of two `double`
     */
    SF_C64 = 14,
} sf_type;

/**
 * How far a checkpoint has come, and so what it survives. Levels are ordered.
 */
typedef enum sf_level {
    /**
     * Captured in memory: the program may go on. Survives nothing yet.
     */
    SF_LEVEL_MEMORY = 1,
    /**
     * Durable on the node: survives the death of the program and a reboot.
     */
    SF_LEVEL_LOCAL = 2,
    /**
     * Shards durable on other nodes: survives the loss of nodes.
     */
    SF_LEVEL_RING = 3,
    /**
     * Drained to global storage: survives the loss of the machine.
     */
    SF_LEVEL_GLOBAL = 4,
} sf_level;

/**
 * An open job. Only the library knows what is inside.
 */
typedef struct sf_job sf_job;

/**
 * What is known of a communicator, for `describe` of `sf_comm_table`.
 */
typedef struct sf_comm_facts {
    /**
     * `sizeof(sf_comm_facts)` of the library, which sets it: a later version may ask for more.
     */
    size_t struct_bytes;
    /**
     * This rank's number, from 0.
     */
    int rank;
    /**
     * How many ranks there are.
     */
    int size;
    /**
     * 1 if every thread may use communicators at any time, 0 if only the thread that calls the
     * library may, inside those calls.
     */
    int any_thread;
    /**
     * The longest message that `start_send` takes, in bytes: at least 16. Longer ones are sent
     * in pieces.
     */
    int piece_bytes;
} sf_comm_facts;

/**
 * How the ranks of a job talk to each other: functions that the program brings along.
 *
 * `standfast_mpi.c` has them for MPI. Programs that use it call `sf_init_comm` and never see this
 * table; it is here for other transports.
 *
 * Every function takes a communicator as the program knows it, and returns 0 or a code for
 * `describe_error`. Communicators must give errors instead of ending the program. Tags are from 0
 * to 65535. Between two ranks, messages with one tag arrive in the order in which they were sent.
 * `all_to_all_lengths`, `all_to_all`, `split`, `duplicate` and `release` are called by all ranks of
 * a communicator, in the same order, and all but `release` right after a barrier of messages: they
 * may wait in whatever way is fastest. `end_send` and `probe` may have to wait for long.
 */
typedef struct sf_comm_table {
    /**
     * `sizeof(sf_comm_table)`: the library refuses a table that is older than it needs.
     */
    size_t struct_bytes;
    /**
     * Tells about a communicator; fails if it cannot be used.
     */
    int (*describe)(void *comm, struct sf_comm_facts *facts);
    /**
     * Starts to send a message. The bytes stay as they are until `end_send`, which every started
     * send gets exactly once with what was put into `sending`.
     */
    int (*start_send)(void *comm, int to, int tag, const void *bytes, int length, size_t *sending);
    /**
     * Waits until the bytes of a started send are no longer needed.
     */
    int (*end_send)(void *comm, size_t sending);
    /**
     * Waits for the next message of a rank with a tag, and tells its length. The message is then
     * this thread's: `receive` gets what was put into `message`, exactly once.
     */
    int (*probe)(void *comm, int from, int tag, size_t *message, int *length);
    /**
     * Receives a message that `probe` has found.
     */
    int (*receive)(void *comm, size_t message, void *bytes, int length);
    /**
     * Gives every rank the number at its place in `outgoing`, and collects one from every rank.
     */
    int (*all_to_all_lengths)(void *comm, const uint64_t *outgoing, uint64_t *incoming);
    /**
     * Gives every rank its bytes, and collects some from every rank. The bytes for and from the
     * ranks lie one behind the other, in the order of ranks; the lengths are known to both sides.
     */
    int (*all_to_all)(void *comm,
                      const void *outgoing,
                      const int *outgoing_lengths,
                      void *incoming,
                      const int *incoming_lengths);
    /**
     * Makes a communicator of the ranks with the same colour, ordered by key (also negative ones),
     * then by rank. A rank with colour -1 belongs to none: NULL goes into `part`.
     */
    int (*split)(void *comm, int colour, int key, void **part);
    /**
     * Makes a communicator of the same ranks. The one that `sf_init_transport` was given is only used
     * for this and for `describe`.
     */
    int (*duplicate)(void *comm, void **copy);
    /**
     * Lets go of a communicator that `split` or `duplicate` has made.
     */
    void (*release)(void *comm);
    /**
     * Writes the text for a code, ended with 0, into a buffer.
     */
    void (*describe_error)(int code, char *text, size_t capacity);
} sf_comm_table;

/**
 * What is known of a checkpoint, for `sf_list`.
 */
typedef struct sf_checkpoint_info {
    /**
     * `sizeof(sf_checkpoint_info)`, set by the program in the first entry of an array.
     */
    size_t struct_bytes;
    /**
     * Its version.
     */
    uint64_t version;
    /**
     * Its place in the order of commits: the newest checkpoint has the largest.
     */
    uint64_t sequence;
    /**
     * When it was taken, nanoseconds since 1970-01-01 UTC.
     */
    uint64_t taken_ns;
    /**
     * Bytes of all protected regions.
     */
    uint64_t captured_bytes;
    /**
     * Bytes that this checkpoint added to the store.
     */
    uint64_t stored_bytes;
    /**
     * Pages of all protected regions.
     */
    uint64_t pages;
    /**
     * Pages that were all zero.
     */
    uint64_t zero_pages;
    /**
     * Pages equal to another page that the same rank stores in this checkpoint.
     */
    uint64_t duplicate_pages;
    /**
     * Pages that an earlier checkpoint had stored.
     */
    uint64_t old_pages;
    /**
     * Pages stored by this checkpoint.
     */
    uint64_t new_pages;
    /**
     * How long the program was stopped, in nanoseconds.
     */
    uint64_t blocked_ns;
    /**
     * How long it took until the data were durable, in nanoseconds.
     */
    uint64_t total_ns;
    /**
     * The highest level it has reached: one of `sf_level`.
     */
    int32_t level;
    /**
     * Ranks of the job.
     */
    uint32_t ranks;
    /**
     * Pages that another rank stores in this checkpoint.
     */
    uint64_t remote_pages;
    /**
     * What the rank that stored most has added to the store, in bytes.
     */
    uint64_t rank_bytes_max;
} sf_checkpoint_info;

/**
 * A region of a checkpoint, for `sf_regions`.
 */
typedef struct sf_region_info {
    /**
     * `sizeof(sf_region_info)`, set by the program in the first entry of an array.
     */
    size_t struct_bytes;
    /**
     * Its name, ended with 0.
     */
    char name[SF_NAME_BYTES];
    /**
     * Its length in bytes.
     */
    uint64_t bytes;
    /**
     * Size of the numbers in it as the program declared them (8 for `double`); 0 if it did not.
     */
    uint32_t elem;
    /**
     * Always 0: structs have a multiple of 8 bytes.
     */
    uint32_t reserved;
} sf_region_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Opens a job: its store is made if need be, locked against other writers and cleared of what a
 * crashed predecessor left half-made.
 *
 * Settings come from `standfast.toml` in the current directory (or the file that the variable
 * `STANDFAST_CONFIG` names), then from variables `STANDFAST_*`, then from this call; later ones
 * win. `standfast config` lists all of them.
 *
 * @param options Settings as "job=heat; store=/scratch/me", or NULL for none.
 * @param job     Where the handle goes; NULL goes there on failure.
 * @return `SF_OK`; `SF_INVALID` for a wrong setting; `SF_BUSY` if another process (or this one)
 *         has the job open; `SF_DENIED`, `SF_FULL` or `SF_IO` from the file system;
 *         `SF_CORRUPT` or `SF_UNSUPPORTED` if the store cannot be used.
 *
 * Thread-safe. End with `sf_finalize` or `sf_close`.
 */
SF_API SF_CHECKED int sf_init(const char *options, struct sf_job **job);

/**
 * Opens a job of several ranks, which talk to each other by functions of the program's own. All
 * ranks call it. MPI programs call `sf_init_comm` of `standfast_mpi.h` instead.
 *
 * @param table   The functions; they are copied.
 * @param comm    A communicator that they know. The job works with a duplicate; this one is the
 *                program's own again when the call returns.
 * @param options Settings as for `sf_init`, or NULL for none.
 * @param job     Where the handle goes; NULL goes there on failure.
 * @return As `sf_init`; `SF_INVALID` also if the table or the communicator cannot be used. If one
 *         rank fails, all do.
 *
 * Not to be called by several threads with one communicator. End with `sf_finalize` or
 * `sf_close`.
 */
SF_API
SF_CHECKED
int sf_init_transport(const struct sf_comm_table *table,
                      void *comm,
                      const char *options,
                      struct sf_job **job);

/**
 * Declares a value on which the program's result depends, such as a size or the name of an input.
 * `sf_restart` refuses checkpoints of a job that began with another value, and names both. Call it
 * before `sf_restart` and the first checkpoint, on all ranks alike. Other arguments of the program
 * are only compared and told.
 *
 * @param job   An open job.
 * @param name  Its name; a later value of the same name replaces it.
 * @param value Its value, as text.
 * @return `SF_OK`; `SF_INVALID` for names that regions may not have either, for more than 64 KiB in
 *         all, or if the program has restarted or taken a checkpoint.
 *
 * Thread-safe.
 */
SF_API SF_CHECKED int sf_declare(struct sf_job *job, const char *name, const char *value);

/**
 * Ends a program that has done its work: waits for calls of other threads and for the checkpoint
 * under way, marks the job as finished and frees everything. Protected memory stays the program's
 * own. The next program of this name begins anew: its `sf_restart` returns `SF_MISSING`, and
 * one line on stderr says why. All ranks call it. After a checkpoint or restart that failed
 * nothing is marked. A program that ends before its work is done calls `sf_close` instead.
 *
 * @param job The handle; it is gone afterwards, whatever is returned, unless it was none.
 * @return `SF_OK`; the failure of the last checkpoint, or of an earlier one that no call has
 *         returned yet, or of marking; `SF_INVALID` if `job` is no open job.
 *
 * Thread-safe: calls that start later with this handle fail with `SF_INVALID`.
 */
SF_API SF_CHECKED int sf_finalize(struct sf_job *job);

/**
 * Ends a program whose work is to be gone on with: because its time is over, or because it has
 * failed. As `sf_finalize`, but the job is not marked as finished: the next program of this name goes on
 * from its newest checkpoint.
 *
 * @param job The handle; it is gone afterwards, whatever is returned, unless it was none.
 * @return As `sf_finalize`.
 *
 * Thread-safe: calls that start later with this handle fail with `SF_INVALID`.
 */
SF_API
SF_CHECKED
int sf_close(struct sf_job *job);

/**
 * The version of the library, such as "0.2.0".
 *
 * @return A constant text, never NULL.
 *
 * Thread-safe.
 */
SF_API const char *sf_version_string(void);

/**
 * Protects memory: from now on it is part of every checkpoint and filled by every restart.
 *
 * Where the type of the elements is known, `sf_protect_typed` compresses better.
 *
 * @param job   An open job.
 * @param name  Name of the region: 1 to 255 bytes of UTF-8 without control characters. A restart
 *              finds the region by it.
 * @param start Where it starts; any alignment.
 * @param bytes Its length. The same length is expected at a restart.
 * @return `SF_OK`; `SF_INVALID` if the name breaks the rules or is taken, if `start` is NULL, or
 *         if the memory overlaps another region.
 *
 * Until `sf_unprotect` or `sf_finalize` the memory must stay allocated and writable. No other
 * thread may write to it during `sf_checkpoint`, nor use it during `sf_restart`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API SF_CHECKED int sf_protect(struct sf_job *job, const char *name, void *start, size_t bytes);

/**
 * Protects an array of numbers. Their type helps compression; it changes nothing else.
 *
 * @param job   An open job.
 * @param name  Name of the region, as for `sf_protect`.
 * @param start The array; any alignment.
 * @param count How many elements it has.
 * @param type  One of `sf_type`, such as `SF_F64` for `double`.
 * @return As `sf_protect`; `SF_INVALID` also for a type that does not exist, or if the array
 *         would be larger than memory.
 *
 * The memory must be left alone as described for `sf_protect`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_protect_typed(struct sf_job *job,
                     const char *name,
                     void *start,
                     size_t count,
                     int type);

/**
 * Protects memory of a CUDA device: from now on it is part of every checkpoint and filled by every
 * restart.
 *
 * A checkpoint waits for the work that the program has queued on the device, hashes the region
 * there and copies what changed aside, within the device; then the program goes on while new pages
 * are compressed there and cross to the host. What a device wrote any machine can restore: into
 * device memory, or by `sf_read_region` or a region of the same name and length into host memory.
 *
 * @param job   An open job.
 * @param name  Name of the region, as for `sf_protect`.
 * @param start An address of the device, such as `cudaMalloc` gives; a multiple of 16. All device
 *              regions of a job lie on one device.
 * @param bytes Its length. The same length is expected at a restart.
 * @return `SF_OK`; `SF_UNSUPPORTED` if there is no driver or no device; `SF_INVALID` as
 *         `sf_protect`, and if `start` is no device memory.
 *
 * Until `sf_unprotect` or `sf_finalize` the memory must stay allocated. Nothing that writes to it
 * may be queued on the device during `sf_checkpoint`, nor anything that uses it during
 * `sf_restart`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_protect_device(struct sf_job *job,
                      const char *name,
                      void *start,
                      size_t bytes);

/**
 * Protects an array of numbers in the memory of a CUDA device. Their type helps compression.
 *
 * @param job   An open job.
 * @param name  Name of the region, as for `sf_protect`.
 * @param start The array on the device, as for `sf_protect_device`.
 * @param count How many elements it has.
 * @param type  One of `sf_type`, such as `SF_BF16`.
 * @return As `sf_protect_device`; `SF_INVALID` also for a type that does not exist, or if the
 *         array would be larger than memory.
 *
 * The memory must be left alone as described for `sf_protect_device`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_protect_device_typed(struct sf_job *job,
                            const char *name,
                            void *start,
                            size_t count,
                            int type);

/**
 * Ends the protection of a region. Do this before its memory is freed or moved by `realloc`.
 * Checkpoints that have been taken keep the region.
 *
 * @param job  An open job.
 * @param name Name of the region.
 * @return `SF_OK`; `SF_MISSING` if no region of that name is protected; `SF_INVALID`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API SF_CHECKED int sf_unprotect(struct sf_job *job, const char *name);

/**
 * Keeps some bytes out of all later checkpoints, such as a password: they are zeros there.
 *
 * The bytes may lie in any protected region, in part or whole; regions that are protected later count,
 * too. A restart leaves them as they are. Checkpoints that have been taken keep what they have.
 *
 * @param job   An open job.
 * @param start Address of the first byte.
 * @param bytes How many; 0 does nothing.
 * @return `SF_OK`; `SF_INVALID` if `start` is NULL.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_exclude(struct sf_job *job,
               const void *start,
               size_t bytes);

/**
 * Takes back what `sf_exclude` has excluded: the next checkpoint holds these bytes.
 *
 * @param job   An open job.
 * @param start Address of the first byte.
 * @param bytes How many; 0 does nothing.
 * @return `SF_OK`; `SF_INVALID` if `start` is NULL.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API SF_CHECKED int sf_include(struct sf_job *job, const void *start, size_t bytes);

/**
 * Allocates zeroed memory on pages of its own and protects it: from now on it is part of every
 * checkpoint and filled by every restart. Large allocations ask for huge pages.
 *
 * @param job       An open job.
 * @param name      Name of the region, as for `sf_protect`.
 * @param bytes     How much; 0 is allowed.
 * @param elem      Size of the numbers in it: 1, 2, 4, 8 or 16; 0 if unknown. Helps compression.
 * @param out_start Where it starts.
 * @return `SF_OK`; `SF_INVALID` as `sf_protect`; `SF_FULL` if there is no memory.
 *
 * The memory belongs to the job: `sf_free_protected` and `sf_finalize` free it. It must be left
 * alone during `sf_checkpoint` and `sf_restart` as described for `sf_protect`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_alloc_protected(struct sf_job *job,
                       const char *name,
                       size_t bytes,
                       int elem,
                       void **out_start);

/**
 * As `sf_alloc_protected`, at an address that is a multiple of a power of two.
 *
 * @param job       An open job.
 * @param name      Name of the region, as for `sf_protect`.
 * @param bytes     How much; 0 is allowed.
 * @param elem      Size of the numbers in it, as for `sf_alloc_protected`.
 * @param alignment A power of two. Every allocation is aligned to pages at least.
 * @param out_start Where it starts.
 * @return As `sf_alloc_protected`; `SF_INVALID` also if the alignment is no power of two.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_alloc_protected_aligned(struct sf_job *job,
                               const char *name,
                               size_t bytes,
                               int elem,
                               size_t alignment,
                               void **out_start);

/**
 * Gives an allocation another length: what fits is kept, what is new is zero. The next checkpoint
 * has the new length; a restart to an older one needs the older length, which `sf_alloc_from_checkpoint` gives.
 *
 * @param job       An open job.
 * @param name      Name of an allocation.
 * @param bytes     Its new length.
 * @param out_start Where it starts now. The old address is no longer valid.
 * @return `SF_OK`; `SF_MISSING` if there is no such allocation; `SF_FULL` if there is no memory:
 *         then it is as it was.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_realloc_protected(struct sf_job *job,
                         const char *name,
                         size_t bytes,
                         void **out_start);

/**
 * Frees an allocation and ends its protection. Checkpoints that have been taken keep the region.
 *
 * @param job  An open job.
 * @param name Name of an allocation.
 * @return `SF_OK`; `SF_MISSING` if there is no such allocation; `SF_INVALID`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API SF_CHECKED int sf_free_protected(struct sf_job *job, const char *name);

/**
 * Where an allocation lies.
 *
 * @param job       An open job.
 * @param name      Name of an allocation.
 * @param out_start Where it starts; NULL if not wanted.
 * @param out_bytes Its length; NULL if not wanted.
 * @return `SF_OK`; `SF_MISSING` if there is no such allocation; `SF_INVALID`.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_find_protected(struct sf_job *job,
                      const char *name,
                      void **out_start,
                      size_t *out_bytes);

/**
 * Allocates every region of a checkpoint that is not protected yet, and gives allocations that
 * have another length there that length: then `sf_restart` of the same checkpoint finds a place
 * for everything. `sf_regions` tells the names, `sf_find_protected` the addresses.
 *
 * @param job       An open job.
 * @param version   Which checkpoint; 0 for the newest.
 * @param out_count How many regions were allocated; NULL if not wanted.
 * @return `SF_OK`; `SF_MISSING` if there is no such checkpoint; `SF_CORRUPT`; `SF_FULL` if there
 *         is no memory.
 *
 * Thread-safe; waits while a checkpoint is being captured.
 */
SF_API
SF_CHECKED
int sf_alloc_from_checkpoint(struct sf_job *job,
                             uint64_t version,
                             size_t *out_count);

/**
 * Takes a checkpoint of all protected regions, as they are at this call. It returns as soon as
 * the program may change them again; writing goes on in the background.
 *
 * Waits first until the previous checkpoint is durable. If that one failed, its failure is
 * returned and no checkpoint is taken: calling again takes it.
 *
 * @param job         An open job. Where the preload library is, NULL stands for the whole program
 *                    (docs/TRANSPARENT.md).
 * @param version     Number of the checkpoint, or `SF_NEXT`. A checkpoint with the same number
 *                    is replaced once the new one is durable.
 * @param out_version Where the number goes; may be NULL.
 * @return `SF_OK`: it has reached `SF_LEVEL_MEMORY`. `SF_FULL`, `SF_DENIED` or `SF_IO` if it
 *         cannot be written; `SF_INVALID`. After a failure all earlier checkpoints are as they
 *         were.
 *
 * Thread-safe: checkpoints are taken one after the other. No other thread may write to protected
 * memory until it returns.
 */
SF_API SF_CHECKED int sf_checkpoint(struct sf_job *job, uint64_t version, uint64_t *out_version);

/**
 * Takes a checkpoint if one is due or asked for. One is due by the setting `interval`: a fixed time,
 * or `auto`, which weighs what checkpoints cost against the expected time between failures.
 * One is asked for when the setting `signal` names a signal and it has come since the last
 * checkpoint, in a job of several ranks to any of them. To be called wherever the state is
 * consistent, such as once per step; cheap when none is wanted.
 *
 * @param job         An open job.
 * @param out_version Where the number goes, or 0 if none was wanted; may be NULL.
 * @return As `sf_checkpoint`.
 *
 * Thread-safe, as `sf_checkpoint`.
 */
SF_API
SF_CHECKED
int sf_point(struct sf_job *job,
             uint64_t *out_version);

/**
 * Asks whether a checkpoint is due by the setting `interval` or asked for by the `signal`, for
 * programs that have something to do before they take one. Each rank answers for itself.
 *
 * @param job An open job.
 * @param due Where 1 goes if one is wanted, else 0.
 * @return `SF_OK`; `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API SF_CHECKED int sf_need_checkpoint(struct sf_job *job, int *due);

/**
 * Asks how far a checkpoint has come, without waiting.
 *
 * @param job     An open job.
 * @param version Number of the checkpoint.
 * @param level   Where the level reached so far goes, one of `sf_level`; may be NULL.
 * @return `SF_OK`; if the checkpoint failed, its failure; `SF_MISSING` if there is no such
 *         checkpoint; `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API SF_CHECKED int sf_poll(struct sf_job *job, uint64_t version, int *level);

/**
 * Waits until a checkpoint has reached a level.
 *
 * @param job     An open job, or NULL as for `sf_checkpoint`.
 * @param version Number of the checkpoint.
 * @param level   One of `sf_level`, such as `SF_LEVEL_LOCAL`: durable on this node.
 * @return `SF_OK`; if the checkpoint failed, its failure; `SF_UNSUPPORTED` if the job's
 *         configuration does not bring checkpoints to that level; `SF_MISSING` if there is no
 *         such checkpoint; `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API SF_CHECKED int sf_wait(struct sf_job *job, uint64_t version, int level);

/**
 * Lists the checkpoints that can be restarted from, newest first. Waits for the one under way.
 *
 * @param job      An open job.
 * @param buf      Where the list goes; may be NULL if `capacity` is 0. `buf[0].struct_bytes` is
 *                 `sizeof buf[0]`.
 * @param capacity For how many checkpoints `buf` has room. If there are more, the newest are
 *                 listed.
 * @param count    Where the number of all checkpoints goes; may be larger than `capacity`.
 * @return `SF_OK`, or `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API
SF_CHECKED
int sf_list(struct sf_job *job,
            struct sf_checkpoint_info *buf,
            size_t capacity,
            size_t *count);

/**
 * The closing block of a checkpoint as text: what was captured, dropped, compressed and stored,
 * how long the program was stopped, and what the checkpoint survives. Waits for the checkpoint
 * under way.
 *
 * @param job      An open job.
 * @param version  Number of the checkpoint.
 * @param buf      Where the text goes, cut if need be and always ended with 0; may be NULL if
 *                 `capacity` is 0.
 * @param capacity Room in `buf`, in bytes.
 * @param needed   Receives the required size, including the final 0; may be NULL.
 * @return `SF_OK`, also if the text was cut; `SF_MISSING` if there is no such checkpoint;
 *         `SF_CORRUPT` if it cannot be read; `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API
SF_CHECKED
int sf_report(struct sf_job *job,
              uint64_t version,
              char *buf,
              size_t capacity,
              size_t *needed);

/**
 * Fills every protected region from a checkpoint. Every page is verified.
 *
 * Call it after the regions are protected and before the work begins. With `SF_NEWEST` damaged
 * checkpoints are skipped for older ones; `sf_restart_report` says which and why.
 *
 * @param job      An open job.
 * @param version  Number of the checkpoint, or `SF_NEWEST`.
 * @param restored Where the number of the restored checkpoint goes; may be NULL.
 * @return `SF_OK`. `SF_MISSING` with `SF_NEWEST`: there is nothing to restart from, or the job has
 *         finished, a fresh start; the regions are unchanged. `SF_INVALID`: the checkpoint does not
 *         fit, for a protected region is not in it, has another length there or no memory any more,
 *         or the job began with other values than the program declares (`sf_declare`). `SF_CORRUPT`: no checkpoint is whole.
 *         After other failures than a fresh start the regions may hold a mixture: do not go on
 *         with them.
 *
 * Thread-safe. No other thread may use protected memory until it returns.
 */
SF_API
SF_CHECKED
int sf_restart(struct sf_job *job,
               uint64_t version,
               uint64_t *restored);

/**
 * What the last successful `sf_restart` of this job has to say, as text: which checkpoint it
 * came back to, which newer ones it skipped and why, and which regions of the checkpoint
 * the program does not protect. With `restart = lazy` it also says so as long as pages are still
 * being loaded and verified; without that line all of them are.
 *
 * @param job      An open job.
 * @param buf      Where the text goes, cut if need be and always ended with 0; may be NULL if
 *                 `capacity` is 0.
 * @param capacity Room in `buf`, in bytes.
 * @param needed   Receives the required size, including the final 0; may be NULL.
 * @return `SF_OK`, also if the text was cut; `SF_MISSING` if this job has not been restarted;
 *         `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API
SF_CHECKED
int sf_restart_report(struct sf_job *job,
                      char *buf,
                      size_t capacity,
                      size_t *needed);

/**
 * Lists the regions of a checkpoint, in the order in which they were protected.
 *
 * @param job      An open job.
 * @param version  Number of the checkpoint.
 * @param buf      Where the list goes; may be NULL if `capacity` is 0. `buf[0].struct_bytes` is
 *                 `sizeof buf[0]`.
 * @param capacity For how many regions `buf` has room.
 * @param count    Where the number of all regions goes; may be larger than `capacity`.
 * @return `SF_OK`; `SF_MISSING` if there is no such checkpoint; `SF_CORRUPT` if it cannot be
 *         read; `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API
SF_CHECKED
int sf_regions(struct sf_job *job,
               uint64_t version,
               struct sf_region_info *buf,
               size_t capacity,
               size_t *count);

/**
 * Tells how long a region of a checkpoint is, so that a buffer for it can be allocated.
 *
 * @param job     An open job.
 * @param version Number of the checkpoint.
 * @param name    Name of the region.
 * @param bytes   Where its length goes.
 * @return `SF_OK`; `SF_MISSING` if there is no such checkpoint or region; `SF_CORRUPT` if it
 *         cannot be read; `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API
SF_CHECKED
int sf_region_bytes(struct sf_job *job,
                    uint64_t version,
                    const char *name,
                    uint64_t *bytes);

/**
 * Reads one region of a checkpoint into a buffer. The region need not be protected. Every page
 * is verified.
 *
 * @param job     An open job.
 * @param version Number of the checkpoint.
 * @param name    Name of the region.
 * @param buf     Where its bytes go; may be NULL if `bytes` is 0.
 * @param bytes   Length of `buf`; must be that of the region (`sf_region_bytes`).
 * @return `SF_OK`; `SF_MISSING` if there is no such checkpoint or region; `SF_INVALID` if the
 *         lengths differ; `SF_CORRUPT` if it cannot be read: then the buffer holds a mixture.
 *
 * Thread-safe. No other thread may use the buffer until it returns.
 */
SF_API
SF_CHECKED
int sf_read_region(struct sf_job *job,
                   uint64_t version,
                   const char *name,
                   void *buf,
                   size_t bytes);

/**
 * Tells this rank's number and how many ranks the job has.
 *
 * @param job  An open job.
 * @param rank Where this rank's number goes, from 0; may be NULL.
 * @param size Where the number of ranks goes; may be NULL.
 * @return `SF_OK`; `SF_INVALID`.
 *
 * Thread-safe.
 */
SF_API SF_CHECKED int sf_rank(struct sf_job *job, uint32_t *rank, uint32_t *size);

/**
 * As `sf_region_bytes`, of any rank: also of a job that had more ranks or fewer.
 *
 * @param job     An open job.
 * @param version Number of the checkpoint.
 * @param rank    Whose region it is.
 * @param name    Name of the region.
 * @param bytes   Where its length goes.
 * @return `SF_OK`; `SF_MISSING` if there is no such checkpoint, rank or region; `SF_CORRUPT` if
 *         it cannot be read; `SF_INVALID`.
 *
 * Thread-safe. Ranks need not call it together.
 */
SF_API
SF_CHECKED
int sf_region_bytes_of(struct sf_job *job,
                       uint64_t version,
                       uint32_t rank,
                       const char *name,
                       uint64_t *bytes);

/**
 * As `sf_read_region`, of any rank. So a program comes back with another number of ranks: each rank
 * reads what it needs of the regions of those that were.
 *
 * @param job     An open job.
 * @param version Number of the checkpoint.
 * @param rank    Whose region it is.
 * @param name    Name of the region.
 * @param buf     Where its bytes go; may be NULL if `bytes` is 0.
 * @param bytes   Length of `buf`; must be that of the region (`sf_region_bytes_of`).
 * @return `SF_OK`; `SF_MISSING` if there is no such checkpoint, rank or region; `SF_INVALID` if
 *         the lengths differ; `SF_CORRUPT` if it cannot be read: then the buffer holds a mixture.
 *
 * Thread-safe. Ranks need not call it together. No other thread may use the buffer until it
 * returns.
 */
SF_API
SF_CHECKED
int sf_read_region_of(struct sf_job *job,
                      uint64_t version,
                      uint32_t rank,
                      const char *name,
                      void *buf,
                      size_t bytes);

/**
 * The text of the last failure in this thread: which function, what and why, in English and
 * UTF-8. Empty if nothing has failed in this thread.
 *
 * Only meaningful right after a function of this library has returned a negative code: success
 * leaves the text of an earlier failure as it is.
 *
 * @return A text that ends with 0, never NULL. It belongs to the library and stays valid until
 *         the next failure in this thread.
 *
 * Thread-safe: every thread has its own text.
 */
SF_API const char *sf_last_error(void);

/**
 * The word for a code, such as "missing" for `SF_MISSING`.
 *
 * @param code What a function of this library has returned.
 * @return A constant text, never NULL; "unknown" for a number that is no code.
 *
 * Thread-safe.
 */
SF_API const char *sf_error_name(int code);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STANDFAST_H */
