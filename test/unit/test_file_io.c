#include <stdlib.h>

#include "lib/tap.h"
#include "util/file.h"

static void test_print(void)
{
    char *got = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&got, &n);
    struct el_err e = {0};
    struct el_buf text = EL_BUF_INIT(NULL, 0);
    /* The sanitizers of `make check-san` see a NULL that goes to fwrite(). */
    ok(file_print(to, "memory", &text, &e) == 0 && n == 0, "nothing is printed without a fault");
    el_buf_puts(&text, "found\n");
    ok(file_print(to, "memory", &text, &e) == 0 && !text.v, "text is printed and freed");
    is_str(got, "found\n", "as it was");
    fclose(to);
    free(got);
}

static void test_print_fails(void)
{
    FILE *full = fopen("/dev/full", "w");
    struct el_err e = {0};
    struct el_buf text = EL_BUF_INIT(NULL, 1);
    el_buf_puts(&text, "x");
    ok(file_print(full, "that file", &text, &e) < 0 && e.status == EL_EXIT_CANTCREAT, "a full disk is an error");
    is_str(e.text, "cannot write to that file: No space left on device", "and is named");
    fclose(full);
    e = (struct el_err){0};
    el_buf_puts(&text, "too long");
    ok(file_print(stdout, "stdout", &text, &e) < 0 && e.status == EL_EXIT_OSERR, "a text that lacks a part is none");
}

static void test_read(void)
{
    char text[64];
    ok(file_read("/proc/self/comm", text, sizeof text) == 13, "a file of the kernel");
    is_str(text, "test_file_io\n", "whole");
    ok(file_read("/proc/self/comm", text, 5) == 4, "what is longer");
    is_str(text, "test", "is cut");
    ok(file_readf(text, sizeof text, "/proc", "/self/%s", "no-such-file") < 0 && !text[0], "a file that is not there");
}

int main(void)
{
    test_print();
    test_print_fails();
    test_read();
    return done();
}
