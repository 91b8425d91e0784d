/* The stock start file asks for __libc_start_main of glibc 2.34; this one asks for the first.  No constructors: there
 * are none in the helper. */
#if defined(__x86_64__)
	.symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
	.text
	.globl _start
	.type _start, @function
_start:
	xorl %ebp, %ebp
	movq %rdx, %r9			/* rtld_fini */
	popq %rsi			/* argc */
	movq %rsp, %rdx			/* argv */
	andq $-16, %rsp
	pushq %rax
	pushq %rsp			/* stack_end */
	xorl %r8d, %r8d			/* fini */
	xorl %ecx, %ecx			/* init */
	leaq main(%rip), %rdi
	call *__libc_start_main@GOTPCREL(%rip)
	hlt
#elif defined(__aarch64__)
	.symver __libc_start_main, __libc_start_main@GLIBC_2.17
	.text
	.globl _start
	.type _start, %function
_start:
	mov x29, #0
	mov x30, #0
	mov x5, x0			/* rtld_fini */
	ldr x1, [sp]			/* argc */
	add x2, sp, #8			/* argv */
	mov x6, sp			/* stack_end */
	mov x3, #0			/* init */
	mov x4, #0			/* fini */
	adrp x0, :got:main
	ldr x0, [x0, :got_lo12:main]
	bl __libc_start_main
	brk #0
#endif
	.size _start, . - _start
	.section .note.GNU-stack, "", %progbits
