/* core_pattern, as core(5) has it. */
#include "sys/corefile.h"

#include "lib/tap.h"

static struct corefile c;
static struct corefile_facts facts = {.pid = 42, .pid_global = true, .signal = 11, .host = "n/1", .cwd = "/w"};

static const char *plan(const char *pattern)
{
    static char shown[COREFILE_PATH_MAX + 2000];
    corefile_plan(&c, pattern, &facts);
    snprintf(shown, sizeof shown, "%s|%s", c.folder, c.name);
    for (char *s = shown; *s; s++)
        if (*s == COREFILE_ANY)
            *s = '*';
    return shown;
}

static void test_plan(void)
{
    is_str(plan("core\n"), "/w|core", "the kernel's own default");
    ok(c.kind == COREFILE_FILE && !c.names_pid, "anybody's core has this name");
    is_str(plan("/cores/core.%e.%p.%t"), "/cores|core.*.42.*", "a folder, pid, name and time");
    ok(c.names_pid, "its own");
    is_str(plan("sub/c.%s.%h.%%.%p"), "/w/sub|c.11.n!1.%.42", "signal, host, per cent");
    is_str(plan("/core%"), "/|core", "a single per cent at the end");
    is_str(plan("/var/%e/core"), "|core", "a folder that is not known");
    is_str(plan("%Q%p"), "/w|42", "what the kernel does not know is dropped");
    is_str(plan("/c/%P"), "/c|42", "pid in the first namespace");
    facts.pid_global = false;
    is_str(plan("/c/%P"), "/c|*", "in another one it is not known");
    ok(!c.names_pid, "then it names nobody");
    facts.uses_pid = true;
    is_str(plan("/c/core"), "/c|core.42", "core_uses_pid");
    is_str(plan("/c/core.%p"), "/c|core.42", "not twice");
    facts.uses_pid = false;
    facts.pid_global = true;
    plan("|/usr/lib/systemd/systemd-coredump %P %u %g\n");
    ok(c.kind == COREFILE_PIPE, "a program takes it");
    is_str(c.helper, "systemd-coredump", "its name");
    plan("|");
    is_str(c.helper, "", "no name");
    plan("@@/run/core.socket\n");
    ok(c.kind == COREFILE_SOCKET, "a server takes it");
    is_str(c.helper, "/run/core.socket", "its address");
    plan("/c/");
    is_num(c.kind, COREFILE_UNKNOWN, "no name at all");
    plan("");
    is_num(c.kind, COREFILE_UNKNOWN, "no pattern: no cores");
    char longer[COREFILE_PATTERN_MAX];
    for (size_t i = 0; i + 2 < sizeof longer; i += 2)
        longer[i] = '%', longer[i + 1] = 'h';
    longer[sizeof longer - 2] = 0;
    plan(longer);
    ok(strlen(c.name) < sizeof c.name, "a long one stays inside");
}

static bool match(const char *shown, const char *name)
{
    char text[200];
    snprintf(text, sizeof text, "%s", shown);
    for (char *s = text; *s; s++)
        if (*s == '*')
            *s = COREFILE_ANY;
    return corefile_match(text, name);
}

static void test_match(void)
{
    ok(match("core", "core") && !match("core", "core.1") && !match("core.1", "core"), "without a gap");
    ok(match("core.*.42.*", "core.python3.42.1700") && match("core.*.42.*", "core..42."), "gaps, also empty ones");
    ok(!match("core.*.42.*", "core.python3.43.1700") && !match("core.*.42", "core.x.42.9"), "another process");
    ok(match("*", "") && match("**a", "ba") && !match("a", ""), "at the ends");
    ok(match("a*b*c", "aXbXbYc"), "going back");
}

int main(void)
{
    test_plan();
    test_match();
    return done();
}
