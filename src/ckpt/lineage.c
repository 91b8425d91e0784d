#include "ckpt/lineage.h"

#include <string.h>

#include "util/rng.h"

/* It is written down, and compared by other machines: the bits must not depend on anything but the values. */
static uint64_t lineage_mix(uint64_t hash, uint64_t value)
{
    struct el_rng rng = {hash ^ value};
    return el_rng_next(&rng);
}

uint64_t lineage_begin(uint64_t number, uint64_t coord, uint64_t attempt)
{
    uint64_t hash = lineage_mix(lineage_mix(lineage_mix(0, number), coord), attempt);
    return hash ? hash : 1;
}

uint64_t lineage_back(uint64_t lineage, int64_t step)
{
    uint64_t hash = lineage_mix(lineage_mix(1, lineage), (uint64_t)step);
    return hash ? hash : 1;
}

uint64_t lineage_again(uint64_t lineage, int64_t step, uint64_t take)
{
    uint64_t hash = lineage_mix(lineage_mix(lineage_mix(2, lineage), (uint64_t)step), take);
    return hash ? hash : 1;
}

uint64_t lineage_of_epoch(const char *epoch)
{
    const char *end = strrchr(epoch, '.');
    uint64_t hash = 0;
    if (!*epoch)
        return 0;
    for (end = end ? end : epoch + strlen(epoch); epoch < end; epoch++)
        hash = lineage_mix(hash, (unsigned char)*epoch);
    return hash ? hash : 1;
}
