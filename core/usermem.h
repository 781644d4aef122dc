/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory whose address the program gave us. The kernel answers a bad one with EFAULT; we would die of it, with locks
 * held. So it is touched before it is used, page by page, by an instruction that the handler of the fault knows.
 *
 * That handler is preload/signal.c's. Where there is none (the tools), and on machines that user_fixup() does not
 * know, a bad address is a fault, but for NULL. So it is if another thread unmaps the memory meanwhile.
 */
#ifndef PLFS_USERMEM_H
#define PLFS_USERMEM_H

#include "base.h"

/* How many of @len bytes at @p can be read, or read and written, up to the first that cannot. Their values stay. */
size_t user_readable(const void *p, size_t len);
size_t user_writable(void *p, size_t len);

/*
 * Whether the byte at @p can be read, NULL included, for nothing but the load: the instruction is entered in a table that
 * the handler looks into.
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

/* In a handler of SIGSEGV or SIGBUS: if one of the above was touching the memory, have it go on. */
bool user_fixup(void *ucontext);

#endif
