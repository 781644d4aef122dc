/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Symbols from the tables of the loaded objects, in the order in which the linker searches them. Nothing is
 * allocated, and no function called that a sanitizer replaces, as dl_iterate_phdr().
 */
#include "core/base/next_symbol.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#define VERSION_HIDDEN 0x8000

struct object {
	ElfW(Addr) base;
	const ElfW(Sym) *symbols;
	const char *strings;
	const ElfW(Half) *versions; /* NULL: it has none */
	const uint32_t *gnu_hash, *hash;
};

/* Of DT_GNU_HASH. */
static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = 33 * h + (unsigned char)*name++;
	return h;
}

static bool is_equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* The linker makes addresses of what the table has, where it may write to it. */
static const void *address_of(const struct object *o, const ElfW(Dyn) *d)
{
	ElfW(Addr) address = d->d_un.d_ptr;

	return (const void *)(address < o->base ? address + o->base : address);
}

static bool has_tables(const struct link_map *map, struct object *o)
{
	*o = (struct object){ .base = map->l_addr };
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			o->symbols = address_of(o, d);
		else if (d->d_tag == DT_STRTAB)
			o->strings = address_of(o, d);
		else if (d->d_tag == DT_VERSYM)
			o->versions = address_of(o, d);
		else if (d->d_tag == DT_GNU_HASH)
			o->gnu_hash = address_of(o, d);
		else if (d->d_tag == DT_HASH)
			o->hash = address_of(o, d);
	}
	return o->symbols && o->strings && (o->gnu_hash || o->hash);
}

/* The one that a program gets that is linked today. */
static bool is_it(const struct object *o, uint32_t i, const char *name)
{
	const ElfW(Sym) *s = &o->symbols[i];
	unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);

	return s->st_shndx != SHN_UNDEF && s->st_value &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT || type == STT_NOTYPE) &&
	       (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE) &&
	       !(o->versions && o->versions[i] & VERSION_HIDDEN) && is_equal(o->strings + s->st_name, name);
}

/* Number 0 is no symbol. */
static uint32_t find_by_gnu_hash(const struct object *o, const char *name, uint32_t hash)
{
	uint32_t nr_buckets = o->gnu_hash[0], first = o->gnu_hash[1], bloom_words = o->gnu_hash[2], i;
	const uint32_t *buckets = o->gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chains = buckets + nr_buckets;

	i = nr_buckets ? buckets[hash % nr_buckets] : 0;
	if (i < first)
		return 0;
	for (;; i++) {
		uint32_t h = chains[i - first];

		if ((h | 1) == (hash | 1) && is_it(o, i, name))
			return i;
		if (h & 1)
			return 0;
	}
}

static uint32_t find_by_looking(const struct object *o, const char *name)
{
	for (uint32_t i = 1; i < o->hash[1]; i++)
		if (is_it(o, i, name))
			return i;
	return 0;
}

/* Of a function that is chosen by the processor the linker knows which it is. */
static void *value_of(const struct object *o, const ElfW(Sym) *s, const char *name)
{
	if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC)
		return dlsym(RTLD_NEXT, name);
	return (void *)(o->base + s->st_value);
}

void *next_symbol_by_tables(const char *name)
{
	const struct link_map *map = _r_debug.r_map;
	uint32_t hash = hash_of(name), i;
	struct object o;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	for (map = map ? map->l_next : NULL; map; map = map->l_next) {
		/* that of the kernel is searched by nobody */
		if (map->l_addr == getauxval(AT_SYSINFO_EHDR) || !has_tables(map, &o))
			continue;
		i = o.gnu_hash ? find_by_gnu_hash(&o, name, hash) : find_by_looking(&o, name);
		if (i)
			return value_of(&o, &o.symbols[i], name);
	}
	return NULL;
}
