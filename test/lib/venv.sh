# Makes .venv with PyTorch and scikit-learn, only if the python3 at hand lacks them.  The stamp is written last.
python3 -c 'import torch, sklearn' 2>/dev/null && exit 0
[ -e .venv/.complete ] && exit 0
echo "venv: this python3 has no torch: making .venv with torch and scikit-learn"
python3 -m venv .venv && .venv/bin/python -m pip install -qq --disable-pip-version-check 'torch==2.13.0' 'scikit-learn==1.9.1' numpy && touch .venv/.complete
