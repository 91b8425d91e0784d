/* What the node says: each message is made from the state when it is sent. */
#include <assert.h>
#include <stdio.h>

#include "member/member_private.h"

static uint64_t phase_of(const struct member *m)
{
    if (m->end_due) /* STOPPED follows */
        return MSG_PHASE_STOPPING;
    if (m->attempt)
        return m->stopping ? MSG_PHASE_STOPPING : m->up ? MSG_PHASE_RUNNING : MSG_PHASE_STARTING;
    return m->entering ? MSG_PHASE_STARTING : m->succeeded ? MSG_PHASE_SUCCEEDED : MSG_PHASE_IDLE;
}

static void hello(const struct member *m, struct msg_hello *h)
{
    const struct member_conf *c = &m->conf;
    *h = (struct msg_hello){.run_id = c->run_id,
                            .instance = c->instance,
                            .connection = m->connection,
                            .host = c->host,
                            .addr = c->addr,
                            .node_rank = c->node_rank,
                            .slots = c->slots,
                            .role = c->role,
                            .domain = c->domain,
                            .uid = c->uid,
                            .pid = c->pid,
                            .command = c->command,
                            .elrun = c->elrun,
                            .phase = phase_of(m),
                            .number = m->round.number,
                            .coord = m->round.coord,
                            .seen = m->seen,
                            .latest = m->latest && !m->fenced,
                            .failed = m->failed,
                            .fenced = m->fenced,
                            .stuck = m->stuck};
    h->group_rank = m->round.number ? (int64_t)m->world.group_rank : -1;
    if (m->round.number) {
        h->group_size = m->world.group_size;
        h->rank_base = m->world.rank_base;
        h->restarts = m->world.restarts;
        h->token = m->world.token;
        h->world_size_first = m->world.world_size_first;
        h->world_size_previous = m->world.world_size_previous;
        h->master_addr = m->master_addr;
        h->master_port = m->world.master_port;
    }
#define F(T, kind, name, limit, must) h->name = c->set.name;
    MSG_SETTINGS(F, rdzv_settings)
#undef F
}

static void worker_failed(const struct member *m, el_usec now, struct msg_worker_failed *f)
{
    const struct member_incident *x = &m->incident;
    *f = (struct msg_worker_failed){.number = m->round.number,
                                    .coord = m->round.coord,
                                    .local_rank = x->local_rank,
                                    .code = x->code,
                                    .signal = x->signal,
                                    .oom = x->oom,
                                    .late = x->late,
                                    .text = x->text};
    member_on_clock(m, x->time, now, &f->time_us, &f->error_us);
}

static void stopped(const struct member *m, struct msg_stopped *s)
{
    bool own = m->stopped.number == m->round.number && m->stopped.coord == m->round.coord;
    *s = (struct msg_stopped){.number = m->stopped.number,
                              .coord = m->stopped.coord,
                              .stuck = m->stuck,
                              .fenced = m->fenced,
                              .ranks = own ? m->ranks : NULL,
                              .missing = own ? m->missing : NULL};
}

static void member_message_digest(const struct member *m, struct msg_digest *out)
{
    const struct restart_digest *d = &m->digest;
    uint64_t elapsed_ms = d->elapsed / 1000;
    *out = (struct msg_digest){.number = m->round.number,
                               .coord = m->round.coord,
                               .kind = d->kind,
                               .witnesses = d->witnesses,
                               .passed = d->passed,
                               .elapsed_ms = elapsed_ms < MSG_MS_MAX ? elapsed_ms : MSG_MS_MAX,
                               .what = d->what,
                               .place = d->place,
                               .hardware = d->hardware,
                               .evidence = d->evidence,
                               .steps_known = d->steps_known,
                               .steps = d->steps < INT64_MAX ? d->steps : INT64_MAX};
}

void member_lease_reply(const struct member *m, const struct msg_heartbeat *beat, el_usec now, struct msg *out)
{
    *out = (struct msg){.type = MSG_HEARTBEAT_ACK, .u.heartbeat = {beat->time, now, member_view(m, now)}};
}

