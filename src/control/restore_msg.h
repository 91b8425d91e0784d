/* What is said about the step that all ranks go back to: bounds and numbers of the messages in msg.h. */
#ifndef CONTROL_RESTORE_MSG_H
#define CONTROL_RESTORE_MSG_H

#define RESTORE_LIST_MAX 2368u /* bytes of these as text */
#define RESTORE_WHY_MAX  400u

/* How far a node is with the attempt that it speaks of. */
enum restore_at {
    RESTORE_AT_STOCK, /* it has said what it can read */
    RESTORE_AT_TOLD,  /* it knows the decision */
    RESTORE_AT_READ,  /* all its workers have read that step */
    RESTORE_AT_GONE,  /* … and were told to go on */
    RESTORE_ATS,
};

enum restore_what { RESTORE_TELL, RESTORE_READ, RESTORE_GO, RESTORE_WHATS };

#endif
