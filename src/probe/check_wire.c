#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/check.h"
#include "probe/wire.h"

void finding_to_wire(const struct finding *f, struct probe_wire *w)
{
    assert(f->check < CHECKS);
    wire_init(w, WIRE_CHECK);
    w->u.check.name = check_rows[f->check].name;
    w->u.check.state = finding_state_name(f->state);
    w->u.check.on = f->on;
    w->u.check.text = f->text;
    if (!f->has_value)
        return;
    w->u.check.value = f->value;
    if (f->limit >= 0)
        w->u.check.limit = f->limit;
}

int finding_from_wire(const struct wire_check *w, struct finding *f)
{
    char on[FINDING_ON_MAX];
    int check = check_find(w->name), state = finding_state_find(w->state ? w->state : "");
    if (check < 0)
        return -1;
    if (w->gpu >= 0)
        snprintf(on, sizeof on, "GPU %d", (int)w->gpu);
    else
        snprintf(on, sizeof on, "%s", w->on ? w->on : "");
    *f = finding_value((enum check)check, on, w->value);
    finding_say(f, "%s", w->text ? w->text : "");
    f->has_value = isfinite(w->value);
    f->limit = isfinite(w->limit) ? w->limit : check_rows[check].limit;
    if (!f->has_value)
        f->value = f->limit = 0;
    f->state = state < 0 ? FINDING_OK : (enum finding_state)state;
    return 0;
}
