# The examples for public frameworks on a GPU, with one rank each; see frameworks.sh.
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || { echo "1..0 # SKIP GPU: there is none"; exit 0; }
. "$(dirname "$0")/../lib/frameworks.sh"
export FRAMEWORKS_GPU=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
for one in ${GPU_FRAMEWORKS-accelerate lightning transformers}; do as_without "$one" 1 20 "5 12"; done
is_clean "frameworks on a GPU"
finished
