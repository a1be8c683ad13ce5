/* Knows one name and no header. */
#include <stdio.h>

int sf_checkpoint(void) __attribute__((weak));

int main(void) {
    printf("begin\n");
    if (sf_checkpoint && sf_checkpoint() < 0)
        return 3;
    printf("answer %d\n", sf_checkpoint != NULL);
    return 7;
}
