/* What member.c (orders, attempts, the end), member_link.c (link, lease) and member_fence.c (what silence means) share.
 */
#ifndef MEMBER_MEMBER_PRIVATE_H
#define MEMBER_MEMBER_PRIVATE_H
#include "member/member.h"

struct member_action *member_act(struct member_actions *out, enum member_action_type type);
void member_send(struct member *m, struct member_actions *out, enum msg_type what);
void member_quit(struct member *m, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void member_stop_attempt(struct member *m, int signal, el_usec grace, struct member_actions *out);
void member_enter(struct member *m, el_usec now, struct member_actions *out);
void member_start(struct member *m, struct member_actions *out);
void member_tell_end(struct member *m, struct member_actions *out);

void member_rest(struct member *m, struct member_actions *out);

/* member_probe.c */
void member_probe_order(struct member *m, const struct msg_probe *p, el_usec now, struct member_actions *out);
void member_probe_stop(struct member *m, struct member_actions *out);
void member_probe_event(struct member *m, enum member_event_type type, struct member_actions *out);

/* member_restore.c */
void member_restore_reset(struct member *m);
void member_restore_tell(struct member *m, struct member_actions *out); /* a new connection, or news */
void member_restore_event(struct member *m, const struct member_event *ev, struct member_actions *out);
void member_restore_order(struct member *m, const struct msg_restore *r, struct member_actions *out);
void member_restore_message(const struct member *m, struct msg_ckpt_inventory *out);

/* member_save.c */
void member_save_tell(struct member *m, struct member_actions *out);
void member_save_closed(struct member *m, el_usec now);
void member_save_free(struct member *m);
bool member_save_waits(const struct member *m, el_usec now);
void member_save_event(struct member *m, const struct member_event *ev, struct member_actions *out);
void member_save_order(struct member *m, const struct msg *msg, struct member_actions *out);
void member_save_went_back(struct member *m, int64_t step);
void member_save_message(const struct member *m, struct msg_ckpt_state *out);

/* member_words.c */
void member_words_tell(struct member *m, struct member_actions *out);
void member_words_event(struct member *m, const struct member_event *ev, struct member_actions *out);
void member_words_order(struct member *m, const struct msg_ckpt_capture *c, struct member_actions *out);
void member_words_advance(struct member *m, struct member_actions *out);
bool member_words_last(const struct member *m); /* they are being agreed upon, or copied */
void member_common_tell(struct member *m, struct member_actions *out);
void member_common_event(struct member *m, const struct member_event *ev, struct member_actions *out);
void member_common_order(struct member *m, const struct msg *msg, struct member_actions *out);
void member_common_message(const struct member *m, struct msg_ckpt_taken *out);
void member_digests_message(const struct member *m, struct msg_ckpt_digests *out);
void member_words_message(const struct member *m, struct msg_emergency_state *out);

/* member_notice.c */
void member_on_notice(struct member *m, const struct msg_notice *n, el_usec now, struct member_actions *out);
void member_unnotice(struct member *m, const struct msg_world *w, struct member_actions *out);
void member_notice_event(struct member *m, const struct member_event *ev, struct member_actions *out);
void member_on_goodbye(struct member *m, const struct msg_leave_ack *g, el_usec now);

/* As a worker says it on its page, which may be anything; as a message may hold it. */
static inline int64_t member_step_told(int64_t step)
{
    return step < MEMBER_NO_STEP ? MEMBER_NO_STEP : step > MSG_STEP_MAX ? MSG_STEP_MAX : step;
}

/* member_link.c */
el_usec member_silence_limit(const struct member *m);
el_usec member_give_up_at(const struct member *m); /* EL_NEVER while the link is up */
void member_link_lost(struct member *m, const char *why, bool refused, el_usec now);
void member_link_drop(struct member *m, const char *why, el_usec now, struct member_actions *out);
void member_link_event(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out);
void member_link_answered(struct member *m, el_usec now);
void member_beat_reply(struct member *m, const struct msg_heartbeat *beat, el_usec now);
void member_knock(struct member *m, el_usec now, struct member_actions *out);
void member_unknock(struct member *m, struct member_actions *out);
void member_lease_event(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out);
void member_round_over(struct member *m, struct member_actions *out);
void member_link_timeout(struct member *m, el_usec now, struct member_actions *out);
el_usec member_link_deadline(const struct member *m);

/* member_fence.c: what is known of the coordinator, by its answers and by other nodes */
el_usec member_interval(const struct member *m);
void member_heard(el_usec *at, el_usec when); /* the later of the two */
el_usec member_last_heard(const struct member *m);
el_usec member_lease_last_heard(const struct member *m);
void member_fence_reset(struct member *m); /* a new round */
void member_fence_asked(struct member *m, el_usec now);
void member_fence_answered(struct member *m, el_usec asked);
void member_fence_unlinked(struct member *m);
void member_fence_event(struct member *m, const struct member_event *ev, el_usec now); /* of the lease, or DELIVERED */
enum msg_view member_view(const struct member *m, el_usec now);
el_usec member_lease_beat_at(const struct member *m);
void member_fence(struct member *m, el_usec now, struct member_actions *out);

#endif
