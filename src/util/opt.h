/* Options: one row each.  From the rows of a command come its parser, the defaults from the environment, the bounds,
 * the help text, the completions of three shells and the check of the manual; nothing about an option is written twice.
 *
 * Spelling: --name VALUE, --name=VALUE, -x VALUE, -xVALUE; "_" may stand for "-".  Options may be cut short as long as
 * they stay unambiguous among the rows of origin OPT_TORCHRUN; the others are spelled in full, so that a new one never
 * spoils a short form in use.  Options may stand before, between and behind operands; behind "--", which is dropped,
 * all are operands.  Where what follows the first operand belongs to somebody else (`foreign`) parsing stops there.
 * Values come from the command line, else the variable `env`, else `env_other`, else `def`; all run through the same
 * conversion, and only the one that counts is converted. */
#ifndef UTIL_OPT_H
#define UTIL_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/err.h"

#define OPT_ROWS_MAX 128
#define OPT_NOWHERE  ((size_t)-1) /* offset of a value that is checked and then not needed */

enum opt_type {
    OPT_FLAG,     /* bool; from the environment an integer, other than 0 = on */
    OPT_COUNT,    /* unsigned: how often it was given */
    OPT_STRING,   /* const char *, into argv or the environment */
    OPT_PATH,     /* the same, a file or folder: never empty; a variable that is empty counts as not set */
    OPT_UINT,     /* unsigned, min … max */
    OPT_DURATION, /* el_usec, min … max */
    OPT_CHOICE,   /* int: which of `choices` */
    OPT_CUSTOM,   /* set() is called with the text, which is NULL for a row without `arg` */
    OPT_STOP      /* as OPT_STRING or, without `arg`, nothing; parsing ends at once (--help) */
};
enum opt_origin { OPT_TORCHRUN, OPT_ELRUN };

struct opt_row {
    const char *name; /* with dashes, without the two in front */
    char letter;      /* short form, 0 if none */
    enum opt_type type;
    enum opt_origin origin;
    const char *arg;       /* what help calls the value; NULL: takes none */
    const char *choices;   /* "a|b|c": all values (OPT_CHOICE), or the words among them (for completion) */
    uint64_t min, max;     /* OPT_UINT, OPT_DURATION */
    const char *def;       /* default as the user would type it; NULL: the target keeps what it has */
    const char *env;       /* variable, NULL if none */
    const char *env_other; /* second variable, asked after `env` */
    const char *group;     /* heading in the help text; rows of a group stand together */
    const char *help;      /* one sentence without full stop */
    size_t offset;         /* in the target */
    int (*set)(void *target, const char *value, struct el_err *e); /* OPT_CUSTOM; says only what would be right */
};

/* What people type who come from elsewhere: "-np" is meant to be "--nproc-per-node". */
struct opt_hint {
    const char *wrong, *right;
};

struct opt_table {
    const char *command;  /* "elrun run" */
    const char *operands; /* "SCRIPT [ARG ...]"; "" if it takes none */
    bool foreign;         /* words behind the first operand are none of its options, whatever they look like */
    const char *about; /* at the top of the help text: paragraphs divided by newlines; one that begins with a space is
                          printed as it is */
    const char *notes; /* at its end, in the same form; NULL if none */
    const struct opt_row *rows;
    size_t n;
    const struct opt_hint *hints;
    size_t hints_count;
};

struct opt_result {
    int next;                         /* index of the first operand, or argc; all others are behind it */
    const struct opt_row *stop;       /* the OPT_STOP row that ended it, or NULL */
    unsigned char seen[OPT_ROWS_MAX]; /* by row: 0 default, 1 environment, 2 command line */
};

/* Reads argv[0…argc-1] (the words behind the command's name), which it puts in order: options, operands; and env
 * ("NAME=value", ends with NULL) into target.
 * 0, or -1 with a one-line error of status EL_EXIT_USAGE. */
int opt_parse(const struct opt_table *t, int argc, char **argv, char **env, void *target, struct opt_result *result,
              struct el_err *e);

/* The row with exactly this name; NULL. */
const struct opt_row *opt_find(const struct opt_table *t, const char *name);

/* Which of "a|b|c" the first n bytes of s are; -1 if none. */
int opt_choice(const char *choices, const char *s, size_t n);

/* Help text of a command, 100 columns. */
void opt_help(const struct opt_table *t, struct el_buf *out);

/* Appends text, broken at spaces before column 100; the lines after the first begin at column `indent`, and the first
 * one goes on at `column`. */
void opt_wrap(struct el_buf *out, const char *text, size_t column, size_t indent);

/* How far a is from b: insertions, deletions, changes, swaps of neighbours.  Words over 63 bytes are infinitely far. */
unsigned opt_distance(const char *a, const char *b);

/* Of n words, the one that was probably meant; NULL if none is near. */
const char *opt_nearest(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n);

/* --- completion (opt_complete.c) --- */
struct opt_command {
    const char *name, *summary;
    const struct opt_table *options; /* NULL: none */
    const char *words;               /* "a|b": what its operand may be; NULL: files */
};

/* A completion script for bash, zsh or fish; -1: another shell.  `main` is the command that is meant if none is named.
 */
int opt_complete(const char *shell, const struct opt_command *commands, size_t n, const struct opt_command *main,
                 struct el_buf *out);

#endif
