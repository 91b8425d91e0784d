/* What `elrun doctor` thinks of a host: facts in, rows with a verdict and advice out. */
#ifndef AGENT_DOCTOR_H
#define AGENT_DOCTOR_H
#include "sys/host.h"
#include "util/buf.h"

enum doctor_verdict { DOCTOR_OK, DOCTOR_WARN, DOCTOR_BAD };

struct doctor_row {
    const char *name; /* stable: scripts read it */
    enum doctor_verdict verdict;
    char value[512];
    char advice[256]; /* "" when ok */
};

#define DOCTOR_ROWS_MAX 20

struct doctor_report {
    unsigned n;
    struct doctor_row row[DOCTOR_ROWS_MAX];
    enum doctor_verdict worst;
};

void doctor_judge(const struct host_facts *f, struct doctor_report *out);
const char *doctor_verdict_name(enum doctor_verdict v);

/* The report as one JSON object and a newline, or as lines for a person, with colours or without.  -1 if the buffer is
 * full. */
int doctor_json(const struct doctor_report *r, struct el_buf *out);
int doctor_text(const struct doctor_report *r, bool colour, struct el_buf *out);

#endif
