/* The role elrun-check: one group of single-node checks in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "probe/collect.h"
#include "probe/role.h"

static void tell_finding(void *ctx, const struct finding *f)
{
    struct probe_wire w;
    (void)ctx;
    finding_to_wire(f, &w);
    role_tell(&w);
}

static void tell_fact(void *ctx, const char *name, const char *value)
{
    struct probe_wire w;
    (void)ctx;
    if (!*value)
        return;
    wire_init(&w, WIRE_FACT);
    w.u.fact.name = name;
    w.u.fact.value = value;
    role_tell(&w);
}

static void tell_metric(void *ctx, const struct collect_metric *m)
{
    struct probe_wire w;
    (void)ctx;
    wire_init(&w, WIRE_M);
    w.u.m.name = m->name;
    w.u.m.unit = m->unit;
    w.u.m.rail = 0;
    w.u.m.n = m->n;
    w.u.m.min = m->min;
    w.u.m.median = m->median;
    w.u.m.p95 = m->p95;
    role_tell(&w);
}

/* Where memory runs out, a check must go rather than anything of the job. */
static void go_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "1000", 4) != 4) /* without it then */
        errno = 0;
    close(fd);
}

int check_role(const struct probe_wire *order)
{
    struct probe_wire end;
    go_first();
    signal(SIGXFSZ, SIG_IGN); /* ulimit -f: an error of the write, which is what the check is for */
    int group = order->type == WIRE_CHECK_ORDER ? check_find_group(order->u.check_order.group) : -1;
    if (group < 0) {
        role_tell_error("order", "internal", -1, "no such group of checks");
        return EL_EXIT_USAGE;
    }
    struct collect c = {.root = "",
                        .ckpt_dir = order->u.check_order.ckpt_dir,
                        .tmp_dir = order->u.check_order.tmp_dir,
                        .env = environ,
                        .quick = order->u.check_order.quick,
                        .finding = tell_finding,
                        .fact = tell_fact,
                        .metric = tell_metric};
    collect_group((enum check_group)group, &c);
    wire_init(&end, WIRE_END);
    end.u.end.ok = true;
    role_tell(&end);
    return 0;
}
