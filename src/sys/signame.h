/* Signals by name: one table gives the name, the meaning and the look-up by number.  Real-time signals have names too.
 */
#ifndef SYS_SIGNAME_H
#define SYS_SIGNAME_H

#define SIGNAME_MAX 16 /* bytes of the longest name with its 0 */

/* Writes "SIGSEGV", "SIGRTMIN+3", or "signal 99" for a number that means nothing here; returns out. */
const char *signame(int number, char out[SIGNAME_MAX]);

/* One line without a full stop: "segmentation fault: memory that is not the program's was touched"; "" if unknown. */
const char *signame_meaning(int number);

/* "SIGTERM", "term", "TERM" or "15" -> 15; -1 for what is no signal's name. */
int signame_number(const char *name);

#endif
