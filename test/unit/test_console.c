#include "output/console.h"
#include "lib/tap.h"
#include "output/route.h"

static void test_lines(void)
{
    char to[128];
    console_line(to, sizeof to, CONSOLE_PLAIN, EL_WARN, 0, "a\033[2Jb\nc\td");
    is_str(to, "elrun: warning: a?[2Jb?c\td\n", "a text cannot drive the terminal or forge a line");
    console_line(to, sizeof to, CONSOLE_PLAIN, EL_WARN, 0, "\xc2\x9bJ\xe2\x80\xae\xc3\xa9\x9b");
    is_str(to, "elrun: warning: ?J?\xc3\xa9?\n",
           "nor with C1 controls, the direction of text, or bytes that are no UTF-8");
    console_line(to, sizeof to, CONSOLE_COLOUR, EL_ERROR, 0, "x");
    is_str(to, "\033[1;31melrun:\033[0m x\n", "colour");
    console_line(to, sizeof to, CONSOLE_JSON, EL_INFO, 1700000000007, "q\"\\ \xff\xc3\xa9\x01");
    is_str(to, "{\"time\":1700000000.007,\"level\":\"info\",\"text\":\"q\\\"\\\\ \\ufffd\xc3\xa9\\u0001\"}\n", "JSON");
    char longest[400];
    memset(longest, '"', sizeof longest - 1);
    longest[399] = 0;
    size_t n = console_line(to, sizeof to, CONSOLE_JSON, EL_INFO, 0, longest);
    ok(n < sizeof to && strcmp(to + n - 3, "\"}\n") == 0 && to[n - 4] == '"' && to[n - 5] == '\\', "cut, still JSON");
    n = console_line(to, sizeof to, CONSOLE_PLAIN, EL_INFO, 0, longest);
    ok(n == sizeof to - 1 && to[n - 1] == '\n', "cut, still a line");
}

static void test_status(void)
{
    struct console_status st = {.state = "running", .round = 2, .restarts = 1, .max_restarts = 3, .since = EL_SEC(5)};
    char to[512];
    console_status_line(to, sizeof to, &st, EL_SEC(250), 80, false);
    is_str(to, "elrun: running, round 2, restarts 1/3, 4m05s", "status");
    console_status_line(to, sizeof to, &st, EL_SEC(1), 15, true);
    is_str(to, "\033[2melrun: running\033[0m", "cut to the width, colours whole; a clock that stands back is 0");
    ok(console_wants_colour(NULL, "xterm") && console_wants_colour("", "xterm"), "colour");
    ok(!console_wants_colour("1", "xterm") && !console_wants_colour(NULL, "dumb") && !console_wants_colour(NULL, NULL),
       "no colour");
}

static void test_routes(void)
{
    static const struct {
        const char *what;
        struct route_in in;
        struct route want;
    } row[] = {
        {"stdout is inherited", {.shown = true, .logs = true}, {.kind = ROUTE_INHERIT}},
        {"stderr to a file or pipe is read on its way",
         {.is_stderr = true, .shown = true},
         {.kind = ROUTE_PIPE, .to_console = true, .raw = true}},
        {"a terminal is left alone", {.is_stderr = true, .shown = true, .terminal = true}, {.kind = ROUTE_INHERIT}},
        {"unless it shall be captured",
         {.is_stderr = true, .shown = true, .terminal = true, .capture = true},
         {.kind = ROUTE_PTY, .to_console = true, .raw = true}},
        {"redirect", {.shown = true, .redirected = true, .logs = true}, {.kind = ROUTE_FILE}},
        {"redirect without logs", {.shown = true, .redirected = true}, {.kind = ROUTE_NULL}},
        {"tee adds to redirect",
         {.shown = true, .redirected = true, .teed = true, .logs = true, .filter = true},
         {.kind = ROUTE_PIPE, .to_file = true, .to_console = true, .to_filter = true}},
        {"tee without logs", {.shown = true, .teed = true, .filter = true}, {.kind = ROUTE_PIPE, .to_console = true}},
        {"hidden and teed: only the file", {.teed = true, .logs = true}, {.kind = ROUTE_FILE}},
        {"hidden stdout", {.logs = true, .terminal = true}, {.kind = ROUTE_NULL}},
        {"hidden stderr is kept for the report", {.is_stderr = true, .terminal = true}, {.kind = ROUTE_PIPE}},
        {"watched stdout to a file or pipe is read on its way",
         {.shown = true, .logs = true, .watched = true},
         {.kind = ROUTE_PIPE, .to_console = true, .raw = true}},
        {"but no terminal is taken away", {.shown = true, .terminal = true, .watched = true}, {.kind = ROUTE_INHERIT}},
        {"watched and redirected: elrun writes the file",
         {.shown = true, .redirected = true, .logs = true, .watched = true},
         {.kind = ROUTE_PIPE, .to_file = true}},
        {"watched and redirected without logs",
         {.shown = true, .redirected = true, .watched = true},
         {.kind = ROUTE_PIPE}},
        {"watched and hidden", {.logs = true, .terminal = true, .watched = true}, {.kind = ROUTE_PIPE}},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct route r = route_decide(&row[i].in), w = row[i].want;
        ok(r.kind == w.kind && r.to_file == w.to_file && r.to_console == w.to_console && r.to_filter == w.to_filter &&
               r.raw == w.raw,
           row[i].what);
    }
}

int main(void)
{
    test_lines();
    test_status();
    test_routes();
    return done();
}
