# torch_versions.sh: the versions of PyTorch and of Python that elrun is tried with, in this one place.
#
# A version of PyTorch is looked for in PY_TORCH_<MAJOR>_<MINOR> (the path of a python that has it), in the tests' own python, in
# Debian's, and in what venv_torch.sh makes.  always: in make check; long: in make check-long.
TORCH_ALWAYS='1.13 2.13'
TORCH_LONG='2.14 2.15'
# What venv_torch.sh installs: builds for CUDA, several GB each.  The last one is the newest of the registry.
torch_release() { case $1 in 2.14) echo 2.14.1 ;; 2.15) echo 2.15.0 ;; esac; }
# Of Python: pythonX.Y of PATH, and PY_<MAJOR>_<MINOR>.
PYTHONS='3.9 3.10 3.11 3.12 3.13 3.14'

# torch_of PYTHON: the version that it would import, "2.13.0+cpu"; nothing if none.  Without the seconds of an import.
torch_of() {
    "$1" -c 'import importlib.util as u, os, re
f = u.find_spec("torch")
text = open(os.path.join(os.path.dirname(f.origin), "version.py")).read() if f else ""
print(re.search("__version__ *(?::.*)?= *.([^\x27\x22]*)", text).group(1) if text else "")' 2>/dev/null
}
# python_with_torch MAJOR.MINOR: the python that has it; status 1 if there is none
python_with_torch() {
    eval "pt_named=\${PY_TORCH_$(echo "$1" | tr . _):-}"
    for pt in "$pt_named" "${PY:-}" /usr/bin/python3 "$HERE/../../.venv/bin/python" "$HERE/../../.venv-torch-$1/bin/python"; do
        [ -n "$pt" ] || continue
        case $(torch_of "$pt") in "$1" | "$1".* | "$1"[a-z+]*) echo "$pt"; return 0 ;; esac
    done
    return 1
}
# python_of MAJOR.MINOR: that interpreter; status 1 if there is none
python_of() {
    eval "po_named=\${PY_$(echo "$1" | tr . _):-}"
    for po in "$po_named" "python$1" "${PY:-}" /usr/bin/python3; do
        [ -z "$po" ] || [ "$("$po" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" != "$1" ] || { command -v "$po"; return 0; }
    done
    return 1
}
# absent NAME HOW: a version that is not there: a skip with its name, and with CI a failure
absent() {
    if [ -n "${CI:-}" ]; then result 1 "$1: it is here"; note "$2"
    else skip "$2" "$1"; fi
}
