/* Why a file that is there cannot be executed: what the kernel means with its number. */
#ifndef SYS_EXEC_ERROR_H
#define SYS_EXEC_ERROR_H
#include <stdbool.h>
#include <stddef.h>

/* Of a file's first bytes, execve() having failed with `sys`: one clause, or false if they do not explain it. */
bool exec_error_reason(const char *head, size_t n, int sys, char *out, size_t size);

/* The same of a file. */
bool exec_error_explain(const char *path, int sys, char *out, size_t size);

#endif
