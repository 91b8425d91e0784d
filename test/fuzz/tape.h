/* The bytes of a fuzzer as a tape of choices: at its end each is 0. */
#ifndef TEST_FUZZ_TAPE_H
#define TEST_FUZZ_TAPE_H
#include <stdint.h>

struct tape {
    const uint8_t *at, *end;
};

static inline unsigned take(struct tape *t)
{
    return t->at < t->end ? *t->at++ : 0;
}

#endif
