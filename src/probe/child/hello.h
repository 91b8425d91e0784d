/* The libraries and the device are open: the line "hello" and the facts to compare. */
#ifndef CHILD_HELLO_H
#define CHILD_HELLO_H
#include "cuda.h"
#include "gather.h"
#include "order.h"

/* nc NULL: a role without NCCL; it still gets the CUDA runtime that the job's NCCL was built for. */
void hello_open(const struct order *o, struct cuda *cu, struct nccl *nc);

#endif
