#!/usr/bin/env python3
"""Mentions of files and sections that are not in the tree: references.py [ROOT], one line each; exit status 1 if any.

Looked for in sources, tests, manuals and documents: paths below the top folders ("src/util/err.h"), in C also the way in which
includes name them ("util/err.h") and, within a folder, files of it ("err_io.c"); and sections of documents ('doc/design.md,
"Fence"').  A path may end in a star, as a pattern.
"""
import glob
import os
import re
import subprocess
import sys

TOPS = ("src", "cmd", "test", "man", "doc", "examples")
PATH = re.compile(r"(?<![\w/.$}*-])((?:src|cmd|test|man|doc|examples)/[\w./*+-]*\.(?:c|h|S|sh|py|md|[1-9]|awk|txt|allow))\b")
INCLUDED = re.compile(r"(?<![\w/.$}*-])([a-z]+/(?:child/)?\w+\.[ch])\b")
SECTION = re.compile(r'([\w./-]+\.md), ((?:"[^"]+"(?:, )?)+)')
# what C sources name that is not ours
# tests that plant files in a scratch tree
PLANTING = ("test/unit/test_dead.sh", "test/unit/test_layers.sh", "test/unit/test_names.sh", "test/unit/test_pure.sh",
            "test/unit/test_references.sh", "test/unit/test_host_io.c")
FOREIGN = ("sys/", "linux/", "netinet/", "arpa/", "net/", "torch/", "asm/", "bits/")


def tracked(root):
    said = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    if said.returncode == 0:
        return [f for f in said.stdout.splitlines() if os.path.isfile(os.path.join(root, f))]
    return [os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files]


def main(root):
    missing = []
    for path in tracked(root):
        if "/corpus/" in path or "/data/" in path or not path.endswith((".c", ".h", ".py", ".sh", ".md", ".1", ".5", ".7", "Makefile")):
            continue
        if path in PLANTING:
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        for number, line in enumerate(text.split("\n"), 1):
            found = PATH.findall(line)
            if path.endswith((".c", ".h")) and path.startswith(("src/", "cmd/")):
                found += ["src/" + p for p in INCLUDED.findall(line) if not p.startswith(FOREIGN) and p.split("/")[0] not in TOPS]
            for name in found:
                name = name.rstrip(".")
                if not glob.glob(os.path.join(root, name)) and not glob.glob(os.path.join(root, "src", name)):
                    missing.append(f"{path}:{number}: {name} is not there")
        for document, sections in SECTION.findall(text.replace("\n *", "").replace("\n#", "")):
            try:
                with open(os.path.join(root, document), encoding="utf-8") as f:
                    titles = re.findall(r"^#+ (.*)$", f.read(), re.M)
            except OSError:
                missing.append(f"{path}: {document} is not there")
                continue
            missing += [f'{path}: {document} has no section "{s}"' for s in re.findall(r'"([^"]+)"', sections) if s not in titles]
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
