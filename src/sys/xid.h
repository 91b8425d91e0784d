/* Xid: the numbers by which NVIDIA's kernel driver names what happened to a GPU, in the kernel log ("NVRM: Xid
 * (PCI:0000:05:00): 79, …").  Numbers and what to do about each are those of NVIDIA's public catalogue
 * (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, "resolution bucket, immediate action"); the words are
 * ours.  Only what says "the hardware may be at fault" makes a node suspect: most Xids are the program's own doing. */
#ifndef SYS_XID_H
#define SYS_XID_H
#include <stdbool.h>
#include <stddef.h>

/* name, hardware suspect, advice.  From harmless to grave: of several in one log the gravest is shown. */
/* clang-format off */
#define XID_ACTION_LIST(X) \
    X(NOTE,    false, "nothing to do now: the GPU works on; reset it in the next pause") \
    X(FOLLOW,  false, "a consequence: look for the Xid before it") \
    X(APP,     false, "the program's own error in most cases; if the same GPU shows it again with other programs, have it checked") \
    X(DRIVER,  true,  "reset the GPU; if it comes back, change the driver's version") \
    X(RESET,   true,  "reset the GPU (nvidia-smi -r); if it comes back, have it replaced") \
    X(LINK,    true,  "check the NVLink bridges, the fabric manager and nvidia-smi nvlink -e, then reset the GPU") \
    X(REBOOT,  true,  "restart the host; if it comes back, have the GPU replaced") \
    X(REPLACE, true,  "take the host out of service and have the GPU replaced")

/* number, action, meaning */
#define XID_LIST(X) \
    X(8,   APP,     "GPU stopped processing: a time limit ran out") \
    X(11,  APP,     "invalid or corrupted push buffer stream") \
    X(12,  APP,     "driver error while handling the GPU's exception") \
    X(13,  APP,     "graphics engine exception: usually an access out of bounds or an illegal instruction") \
    X(25,  APP,     "invalid or illegal push buffer stream") \
    X(31,  APP,     "GPU memory page fault: usually an access to an illegal address") \
    X(32,  APP,     "invalid or corrupted push buffer stream") \
    X(38,  DRIVER,  "driver firmware error") \
    X(43,  FOLLOW,  "GPU stopped processing this program") \
    X(44,  RESET,   "graphics engine fault during a context switch") \
    X(45,  FOLLOW,  "the program's channels were removed after an earlier error, or when it was killed") \
    X(46,  RESET,   "GPU stopped processing") \
    X(48,  RESET,   "uncorrectable (double bit) memory error") \
    X(54,  REPLACE, "auxiliary power is not connected to the GPU") \
    X(61,  RESET,   "internal microcontroller breakpoint or warning") \
    X(62,  RESET,   "internal microcontroller halted") \
    X(63,  NOTE,    "a memory row or page was marked for replacement") \
    X(64,  REPLACE, "a bad memory row or page could not be replaced") \
    X(66,  DRIVER,  "illegal access by the driver") \
    X(68,  APP,     "video decoder exception") \
    X(69,  APP,     "graphics engine class error: an illegal command") \
    X(74,  LINK,    "NVLink error") \
    X(79,  REBOOT,  "GPU has fallen off the bus") \
    X(92,  NOTE,    "high rate of corrected (single bit) memory errors") \
    X(94,  APP,     "contained memory error: only this program was hit") \
    X(95,  RESET,   "uncontained memory error: other programs were hit as well") \
    X(109, RESET,   "context switch timed out") \
    X(110, RESET,   "security fault") \
    X(119, DRIVER,  "GPU system processor (GSP) did not answer in time") \
    X(120, DRIVER,  "GPU system processor (GSP) error") \
    X(121, NOTE,    "corrected error on the link between processor and GPU (C2C)") \
    X(122, RESET,   "the GPU's own flash memory could not be read") \
    X(123, RESET,   "power management unit did not answer") \
    X(125, REPLACE, "the GPU's information memory (inforom) is damaged") \
    X(126, NOTE,    "confidential computing: a message of the firmware") \
    X(136, LINK,    "NVLink training failed") \
    X(137, APP,     "illegal access to a peer over NVLink") \
    X(140, RESET,   "unrecovered memory error") \
    X(142, REPLACE, "video encoder error") \
    X(143, RESET,   "GPU could not be initialised") \
    X(144, LINK,    "NVLink: SAW error") \
    X(145, LINK,    "NVLink: RLW error") \
    X(146, LINK,    "NVLink: TLW error") \
    X(147, LINK,    "NVLink: TREX error") \
    X(148, LINK,    "NVLink: NVLPW_CTRL error") \
    X(149, LINK,    "NVLink: NETIR error") \
    X(150, LINK,    "NVLink: MSE error") \
    X(151, REBOOT,  "key rotation error") \
    X(154, RESET,   "the driver asks for a recovery of the GPU") \
    X(155, LINK,    "NVLink error, reported by software") \
    X(156, RESET,   "a resource of the GPU was retired") \
    X(157, REPLACE, "a resource of the GPU could not be retired") \
    X(158, RESET,   "GPU fatal timeout") \
    X(171, RESET,   "uncorrectable error in the GPU's main memory") \
    X(172, RESET,   "uncorrectable error in a memory inside the GPU")
/* clang-format on */

enum xid_action {
#define X(name, suspect, advice) XID_##name,
    XID_ACTION_LIST(X)
#undef X
};

struct xid {
    unsigned number;
    enum xid_action action;
    const char *meaning;
};

/* The row of this number; NULL = not in the table: then nothing is known and nothing is suspected. */
const struct xid *xid_of(unsigned number);
bool xid_is_suspect(unsigned number);
const char *xid_meaning(unsigned number); /* "" where nothing is known */
const char *xid_advice(unsigned number);  /* one line; "" where nothing is known */

struct xid_event {
    unsigned number;
    char gpu[20];       /* "0000:05:00", as in nvidia-smi but for the function; "" = not named */
    int pid;            /* the program, 0 = not named */
    size_t start, size; /* the line in the text */
};

/* Is this line (without its end, anything in front) an Xid?  Lines that report no fault are none: NVLink events that
 * say "Nonfatal", a recovery action that changed to "None".  NVSwitch's SXid are other numbers and are none either. A
 * GPU that is said to have fallen off the bus without a number is 79. */
bool xid_parse(const char *line, size_t n, struct xid_event *e);

/* The one to show of a text of many lines: the gravest, of equal ones the first.  False if there is none. */
bool xid_find(const char *text, size_t n, struct xid_event *e);

#endif