void member_message(const struct member *m, enum msg_type what, el_usec now, struct msg *out)
{
    *out = (struct msg){.type = what};
    switch ((unsigned)what) {
    case MSG_HELLO: hello(m, &out->u.hello); break;
    case MSG_HEARTBEAT: out->u.heartbeat = (struct msg_heartbeat){now, m->lease_echo, member_view(m, now)}; break;
    case MSG_STORE_READY:
        out->u.store_ready = (struct msg_store_ready){m->store.number, m->store.coord, m->store_addr, m->store_port};
        break;
    case MSG_NO_STORE: out->u.no_store = (struct msg_no_store){m->store.number, m->store.coord, m->trouble}; break;
    case MSG_LEASE_FAILED:
        out->u.lease_failed = (struct msg_lease_failed){m->round.number, m->round.coord, m->trouble};
        break;
    case MSG_WORKER_FAILED: worker_failed(m, now, &out->u.worker_failed); break;
    case MSG_DIGEST: member_message_digest(m, &out->u.digest); break;
    case MSG_STOPPED: stopped(m, &out->u.stopped); break;
    case MSG_CKPT_INVENTORY: member_restore_message(m, &out->u.ckpt_inventory); break;
    case MSG_CKPT_TAKEN: member_common_message(m, &out->u.ckpt_taken); break;
    case MSG_CKPT_DIGESTS: member_digests_message(m, &out->u.ckpt_digests); break;
    case MSG_EMERGENCY_STATE: member_words_message(m, &out->u.emergency_state); break;
    case MSG_CKPT_STATE: member_save_message(m, &out->u.ckpt_state); break;
    case MSG_LEAVING:
        out->u.leaving = (struct msg_leaving){(uint64_t)m->leave_signal, m->leaving ? "asked to leave" : m->text};
        break;
    case MSG_END_ACK: out->u.end_ack = (struct msg_end_ack){m->status}; break;
    case MSG_LEASE_REQUEST:
        out->u.lease_request = (struct msg_lease_request){m->conf.run_id, m->round.number, m->round.coord,
                                                          m->world.token, m->world.group_rank};
        break;
    case MSG_STARTED:
    case MSG_AT_BOUNDARY:
        out->u.at_boundary = (struct msg_at_boundary){m->round.number, m->round.coord, m->notice.ask};
        break;
    case MSG_STEP_REPORT:
        out->u.step_report = (struct msg_step_report){
            m->round.number, m->round.coord, m->notice.ask, member_step_told(m->live.step), m->live.deaf, m->live.past};
        break;
    case MSG_SUBSCRIBED:
    case MSG_SUCCEEDED:
    case MSG_ROUND_OVER: /* the same two fields in front */
        out->u.started = (struct msg_started){m->round.number, m->round.coord};
        break;
    default: assert(false && "a message that agents do not send");
    }
}

const struct msg_world *member_world(const struct member *m)
{
    return &m->world;
}

struct member_round member_store_round(const struct member *m)
{
    return m->store;
}

const char *member_fence_text(const struct member *m, char to[MSG_TEXT_MAX + 1])
{
    unsigned long long round = (unsigned long long)m->round.number;
    if (m->over_told)
        snprintf(
            to, MSG_TEXT_MAX + 1,
            "round %llu was stopped, as another node says, and the coordinator is not there to say it: the workers "
            "here are killed, since others may get their ranks",
            round);
    else if (m->refused > m->coord_heard)
        snprintf(
            to, MSG_TEXT_MAX + 1,
            "connections to the coordinator have been refused for %.6g s, here alone as it seems: this node may be "
            "cut off, so its workers of round %llu are killed before others get their ranks; it joins again when it "
            "can",
            (double)member_silence_limit(m) / (double)EL_SEC(1), round);
    else
        snprintf(to, MSG_TEXT_MAX + 1,
                 "the coordinator's host has been silent for %.6g s: this node may be cut off, so its workers of round "
                 "%llu are killed before others get their ranks; it joins again when it can",
                 (double)member_silence_limit(m) / (double)EL_SEC(1), round);
    return to;
}
