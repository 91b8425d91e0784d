# zoo_venv.sh PYTHON: makes .venv-zoo, which has that python's packages and, beside them, optimizers that others have published.
# --no-deps: nothing in it may bring another torch.
[ -e .venv-zoo/.complete ] && exit 0
"$1" -m venv .venv-zoo || exit 1
"$1" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' > "$(.venv-zoo/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/tests.pth"
.venv-zoo/bin/python -m pip install -qq --disable-pip-version-check --no-deps 'pytorch_optimizer==4.1.0' 'schedulefree==1.4.1' 'torch_ema==0.3' \
    'ema_pytorch==0.8.3' && touch .venv-zoo/.complete
