# venv_torch.sh: makes .venv-torch-X.Y for each version of test/lib/torch_versions.sh that is only in make check-long and not there
# yet, if there is room on the disk.  What cannot be had is said here, and test/e2e/matrix.sh names it again.
HERE=$PWD/test/e2e
. test/lib/torch_versions.sh
for version in $TORCH_LONG; do
    python_with_torch "$version" >/dev/null && continue
    venv=.venv-torch-$version release=$(torch_release "$version")
    if [ "$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')" -lt 16 ]; then
        echo "venv: PyTorch $release: less than 16 GiB are free here"; continue
    fi
    echo "venv: making $venv with PyTorch $release"
    python3 -m venv "$venv" && "$venv/bin/python" -m pip install -qq --disable-pip-version-check "torch==$release" numpy && continue
    rm -rf "$venv"
    echo "venv: PyTorch $release cannot be installed here"
done
