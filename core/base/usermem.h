/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory at an address that the program passed. The kernel answers a bad address with EFAULT; the library
 * would die of it, with locks held. So it first touches the memory, page by page, by an instruction that the
 * fault's handler knows.
 *
 * The handler is in preload/signal.c. Without it (the tools), and on machines that user_fixup() does not
 * know, a bad address other than NULL is a fault; so is memory that another thread unmaps meanwhile.
 */
#ifndef PLFS_USERMEM_H
#define PLFS_USERMEM_H

#include "core/base/base.h"

/*
 * How many of @len bytes at @p, up to the first bad one, can be read; can be read and written. The bytes do
 * not change.
 */
size_t user_readable(const void *p, size_t len);
size_t user_writable(void *p, size_t len);

/*
 * Whether the byte at @p, which may be NULL, can be read. It costs a load: the handler finds the instruction
 * in a table.
 */
#ifdef __x86_64__
static inline __attribute__((always_inline)) bool user_has_byte(const void *p)
{
	__asm__ goto("1: testb $0, (%0)\n"
		     ".pushsection plfs_fixup, \"a\"\n"
		     ".balign 4\n"
		     ".long 1b - ., %l[bad] - .\n"
		     ".popsection"
		     :
		     : "r"(p)
		     : "cc"
		     : bad);
	return true;
bad:
	return false;
}
#else
static inline bool user_has_byte(const void *p) { return user_readable(p, 1); }
#endif

/* Whether all @len bytes (1 or more) at @p can be read. */
static inline bool user_has_bytes(const void *p, size_t len)
{
	if (unlikely(len > 4096 || (uintptr_t)p < 4096))
		return user_readable(p, len) == len;
	return user_has_byte(p) && user_has_byte((const char *)p + len - 1);
}

/*
 * In a handler of SIGSEGV or SIGBUS. true: one of the above touched the memory, and goes on; false: none did.
 */
bool user_fixup(void *ucontext);

#endif
