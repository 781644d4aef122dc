/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of hosts in a stub's header.
 */
#include "core/backend/stub_hosts.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/io.h"

#define ENTRY_LEN 8

static_assert(STUB_HOSTS_LEN == STUB_HOSTS_NR * ENTRY_LEN, "the table has its place in the header");

static uint32_t key_of(const char *host, size_t len) { return crc32c(0, host, len) | 1; }

static void encode(const struct stub *stub, uint32_t host, uint8_t *entry)
{
	uint8_t all[STUB_ID_LEN + 8 + 4];

	memcpy(all, stub->id, STUB_ID_LEN);
	put_le64(all + STUB_ID_LEN, stub->generation_ns);
	put_le32(all + STUB_ID_LEN + 8, host);
	put_le32(entry, host);
	put_le32(entry + 4, crc32c(0, all, sizeof(all)));
}

static void decode(const struct stub *stub, const uint8_t *table, struct stub_hosts *hosts)
{
	hosts->nr = 0;
	for (unsigned i = 0; i < STUB_HOSTS_NR; i++) {
		const uint8_t *p = table + (size_t)i * ENTRY_LEN;
		uint8_t entry[ENTRY_LEN];

		if (!get_le32(p))
			continue;
		encode(stub, get_le32(p), entry);
		if (!memcmp(entry, p, ENTRY_LEN))
			hosts->hosts[hosts->nr++] =
				(struct stub_host){ .host = get_le32(p), .place = (uint16_t)i };
	}
}

int stub_hosts_read(int fd, struct stub *stub, struct stub_hosts *hosts)
{
	uint8_t page[STUB_HOSTS_OFF + STUB_HOSTS_LEN];
	int ret = stub_read_into(fd, stub, page, sizeof(page));

	hosts->nr = 0;
	if (!ret && stub->has_container && !stub->in_body)
		decode(stub, page + STUB_HOSTS_OFF, hosts);
	return ret;
}

/*
 * The place for @host: its own, or else the first that is free of @hosts and @others (or NULL); -1: there is
 * none.
 */
static int place_for(const struct stub_hosts *hosts, const struct stub_hosts *others, uint32_t host)
{
	bool taken[STUB_HOSTS_NR] = { false };

	for (unsigned i = 0; i < hosts->nr; i++)
		taken[hosts->hosts[i].place] = true;
	for (unsigned i = 0; others && i < others->nr; i++)
		taken[others->hosts[i].place] = true;
	for (unsigned i = 0; i < STUB_HOSTS_NR; i++)
		if (!taken[(host / 2 + i) % STUB_HOSTS_NR])
			return (int)((host / 2 + i) % STUB_HOSTS_NR);
	return -1;
}

/* The key of the host of the dropping @name; 0: that is of no host. */
static uint32_t key_in(const char *name)
{
	size_t len;
	const char *host = name_host(name, &len);

	return host ? key_of(host, len) : 0;
}

/* Its place in @hosts; hosts->nr: it is not there. */
static unsigned find(const struct stub_hosts *hosts, uint32_t host)
{
	unsigned i = 0;

	while (i < hosts->nr && hosts->hosts[i].host != host)
		i++;
	return i;
}

/* Not in a place of @others, if not NULL: these are of another generation. */
static void enter(int fd, const struct stub *stub, uint32_t host, const struct stub_hosts *others)
{
	uint8_t table[STUB_HOSTS_LEN], entry[ENTRY_LEN];
	struct stub_hosts hosts;
	int place;

	if (io_pread_all(fd, table, sizeof(table), STUB_HOSTS_OFF) != sizeof(table))
		return;
	decode(stub, table, &hosts);
	if (find(&hosts, host) < hosts.nr)
		return;
	place = place_for(&hosts, others, host);
	encode(stub, host, entry);
	if (place >= 0)
		io_pwrite_all(fd, entry, ENTRY_LEN, STUB_HOSTS_OFF + (uint64_t)place * ENTRY_LEN);
}

void stub_hosts_enter(int fd, const struct stub *stub, const char *name)
{
	uint32_t host = key_in(name);

	if (host)
		enter(fd, stub, host, NULL);
}

void stub_hosts_enter_loss(int fd, const struct stub *stub, const char *name)
{
	uint32_t host = key_in(name);

	if (host)
		enter(fd, stub, host & ~(uint32_t)1, NULL);
}

bool stub_hosts_add(struct stub_hosts *hosts, const char *name)
{
	uint32_t host = key_in(name);

	if (!host || find(hosts, host) < hosts->nr)
		return true;
	if (hosts->nr == STUB_HOSTS_NR)
		return false;
	hosts->hosts[hosts->nr++] = (struct stub_host){ .host = host };
	return true;
}

void stub_hosts_enter_all(int fd, const struct stub *stub, const struct stub_hosts *hosts,
			  const struct stub_hosts *others)
{
	for (unsigned i = 0; i < hosts->nr; i++)
		enter(fd, stub, hosts->hosts[i].host, others);
}

void stub_hosts_saw_those(struct stub_hosts *hosts, const struct stub_hosts *those)
{
	for (unsigned i = 0; i < hosts->nr; i++)
		hosts->hosts[i].seen |= find(those, hosts->hosts[i].host) < those->nr;
}

void stub_hosts_saw_losses(struct stub_hosts *hosts)
{
	for (unsigned i = 0; i < hosts->nr; i++)
		hosts->hosts[i].seen |= hosts->hosts[i].host % 2 == 0;
}

struct stub_host *stub_hosts_find(struct stub_hosts *hosts, const char *name)
{
	unsigned i = find(hosts, key_in(name));

	return i < hosts->nr ? &hosts->hosts[i] : NULL;
}

struct stub_host *stub_hosts_find_notice(struct stub_hosts *hosts, const char *name)
{
	unsigned i = hosts->nr;

	if (name_is_notice(name))
		i = find(hosts, key_of(name_notice_host(name), strlen(name_notice_host(name))));
	return i < hosts->nr ? &hosts->hosts[i] : NULL;
}

void stub_hosts_saw(struct stub_hosts *hosts, const char *name)
{
	struct stub_host *host;

	/* what these lead to may be gone */
	if (!hosts->nr || name_is_near(name) || name_spread_slot(name))
		return;
	host = stub_hosts_find(hosts, name);
	if (host)
		host->seen = true;
}

static int saw_one(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)path, (void)kind;
	stub_hosts_saw(arg, name);
	return 0;
}

int stub_hosts_saw_all(struct stub_hosts *hosts, const struct container *c)
{
	return container_list_there(c, saw_one, hosts);
}

unsigned stub_hosts_nr(const struct stub_hosts *hosts)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < hosts->nr; i++)
		nr += hosts->hosts[i].host % 2 || find(hosts, hosts->hosts[i].host | 1) == hosts->nr;
	return nr;
}

unsigned stub_hosts_missing(const struct stub_hosts *hosts)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < hosts->nr; i++)
		nr += !hosts->hosts[i].seen;
	return nr;
}

int stub_hosts_forget_missing(int fd, const struct stub_hosts *hosts)
{
	static const uint8_t none[ENTRY_LEN];
	ssize_t n = 0;

	for (unsigned i = 0; i < hosts->nr && n >= 0; i++)
		if (!hosts->hosts[i].seen)
			n = io_pwrite_all(fd, none, ENTRY_LEN,
					  STUB_HOSTS_OFF + (uint64_t)hosts->hosts[i].place * ENTRY_LEN);
	return n < 0 ? (int)n : 0;
}
