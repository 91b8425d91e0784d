# state_parallel.sh with all tensors on a GPU, which the ranks share: over NCCL, as if they were on different hosts.
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || { echo "1..0 # SKIP GPU: there is none"; exit 0; }
"${PY:?a python3 with torch}" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
    { echo "1..0 # SKIP GPU: this PyTorch has no CUDA"; exit 0; }
export STATE_DEVICE=cuda NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
. "$(dirname "$0")/state_parallel.sh"
