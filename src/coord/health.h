/* What is asked of a job's health check; numbers of MSG_SETTINGS. */
#ifndef COORD_HEALTH_H
#define COORD_HEALTH_H

enum health_when {
    HEALTH_OFF,
    HEALTH_START,   /* before the job's first round */
    HEALTH_RESTART, /* and after a round in which hardware or network failed */
    HEALTH_ALWAYS,  /* before each round */
};
enum health_backend { HEALTH_AUTO, HEALTH_NCCL, HEALTH_TCP };
enum health_on_bad { HEALTH_BAD_EXCLUDE, HEALTH_BAD_STOP, HEALTH_BAD_PARK };
enum health_on_straggler { HEALTH_STRAGGLER_WARN, HEALTH_STRAGGLER_EXCLUDE };
enum health_on_undecided { HEALTH_UNDECIDED_WARN, HEALTH_UNDECIDED_STOP };

#endif
