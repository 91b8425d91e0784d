/* A mark is believed if it is a plain file of ours: anybody may put what he likes into the folder. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "member/coordinator_mark.h"
#include "lib/tap.h"

static struct coordinator_mark_place place;
static char path[PATH_MAX + NAME_MAX + 2];

/* One that says that nobody comes back: its process was of another boot. */
static void put(const char *name)
{
    char text[COORDINATOR_MARK_TEXT_MAX];
    const struct coordinator_mark old = {
        .boot = "another-boot", .pid = 1, .start_ticks = 1, .written_s = 1, .keep_s = 1};
    FILE *f = fopen(name, "w");
    if (f) {
        fputs(coordinator_mark_text(&old, text), f);
        fclose(f);
    }
}

static bool is_free(void)
{
    return coordinator_mark_look(&place, 0);
}

int main(void)
{
    char folder[] = "/tmp/elrun-test-mark.XXXXXX", aside[64];
    if (!mkdtemp(folder) || setenv("XDG_RUNTIME_DIR", folder, 1))
        return 1;
    snprintf(aside, sizeof aside, "%s/aside", folder);
    coordinator_mark_find(29400, "job", EL_SEC(600), &place);
    snprintf(path, sizeof path, "%s/%s", place.folder, place.name);
    ok(is_free(), "without a mark nobody comes back");
    put(path);
    ok(is_free(), "an old mark of ours is believed");
    if (chown(path, 65534, 65534) == 0)
        ok(!is_free(), "one of another user is not");
    else
        skip("one of another user is not", "files of others want root");
    unlink(path);
    put(aside);
    ok(symlink(aside, path) == 0 && !is_free(), "nor a link, whatever it leads to");
    unlink(path);
    ok(mkfifo(path, 0600) == 0 && !is_free(), "nor a pipe, on which nobody waits");
    unlink(path);
    mkdir(path, 0700);
    ok(!is_free(), "nor a folder");
    rmdir(path);
    unlink(aside);
    rmdir(folder);
    return done();
}
