/* Lists of steps that nodes hold: what is read is written again in the same words, and read back the same. */
#include <stdlib.h>
#include <string.h>

#include "coord/common_step.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char text[1024], written[COMMON_STEP_STEPS_TEXT + 1];
    struct slot_pin_step v[SLOT_PIN_TOLD], again[SLOT_PIN_TOLD];
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    unsigned n = common_step_list_get(text, v, SLOT_PIN_TOLD);
    common_step_list_put(v, n, written, sizeof written);
    if (n > SLOT_PIN_TOLD || common_step_list_get(written, again, SLOT_PIN_TOLD) != n)
        abort();
    for (unsigned i = 0; i < n; i++)
        if (v[i].step != again[i].step || v[i].lineage != again[i].lineage || v[i].era != again[i].era || v[i].step < 0)
            abort();
    return 0;
}
