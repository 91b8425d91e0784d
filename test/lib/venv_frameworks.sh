# Makes .venv-frameworks with what test/e2e/frameworks.txt names, anew when that has changed.
list=test/e2e/frameworks.txt venv=.venv-frameworks
cmp -s $list $venv/.complete && exit 0
echo "venv: making $venv with the frameworks of $list"
[ -d $venv ] || python3 -m venv $venv || exit 1
pip="$venv/bin/python -m pip install -qq --disable-pip-version-check --no-warn-script-location"
# DeepSpeed is built here: of its setup torch is a part, and none of its kernels is needed on a host without a GPU.
grep -v '^deepspeed' $list >$venv/first.txt
$pip setuptools wheel ninja packaging -r $venv/first.txt &&
    DS_BUILD_OPS=0 $pip --no-build-isolation -c $venv/first.txt -r $list && cp $list $venv/.complete
