/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Touching memory. The functions that do are written in assembler, since an address in the code must be
 * known: at user_load or user_store the fault happens, at user_fault the call goes on.
 */
#include "core/base/usermem.h"

#include <ucontext.h>

#define PAGE ((uintptr_t)4096) /* or a divisor of it */

int user_touch(const void *p);
int user_touch_write(void *p);

#if defined(__x86_64__)
#define PC(uc) (uc)->uc_mcontext.gregs[REG_RIP]
#define TOUCH "movb (%rdi), %al\n xorl %eax, %eax\n ret\n"
#define TOUCH_WRITE "movb (%rdi), %al\n movb %al, (%rdi)\n xorl %eax, %eax\n ret\n"
#define FAULT "movl $-1, %eax\n ret\n"
#elif defined(__aarch64__)
#define PC(uc) (uc)->uc_mcontext.pc
#define TOUCH "ldrb w1, [x0]\n mov w0, wzr\n ret\n"
#define TOUCH_WRITE "ldrb w1, [x0]\n strb w1, [x0]\n mov w0, wzr\n ret\n"
#define FAULT "mov w0, #-1\n ret\n"
#endif

#ifdef PC

#define FUNCTION(name, body) \
	".globl " name "\n.hidden " name "\n.type " name ", %function\n" name ":\n.cfi_startproc\n" body \
	".cfi_endproc\n.size " name ", .-" name "\n"

__asm__(".pushsection .text\n" FUNCTION("user_touch", TOUCH) FUNCTION("user_touch_write", TOUCH_WRITE)
		FUNCTION("user_fault", FAULT) ".popsection\n");

extern const char user_fault[] __attribute__((visibility("hidden")));

/*
 * The table of user_has_byte(): distances of an instruction, and of where to go on, from the entry's own
 * members.
 */
struct fixup {
	int32_t at, to;
};

extern const struct fixup __start_plfs_fixup[] __attribute__((weak, visibility("hidden")));
extern const struct fixup __stop_plfs_fixup[] __attribute__((weak, visibility("hidden")));

/* Nothing else in the two functions can fault, and they have put nothing on the stack. */
bool user_fixup(void *ucontext)
{
	ucontext_t *uc = ucontext;
	const struct fixup *f;

	for (f = __start_plfs_fixup; f < __stop_plfs_fixup; f++) {
		if ((uintptr_t)PC(uc) != (uintptr_t)&f->at + (uintptr_t)f->at)
			continue;
		PC(uc) = (__typeof__(PC(uc)))((uintptr_t)&f->to + (uintptr_t)f->to);
		return true;
	}
	if ((uintptr_t)PC(uc) < (uintptr_t)user_touch || (uintptr_t)PC(uc) >= (uintptr_t)user_fault)
		return false;
	PC(uc) = (__typeof__(PC(uc)))(uintptr_t)user_fault;
	return true;
}

#else

int user_touch(const void *p)
{
	(void)*(const volatile char *)p;
	return 0;
}

int user_touch_write(void *p)
{
	*(volatile char *)p = *(volatile char *)p;
	return 0;
}

bool user_fixup(void *ucontext)
{
	(void)ucontext;
	return false;
}

#endif

size_t user_readable(const void *p, size_t len)
{
	uintptr_t at = (uintptr_t)p, start = at, end = at + len;

	if (end < at)
		end = UINTPTR_MAX;
	while (at < end && at >= PAGE && !user_touch((const void *)at))
		at = (at | (PAGE - 1)) + 1;
	return min_size(at - start, len);
}

size_t user_writable(void *p, size_t len)
{
	uintptr_t at = (uintptr_t)p, start = at, end = at + len;

	if (end < at)
		end = UINTPTR_MAX;
	while (at < end && at >= PAGE && !user_touch_write((void *)at))
		at = (at | (PAGE - 1)) + 1;
	return min_size(at - start, len);
}
