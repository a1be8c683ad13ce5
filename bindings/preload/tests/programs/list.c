/*
 * A linked list, a growing array, globals and a local table: a program that calls nothing.
 *     list STEPS [FILE [COUNT]]
 * The file, of numbers, is opened COUNT times and read again at every step. Half-way it waits as long
 * as there is a file `hold` in its directory.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    struct node *next;
    uint64_t value;
    char *text;
};

static struct node *head;
static uint64_t *grown;
static size_t grown_len;

static void push(uint64_t value) {
    struct node *node = malloc(sizeof *node);
    node->next = head;
    node->value = value;
    node->text = malloc(32);
    snprintf(node->text, 32, "%llx", (unsigned long long)value);
    head = node;
    grown = realloc(grown, (grown_len + 1) * sizeof *grown);
    grown[grown_len++] = value * 3;
}

enum { WATCHED_MAX = 256 };
static FILE *watched[WATCHED_MAX];

/* Every other one would be closed in a program that this one starts. */
static int is_closed_on_exec(int i) { return i % 2; }

static int read_again(int i) {
    unsigned long number;
    rewind(watched[i]);
    int flags = fcntl(fileno(watched[i]), F_GETFD);
    return fscanf(watched[i], "%lu", &number) == 1 && !!(flags & FD_CLOEXEC) == is_closed_on_exec(i);
}

int main(int argc, char **argv) {
    int steps = atoi(argv[1]);
    uint64_t local[64] = {0}, state = 1, sum = 0;
    int files = argc > 3 ? atoi(argv[3]) : argc > 2;
    for (int i = 0; i < files; i++)
        if (!(watched[i] = fopen(argv[2], is_closed_on_exec(i) ? "re" : "r")))
            return 2;
    printf("begin\n");
    fflush(stdout);
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 100; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            push(state >> 20);
            local[state >> 58] += step;
        }
        for (int i = 0; i < files; i++)
            if (!read_again(i))
                return 3;
        printf("step %d\n", step);
        fflush(stdout);
        do
            usleep(2000);
        while (step == steps / 2 && access("hold", F_OK) == 0);
    }
    for (struct node *node = head; node; node = node->next)
        sum = sum * 31 + node->value + strtoull(node->text, NULL, 16);
    for (size_t i = 0; i < grown_len; i++)
        sum = sum * 31 + grown[i];
    for (int i = 0; i < 64; i++)
        sum = sum * 31 + local[i];
    while (head) {
        struct node *next = head->next;
        free(head->text);
        free(head);
        head = next;
    }
    free(grown);
    printf("answer %llx\n", (unsigned long long)sum);
    return 7;
}
