# Makes .venv with PyTorch, scikit-learn and safetensors, only if the python3 at hand lacks them.
all='import torch, sklearn, safetensors'
python3 -c "$all" 2>/dev/null && exit 0
[ -e .venv/.complete ] && .venv/bin/python -c 'import safetensors' 2>/dev/null && exit 0
echo "venv: this python3 has no torch: making .venv with torch, scikit-learn and safetensors"
python3 -m venv .venv && .venv/bin/python -m pip install -qq --disable-pip-version-check 'torch==2.13.0' 'scikit-learn==1.9.1' \
    'safetensors==0.8.0' numpy && touch .venv/.complete
