/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which machine this is, and since when it runs.
 */
#include "core/backend/host.h"

#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>

#define BOOT_LEN 64

static void read_boot(char *boot)
{
	int fd = io_open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(boot, 0, BOOT_LEN);
	if (fd < 0)
		return;
	if (io_read(fd, boot, BOOT_LEN - 1) < 0)
		*boot = '\0';
	io_close(fd);
}

uint32_t host_boot(void)
{
	static uint32_t known; /* whoever comes first stores the same */
	uint32_t boot = __atomic_load_n(&known, __ATOMIC_RELAXED);
	char text[BOOT_LEN];

	if (boot)
		return boot;
	read_boot(text);
	boot = *text ? crc32c(0, text, strlen(text)) | 1 : 0;
	__atomic_store_n(&known, boot, __ATOMIC_RELAXED);
	return boot;
}

const char *host_name(void)
{
	static const char *known;
	static char spare[64];
	const char *host = __atomic_load_n(&known, __ATOMIC_ACQUIRE), *mine;
	char name[256] = "host", boot[BOOT_LEN], clean[41], made[sizeof(spare)];
	size_t len = 0;

	if (likely(host != NULL))
		return host;
	sys.gethostname(name, sizeof(name) - 1);
	for (const char *p = name; *p && len < sizeof(clean) - 1; p++)
		if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		    *p == '-' || *p == '_')
			clean[len++] = *p;
	clean[len] = '\0';
	read_boot(boot);
	snprintf(made, sizeof(made), "%s-%08x", clean,
		 crc32c(crc32c(0, name, strlen(name)), boot, strlen(boot)));
	/*
	 * Two threads may get here at once: nobody sees a name that is not whole. Without memory both write
	 * the same.
	 */
	mine = mem_strdup(made);
	if (!mine)
		return memcpy(spare, made, sizeof(spare));
	if (__atomic_compare_exchange_n(&known, &host, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return mine;
	mem_free((void *)mine);
	return host;
}
