# Makes .venv with PyTorch, scikit-learn, safetensors and hypothesis, only if the python3 at hand lacks them.
all='import torch, sklearn, safetensors, hypothesis'
python3 -c "$all" 2>/dev/null && exit 0
[ -e .venv/.complete ] && .venv/bin/python -c 'import safetensors, hypothesis' 2>/dev/null && exit 0
echo "venv: this python3 lacks one of torch, scikit-learn, safetensors and hypothesis: making .venv with them"
python3 -m venv .venv && .venv/bin/python -m pip install -qq --disable-pip-version-check 'torch==2.13.0' 'scikit-learn==1.9.1' \
    'safetensors==0.8.0' 'hypothesis==6.170.17' numpy && touch .venv/.complete
