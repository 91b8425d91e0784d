#include "sys/gpu.h"

#include "lib/tap.h"

static struct gpu_list all;

static void add(const char *pci, const char *uuid, int minor)
{
    char text[256];
    snprintf(text, sizeof text,
             "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 16\nGPU UUID: \t %s\n"
             "Bus Location: \t %s\nDevice Minor: \t %d\n",
             uuid, pci, minor);
    ok(gpu_add(&all, pci, text) == 0, pci);
}

/* want: the indices, or "mig N" */
static void sees(const char *visible, const char *want, const char *what)
{
    struct gpu_visible v;
    char got[64] = "";
    gpu_select(&all, visible, &v);
    if (v.mig)
        snprintf(got, sizeof got, "mig %u", v.n);
    else
        for (unsigned i = 0; i < v.n; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u", i ? "," : "", v.index[i]);
    is_str(got, want, what);
}

int main(void)
{
    add("0000:dc:00.0", "GPU-dddd-1", 3);
    add("0000:1a:00.0", "GPU-aaaa-2", 0);
    add("00010000:01:00.0", "GPU-eeee-3", 2);
    add("0000:1a:01.0", "GPU-aaab-4", 1);
    gpu_sort(&all);
    is_str(all.v[0].pci, "0000:1a:00.0", "ordered by address");
    is_str(all.v[3].pci, "00010000:01:00.0", "the domain counts first");
    is_str(all.v[1].uuid, "GPU-aaab-4", "UUID");
    is_str(all.v[1].model, "NVIDIA H100 80GB HBM3", "model");
    is_num(all.v[2].minor, 3, "device node");
    sees(NULL, "0,1,2,3", "not set: all");
    sees("", "", "empty: none");
    sees("2", "2", "one");
    sees("3,1", "3,1", "in the order of the list");
    sees(" 1 , +0", "1,0", "white space and a sign");
    sees("1gpu2,2ampere", "1,2", "what follows the digits does not matter");
    sees("0,4,1", "0", "a number that is not there ends the list");
    sees("0,-1,1", "0", "so does a negative one");
    sees("-1", "", "the usual way to say none");
    sees("0,,1", "0", "and an empty entry");
    sees("NoDevFiles", "", "what Slurm writes for none");
    sees("1,1", "", "a repeated one empties it");
    sees("GPU-dddd-1,GPU-aaaa-2", "2,0", "UUIDs");
    sees("GPU-d,GPU-aaab", "2,1", "beginnings of UUIDs");
    sees("GPU-d,GPU-aaa", "2", "one that fits two devices ends the list");
    sees("GPU-d,1", "2", "so does a number among UUIDs");
    sees("GPU-d,GPU-ddd", "", "the same device twice empties it");
    sees("MIG-a,MIG-b,MIG-c", "mig 3", "slices are counted");
    sees("MIG-a,MIG-b,MIG-a", "mig 0", "the same slice twice");
    sees("MIG-a,0", "mig 1", "something else ends them");
    char text[] = "GPU UUID: \t GPU-?\n";
    static const char *const bad[] = {"",
                                      "x",
                                      "0000:1a:00",
                                      "0000:1a:00.0x",
                                      "0000:1a:00.00000000000000000000000000",
                                      "0000-1a:00.0",
                                      "0000:1aa:00.0"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(gpu_add(&all, bad[i], text) == -1, "not a PCI address");
    while (all.n < GPU_MAX)
        gpu_add(&all, "0000:01:00.0", "");
    ok(gpu_add(&all, "0000:01:00.0", text) == -1, "the list is bounded");
    is_num(all.v[GPU_MAX - 1].minor, -1, "nothing known: no device node");
    char many[1024] = "MIG-0";
    for (int i = 1; i < 90; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",MIG-%d", i);
    sees(many, "mig 64", "so are the slices");
    return done();
}
