#!/usr/bin/env python3
"""Names what nothing under src/ and cmd/ uses: dead.py [ROOT], one line each; exit status 1 if there is any.

Looked at are exported functions and variables, macros and enumerators.  Uses in comments and in texts do not count, nor do
declarations in headers; what a macro makes by pasting (`MSG_##name##_FIELDS`) does.  test/lib/dead.allow names what may
stay, one a line, with the reason after it; a line there that is not needed is an error, too.
"""
import collections
import os
import re
import subprocess
import sys

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')
PASTED = re.compile(r"(\w+)?((?:\s*##\s*\w+)+)")


def sources(root):
    """All C sources below src/ and cmd/: {path relative to root: text without comments and literals}."""
    found = {}
    for top in ("src", "cmd"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h", ".S")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as f:
                        found[os.path.relpath(path, root)] = TEXT.sub('""', COMMENT.sub(" ", f.read()))
    return found


def patterns(texts):
    """Regular expressions of the identifiers that macros paste together; what only joins two arguments is left out."""
    found = set()
    for text in texts.values():
        for line in re.findall(r"^\s*#\s*define\b.*(?:\\\n.*)*", text, re.M):
            head = re.match(r"\s*#\s*define\s+\w+(?:\(([^)]*)\))?", line)
            arguments = {a.strip() for a in (head[1] or "").split(",")}
            for first, rest in PASTED.findall(line[head.end():]):
                pieces = [first or ""] + re.findall(r"\w+", rest)
                if all(p in arguments or not p for p in pieces):
                    continue
                found.add("".join(r"\w+" if p in arguments else re.escape(p) for p in pieces))
    return re.compile("(?:" + "|".join(sorted(found)) + r")\Z") if found else re.compile(r"(?!)")


def definitions(root):
    """(name, path, kind) of each macro, enumerator, exported function and exported variable."""
    said = subprocess.run(["ctags", "--languages=C", "--langmap=C:.c.h", "--kinds-C=defv", "-x", "--_xformat=%N\t%F\t%K\t%{C.properties}\t%{file}",
                           "-R", "src", "cmd"], cwd=root, capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        name, path, kind, properties, of_file = (line.split("\t") + ["", ""])[:5]
        if kind in ("function", "variable") and ("static" in properties or of_file not in ("", "-") or path.endswith(".h")):
            continue
        if kind == "macro" and name.endswith("_H"):
            continue
        yield name, path, kind


def main(root):
    texts = sources(root)
    uses, declared = collections.Counter(), collections.Counter()
    for path, text in texts.items():
        uses.update(IDENTIFIER.findall(text))
        if path.endswith(".h"):
            # a prototype, or a variable that is declared: no use of it
            declared.update(re.findall(r"(\w+)\s*\([^;{}]*\)\s*;", text))
            declared.update(re.findall(r"^extern\b[^;(]*?\b(\w+)(?:\[[^\]]*\])*\s*;", text, re.M))
    pasted = patterns(texts)
    with open(os.path.join(root, "test/lib/dead.allow"), encoding="utf-8") as f:
        allowed = {line.split()[0] for line in f if line.strip() and line[0] != "#"}
    dead = {}
    for name, path, kind in definitions(root):
        least = 2 if kind in ("function", "variable") and declared[name] else 1
        if uses[name] <= least and not pasted.match(name) and name != "main":
            dead[name] = f"{path}: {kind} {name} has no use under src/ or cmd/"
    for name in sorted(set(dead) - allowed, key=lambda n: dead[n]):
        print(dead[name])
    for name in sorted(allowed - set(dead)):
        print(f"test/lib/dead.allow: {name} is used, or is not there: take the line out")
    return 1 if set(dead) ^ allowed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
