/* Why the workers of a job are to stop at a step boundary: a number of NOTICE, of the status page of a worker, and of
 * elrun.Change in training scripts. */
#ifndef CONTROL_NOTICE_H
#define CONTROL_NOTICE_H

enum notice_why {
    NOTICE_NOTHING,
    NOTICE_SCALE_UP, /* nodes that wait join */
    NOTICE_DRAIN,    /* a node is drained, and replaced if there is another */
    NOTICE_EVICTION, /* a node has been told to leave */
    NOTICE_OPERATOR, /* a restart was asked for */
    NOTICE_WHYS
};

#endif
