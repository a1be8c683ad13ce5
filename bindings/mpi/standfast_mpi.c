/*
 * The table of communication functions of standfast.h (sf_comm_table) for MPI.
 *
 * Compile it with the mpicc of the program and link it with the program:
 *
 *     mpicc -c standfast_mpi.c $(pkg-config --cflags standfast)
 *
 * Every function translates one call; whatever needs thought is in the library. Communicators are
 * passed as pointers to MPI_Comm. Codes are MPI's own, which are positive, or one of `trouble`.
 *
 * Waiting. MPI's own waits keep a processor busy. A rank that waits here for the message of another
 * first gives way to whoever wants to run, and soon sleeps in between: it must not take time from a
 * program that computes. Collective calls come when all ranks are there, and need no such care.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "standfast_mpi.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if MPI_VERSION < 3
#error "Standfast needs MPI 3.0 or later"
#endif

/* Longest single message. Far below the limit of an int, and long enough to be rare. */
#ifndef SF_MPI_PIECE_BYTES
#define SF_MPI_PIECE_BYTES (1 << 28)
#endif

/* The largest tag that the library uses. MPI promises only half of that. */
enum { TAG_MAX = 65535 };

/* For how long a rank that waits stays awake, and for how long it sleeps at a time afterwards. */
static const double AWAKE_S = 200e-6;
enum { NAP_NS = 50000 };

enum trouble {
    NOT_RUNNING = -1,
    ENDED = -2,
    NO_COMM = -3,
    TWO_GROUPS = -4,
    FEW_TAGS = -5,
    NO_MEMORY = -6
};

/* Requests and messages travel through the library as numbers. */
typedef char a_request_fits[sizeof(MPI_Request) <= sizeof(size_t) ? 1 : -1];
typedef char a_message_fits[sizeof(MPI_Message) <= sizeof(size_t) ? 1 : -1];

static MPI_Comm comm_of(void *handle)
{
    return *(MPI_Comm *)handle;
}

/* MPI must not be called before its start and after its end: many would end the program. */
static int running(void)
{
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    return ended ? ENDED : started ? 0 : NOT_RUNNING;
}

