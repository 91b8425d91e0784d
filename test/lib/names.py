#!/usr/bin/env python3
"""Names under src/ and cmd/ that stand for several things: names.py [ROOT], one line each; exit status 1 if there is any.

A static function, and a struct, union or enum, has a name that stands in one file."""
import collections
import subprocess
import sys


def tags(root, kinds):
    """(name, path, is it static) of all definitions of these kinds."""
    said = subprocess.run(["ctags", "--languages=C", "--langmap=C:.c.h", f"--kinds-C={kinds}", "-x",
                           "--_xformat=%N\t%F\t%{C.properties}", "-R", "src", "cmd"],
                          cwd=root, capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        name, path, properties = (line.split("\t") + [""])[:3]
        if not name.startswith("__anon"):
            yield name, path, "static" in properties


def several(found):
    """The names that stand in more than one file, and in which."""
    files = collections.defaultdict(set)
    for name, path in found:
        files[name].add(path)
    return {name: sorted(paths) for name, paths in sorted(files.items()) if len(paths) > 1}


def main(root):
    said = []
    # JSON_ROW(x) at the start of a line is a macro that makes a function, and looks like one
    functions = [(n, p) for n, p, static in tags(root, "f") if static and p.endswith(".c") and n != n.upper()]
    for name, paths in several(functions).items():
        said.append(f"static function {name} stands in {', '.join(paths)}")
    for name, paths in several((n, p) for n, p, _ in tags(root, "sgu")).items():
        said.append(f"struct, union or enum {name} stands in {', '.join(paths)}")
    print("\n".join(said), end="\n" if said else "")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
