/* What a coordinator says of its job.  Each is also an event of that name. */
#ifndef EVENT_NOTES_H
#define EVENT_NOTES_H

#define NOTE_LIST(X)                                                                                                   \
    X(JOINED, "node_joined")                                                                                           \
    X(RECONNECTED, "node_reconnected")                                                                                 \
    X(REFUSED, "node_refused")                                                                                         \
    X(LOST, "node_lost")                                                                                               \
    X(LEFT, "node_left")                                                                                               \
    X(FORMED, "round_formed")                                                                                          \
    X(REBUILT, "round_rebuilt")                                                                                        \
    X(FAILED, "worker_failed")                                                                                         \
    X(FINDING, "finding")                                                                                              \
    X(PLANNED, "change_planned")                                                                                       \
    X(STOPPING, "round_stopping")                                                                                      \
    X(CAUSE, "root_cause")                                                                                             \
    X(CLOSED, "round_closed")                                                                                          \
    X(ASIDE, "node_set_aside")                                                                                         \
    X(PROBING, "probe_started")                                                                                        \
    X(RESTORE, "step_agreed")                                                                                          \
    X(EMERGENCY, "emergency_checkpoint")                                                                               \
    X(SAVED, "step_saved")                                                                                             \
    X(JUDGED, "node_judged")                                                                                           \
    X(PROBED, "probe_ended")                                                                                           \
    X(COMMAND, "command")                                                                                              \
    X(ENDED, "job_ended")

enum note_type {
#define X(NAME, name) NOTE_##NAME,
    NOTE_LIST(X)
#undef X
};

#endif
