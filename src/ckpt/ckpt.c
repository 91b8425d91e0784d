#include "ckpt/ckpt.h"

const char *ckpt_verdict_word(int verdict)
{
    switch (verdict) {
#define X(NAME, number, word)                                                                                          \
    case number: return word;
        CKPT_VERDICTS(X)
#undef X
    default: return "unreadable";
    }
}

int ckpt_verdict_worse(int a, int b)
{
    static const int order[] = {CKPT_DAMAGED, CKPT_INCOMPLETE};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return a && (a != CKPT_UNSUPPORTED || !b) ? a : b;
}