static void rest(double since)
{
    static const struct timespec nap = {0, NAP_NS};
    if (MPI_Wtime() - since < AWAKE_S)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

static int wait_for(MPI_Request request)
{
    const double since = MPI_Wtime();
    int code, done = 0;
    while ((code = MPI_Test(&request, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done)
        rest(since);
    return code;
}

static int describe(void *handle, sf_comm_facts *facts)
{
    const MPI_Comm comm = comm_of(handle);
    int code = running(), between = 0, level = 0, found = 0;
    int *tag_max = NULL;
    if (code)
        return code;
    if (comm == MPI_COMM_NULL)
        return NO_COMM;
    if ((code = MPI_Comm_test_inter(comm, &between)))
        return code;
    if (between)
        return TWO_GROUPS;
    if ((code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &found)))
        return code;
    if (found && *tag_max < TAG_MAX)
        return FEW_TAGS;
    if ((code = MPI_Query_thread(&level)))
        return code;
    facts->any_thread = level == MPI_THREAD_MULTIPLE;
    facts->piece_bytes = SF_MPI_PIECE_BYTES;
    if ((code = MPI_Comm_rank(comm, &facts->rank)))
        return code;
    return MPI_Comm_size(comm, &facts->size);
}

static int start_send(void *handle, int to, int tag, const void *bytes, int length,
                      size_t *sending)
{
    MPI_Request request;
    int code = running();
    if (!code)
        code = MPI_Isend(bytes, length, MPI_BYTE, to, tag, comm_of(handle), &request);
    if (!code)
        memcpy(sending, &request, sizeof request);
    return code;
}

static int end_send(void *handle, size_t sending)
{
    MPI_Request request;
    int code = running();
    (void)handle;
    memcpy(&request, &sending, sizeof request);
    return code ? code : wait_for(request);
}

/* The message found is taken out of MPI's queue: no other thread can receive it in between. */
static int probe(void *handle, int from, int tag, size_t *message, int *length)
{
    const MPI_Comm comm = comm_of(handle);
    MPI_Message found;
    MPI_Status status;
    int there = 0, code = running();
    if (code)
        return code;
    const double since = MPI_Wtime();
    while (!(code = MPI_Improbe(from, tag, comm, &there, &found, &status)) && !there)
        rest(since);
    if (!code)
        code = MPI_Get_count(&status, MPI_BYTE, length);
    if (!code)
        memcpy(message, &found, sizeof found);
    return code;
}

static int receive(void *handle, size_t message, void *bytes, int length)
{
    MPI_Message found;
    int code = running();
    (void)handle;
    memcpy(&found, &message, sizeof found);
    return code ? code : MPI_Mrecv(bytes, length, MPI_BYTE, &found, MPI_STATUS_IGNORE);
}

static int all_to_all_lengths(void *handle, const uint64_t *outgoing, uint64_t *incoming)
{
    int code = running();
    if (!code)
        code = MPI_Alltoall(outgoing, 1, MPI_UINT64_T, incoming, 1, MPI_UINT64_T, comm_of(handle));
    return code;
}

/* Where each of `count` messages begins; returns where the last one ends. */
static int lay_out(const int *lengths, int count, int *starts)
{
    int at = 0;
    for (int i = 0; i < count; i++) {
        starts[i] = at;
        at += lengths[i];
    }
    return at;
}

static int all_to_all(void *handle, const void *outgoing, const int *outgoing_lengths,
                      void *incoming, const int *incoming_lengths)
{
    const MPI_Comm comm = comm_of(handle);
    /* Some address that is sure not to mean anything to MPI, as 0 and 1 do. */
    char nothing = 0;
    int size = 0, code = running();
    if (!code)
        code = MPI_Comm_size(comm, &size);
    if (code)
        return code;
    int *starts = malloc(2 * (size_t)size * sizeof *starts);
    if (!starts)
        return NO_MEMORY;
    if (lay_out(outgoing_lengths, size, starts) == 0)
        outgoing = &nothing;
    if (lay_out(incoming_lengths, size, starts + size) == 0)
        incoming = &nothing;
    code = MPI_Alltoallv(outgoing, outgoing_lengths, starts, MPI_BYTE, incoming, incoming_lengths,
                         starts + size, MPI_BYTE, comm);
    free(starts);
    return code;
}

/* Makes a new communicator the library's. */
static int hand_over(MPI_Comm made, void **handle)
{
    MPI_Comm *kept = malloc(sizeof *kept);
    if (!kept) {
        MPI_Comm_free(&made);
        return NO_MEMORY;
    }
    *kept = made;
    *handle = kept;
    /* By default an error would end the program. */
    return MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
}

static int split(void *handle, int colour, int key, void **part)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = running();
    *part = NULL;
    if (!code)
        code = MPI_Comm_split(comm_of(handle), colour < 0 ? MPI_UNDEFINED : colour, key, &made);
    return code || made == MPI_COMM_NULL ? code : hand_over(made, part);
}

static int duplicate(void *handle, void **copy)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = running();
    *copy = NULL;
    if (!code)
        code = MPI_Comm_dup(comm_of(handle), &made);
    return code ? code : hand_over(made, copy);
}

static void release(void *handle)
{
    if (running() == 0)
        MPI_Comm_free(handle);
    free(handle);
}

static const char *text_of(int code, char text[MPI_MAX_ERROR_STRING])
{
    int length = 0;
    switch (code) {
    case NOT_RUNNING:
        return "MPI is not running: call MPI_Init first";
    case ENDED:
        return "MPI has ended: call sf_finalize before MPI_Finalize";
    case NO_COMM:
        return "it is MPI_COMM_NULL: this rank belongs to no communicator";
    case TWO_GROUPS:
        return "it joins two groups: merge them with MPI_Intercomm_merge";
    case FEW_TAGS:
        return "this MPI has too few tags";
    case NO_MEMORY:
        return "no memory is left";
    default:
        if (running() != 0 || MPI_Error_string(code, text, &length) != MPI_SUCCESS)
            return "MPI failed and does not say why";
        return text;
    }
}

static void describe_error(int code, char *text, size_t capacity)
{
    char room[MPI_MAX_ERROR_STRING];
    if (capacity > 0) {
        text[0] = 0;
        strncat(text, text_of(code, room), capacity - 1);
    }
}

const sf_comm_table *sf_mpi_table(void)
{
    static const sf_comm_table table = {
        .struct_bytes = sizeof(sf_comm_table),
        .describe = describe,
        .start_send = start_send,
        .end_send = end_send,
        .probe = probe,
        .receive = receive,
        .all_to_all_lengths = all_to_all_lengths,
        .all_to_all = all_to_all,
        .split = split,
        .duplicate = duplicate,
        .release = release,
        .describe_error = describe_error,
    };
    return &table;
}

int sf_init_comm(MPI_Comm comm, const char *options, sf_job **job)
{
    return sf_init_transport(sf_mpi_table(), &comm, options, job);
}

int sf_init_comm_f(MPI_Fint comm, const char *options, sf_job **job)
{
    return sf_init_comm(MPI_Comm_f2c(comm), options, job);
}
