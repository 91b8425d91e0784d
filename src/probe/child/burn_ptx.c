#include "burn_ptx.h"

/* clang-format off */
#define STEP                                                                                                           \
    "\tfma.rn.f32 %x0,%x0,%x0,%c; fma.rn.f32 %x1,%x1,%x1,%c; fma.rn.f32 %x2,%x2,%x2,%c; fma.rn.f32 %x3,%x3,%x3,%c;\n"  \
    "\tfma.rn.f32 %x4,%x4,%x4,%c; fma.rn.f32 %x5,%x5,%x5,%c; fma.rn.f32 %x6,%x6,%x6,%c; fma.rn.f32 %x7,%x7,%x7,%c;\n"
#define SEED(k)                                                                                                        \
    "\tmad.lo.u32 %h,%h,1664525,1013904223; shr.u32 %t,%h,9; or.b32 %t,%t,0x3f800000; mov.b32 %x" #k ",%t;\n"          \
    "\tsub.rn.f32 %x" #k ",%x" #k ",0f3FC00000;\n"
#define FOLD(k) "\tmov.b32 %t,%x" #k "; xor.b32 %h,%h,%t; mul.lo.u32 %h,%h,16777619;\n"

/* sm_50 is the oldest that the drivers of today still take; they compile it for the GPU that is there. */
const char burn_ptx[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry " BURN_NAME "(.param .u64 out, .param .u32 rounds)\n"
    "{\n"
    "\t.reg .pred %p; .reg .b32 %i,%h,%t,%n,%r,%s; .reg .b64 %a,%o; .reg .f32 %c,%x<8>;\n"
    "\tld.param.u64 %a,[out]; ld.param.u32 %n,[rounds]; cvta.to.global.u64 %a,%a;\n"
    "\tmov.u32 %i,%ctaid.x; mov.u32 %t,%ntid.x; mov.u32 %r,%tid.x; mad.lo.u32 %i,%i,%t,%r;\n"
    "\tmul.wide.u32 %o,%i,4; add.u64 %a,%a,%o;\n"
    "\tand.b32 %h,%i,31; mad.lo.u32 %h,%h,0x9E3779B1,0x7F4A7C15;\n"
    "\tmov.f32 %c,0fBFE00000; mov.u32 %r,0;\n"
    "ROUND:\n"
    SEED(0) SEED(1) SEED(2) SEED(3) SEED(4) SEED(5) SEED(6) SEED(7)
    "\tmov.u32 %s,0;\n"
    "STEPS:\n"
    STEP STEP STEP STEP STEP STEP STEP STEP
    "\tadd.u32 %s,%s,1; setp.lt.u32 %p,%s,8; @%p bra STEPS;\n"
    FOLD(0) FOLD(1) FOLD(2) FOLD(3) FOLD(4) FOLD(5) FOLD(6) FOLD(7)
    "\tadd.u32 %r,%r,1; setp.lt.u32 %p,%r,%n; @%p bra ROUND;\n"
    "\tst.global.u32 [%a],%h; ret;\n"
    "}\n";

/* Computed with fmaf() on a processor; the mock of the tests does so again. */
const uint32_t burn_result[BURN_LANES] = {
    0xce0f1ad0u, 0x4d7874a9u, 0x43744dccu, 0x4b557dc0u, 0x53a2bcfeu, 0xdc9b9c2bu, 0x58f8051cu, 0xe2effdbbu,
    0x784f3f4cu, 0x0540d48cu, 0x41700973u, 0x3dd53cdfu, 0x51455d45u, 0x4c9adf12u, 0xbd5b35e5u, 0xbee7d00au,
    0x1a47664eu, 0xbaea10eau, 0x63907558u, 0x75c60844u, 0xf479199bu, 0xdc6a5268u, 0xe7f45844u, 0x853cb345u,
    0xf040a8b3u, 0x187d9e21u, 0xd6348d74u, 0x67c06e2bu, 0x46d8fd72u, 0x38468e5cu, 0xc7d128dau, 0x60837415u,
};
/* clang-format on */
