/* What is said about steps that all nodes hold (common_step.h): the fields of its messages, which are rows of msg.h. */
#ifndef CONTROL_COMMON_STEP_MSG_H
#define CONTROL_COMMON_STEP_MSG_H
#include "control/limits.h"

#define COMMON_STEP_STEPS_TEXT 240u /* of SLOT_PIN_TOLD steps: 19, 16 and 19 digits and three signs each */

#define MSG_ckpt_taken_FIELDS(F, T)                                                                                    \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, STR, whole, COMMON_STEP_STEPS_TEXT,                                                                           \
      0) /* "13@9f3a:0 12@9f3a": steps that all its workers could read: the one                                        \
       that all nodes hold and newer ones, the last trained first, each with                                           \
       its lineage and, if it is of this history, its era (snapshot/slot_pin.h) */                                     \
    F(T, STR, coming, COMMON_STEP_STEPS_TEXT, 0) /* … that all of them may yet come to have */                       \
    F(T, NUM, era, INT64_MAX, 1)                 /* no other step of this era … */                                   \
    F(T, INT, passed, INT64_MAX, 1)   /* … up to this one will be whole here, and none of an era before */           \
    F(T, INT, begun, MSG_STEP_MAX, 1) /* the highest step that a worker has come to */                                 \
    F(T, BOOL, ready, 0, 0)           /* every worker could take a step, but for the steps named here */               \
    F(T, BOOL, stuck, 0, 0)           /* a worker finds no slot */                                                     \
    F(T, BOOL, elsewhere, 0, 0)       /* its workers need none of their own: the script shares it */
/* --- to an agent --- */
#define MSG_ckpt_common_FIELDS(F, T)                                                                                   \
    MSG_ROUND(F, T)                                                                                                    \
    F(T, INT, step, MSG_STEP_MAX, 1) /* the newest that all nodes hold; -1: there is none */                           \
    F(T, HEX, lineage, 0, 0)                                                                                           \
    F(T, STR, useless, 2 * COMMON_STEP_STEPS_TEXT,                                                                     \
      0)                          /* "13@9f3a": of those that it has named, what some node never has */                \
    F(T, NUM, from, INT64_MAX, 0) /* workers that do not wait take no step below */

#endif
