#include "sys/cgroup.h"

#include "lib/tap.h"

static const char hybrid[] =
    "23 1 0:20 / / rw - overlay overlay rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime master:3 propagate_from:2 - cgroup2 cgroup2 rw\n";
static const char hybrid_self[] =
    "9:name=systemd:/user.slice\n4:memory:/process/ab\n1:cpu,cpuacct:/\n0::/user.slice/x\n";
static const char pure[] = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

static void is_own(const char *mounts, const char *self, const char *want, const char *what)
{
    char path[CGROUP_PATH_MAX];
    int r = cgroup_own(mounts, self, path, sizeof path);
    is_str(r == 0 ? path : NULL, want, what);
}

static void is_v1(const char *controller, const char *want, const char *what)
{
    char path[CGROUP_PATH_MAX];
    int r = cgroup_own_v1(hybrid, hybrid_self, controller, path, sizeof path);
    is_str(r == 0 ? path : NULL, want, what);
}

int main(void)
{
    is_own(pure, "0::/user.slice/user-0.slice\n", "/sys/fs/cgroup/user.slice/user-0.slice", "a host with version 2");
    is_own(pure, "0::/\n", "/sys/fs/cgroup", "the root of the tree");
    is_own(hybrid, hybrid_self, "/sys/fs/cgroup/unified/user.slice/x", "a host with both");
    is_own(hybrid, "4:memory:/\n", NULL, "no version 2 line");
    is_own("35 31 0:32 / /m rw - cgroup cgroup rw,memory\n", "0::/\n", NULL, "no version 2 mount");
    is_own("29 23 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "0::/docker/ab/w\n", "/sys/fs/cgroup/w",
           "a container that sees its part of the tree only");
    is_own("29 23 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "0::/docker/ab\n", "/sys/fs/cgroup",
           "and is at its root");
    is_own("29 23 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "0::/docker/abc\n", NULL,
           "a name that only begins alike");
    is_own(pure, "0::/../outside\n", NULL, "outside of the namespace");
    is_own("29 23 0:26 / /mnt/a\\040b\\134c rw - cgroup2 none rw\n", "0::/x y\n", "/mnt/a b\\c/x y", "escaped blanks");
    is_own("29 23 0:26 / / rw - cgroup2 none rw\n", "0::/x\n", "/x", "mounted at the root");
    is_own("1 2 3\n\n29\n29 23 0:26 / /c rw\n29 23 0:26 x y rw - cgroup2 n rw\n", "0::/\n", NULL, "broken lines");
    is_own("", "", NULL, "nothing");
    is_own(pure, "0::/a", "/sys/fs/cgroup/a", "no newline at the end");
    is_own(pure, "0:\n0::x\n:::\n", NULL, "broken membership");
    is_v1("memory", "/sys/fs/cgroup/memory/process/ab", "version 1, memory");
    is_v1("cpu", "/sys/fs/cgroup/cpu,cpuacct", "version 1, one of two controllers of a mount");
    is_v1("cpuset", NULL, "version 1, not there");
    char at[CGROUP_PATH_MAX], tiny[8];
    is_str(cgroup_mount(hybrid, NULL, at, sizeof at) == 0 ? at : NULL, "/sys/fs/cgroup/unified", "a mount, version 2");
    is_str(cgroup_mount(hybrid, "memory", at, sizeof at) == 0 ? at : NULL, "/sys/fs/cgroup/memory", "version 1");
    is_str(cgroup_mount("29 23 0:26 /pod /c rw - cgroup2 n rw\n", NULL, at, sizeof at) == 0 ? at : NULL, "/c",
           "a mount of a part of the tree");
    is_num(cgroup_mount(pure, "memory", at, sizeof at), -1, "a mount that is not there");
    is_num(cgroup_own(pure, "0::/a\n", tiny, sizeof tiny), -1, "a path that does not fit is refused");
    is_str(tiny, "", "and nothing is left of it");
    return done();
}
