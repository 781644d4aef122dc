# SPDX-License-Identifier: BSD-3-Clause
#
# make                    build/libplfs.so and build/plfs
# make check|demo|bench   test, show, measure; each installs the packages it needs first
#                         BENCH='--quick' or '--only n1 files': less of it (test/bench/run --help)
# make fuzz               FUZZ='TARGET [SECONDS]': libFuzzer on test/fuzz/TARGET.c, with clang (scripts/fuzz)
# make check-long         what takes hours: random kills, processes that race, long runs; SCALE=100
# make check-cluster|bench-cluster   the same on CephFS and GlusterFS, several hosts on this machine; CLUSTER='ceph-ec'
# make bench-plot         the history of make bench as build/bench-history.svg
# make install            PREFIX=/usr/local DESTDIR=
# make tests              the test programs alone, into build/test/
#
# CC=gcc|clang   O=build (where to build)   V=1 (show commands)   WERROR=yes
# JEMALLOC=no (our own small allocator)     SANITIZE=address,undefined | thread

VERSION = 0.1.0
PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man
JEMALLOC = yes
ifeq ($(origin CC),default)
CC = gcc
endif
CFLAGS = -O2 -g
OBJCOPY = objcopy
O = build$(if $(SANITIZE),/san-$(SANITIZE))
Q = $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)	$(2)';)

PLFS_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden -pthread -Wall -Wextra -Wshadow $(if $(WERROR),-Werror) \
	-U_FORTIFY_SOURCE -DPLFS_VERSION='"$(VERSION)"'
PLFS_LDFLAGS = -pthread -Wl,-z,relro,-z,now -Wl,--as-needed
SO_LDFLAGS = -shared -static-libgcc -Wl,-soname,libplfs.so -Wl,--version-script=preload/libplfs.map \
	-Wl,--exclude-libs,ALL -Wl,-Bsymbolic-functions
PLFS_LIBS = -ldl

ifdef SANITIZE
# The thread sanitizer's malloc() may hang in the child of a fork beside threads: ours does not.
PLFS_CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer \
	$(if $(findstring thread,$(SANITIZE)),-Wno-tsan -DPLFS_NO_JEMALLOC,-DPLFS_SANITIZE)
PLFS_LDFLAGS += -fsanitize=$(SANITIZE)
else
SO_LDFLAGS += -Wl,-z,defs
ifeq ($(JEMALLOC),no)
PLFS_CFLAGS += -DPLFS_NO_JEMALLOC
else
JEMALLOC_OBJ = $(O)/obj/jemalloc.o
endif
endif

obj = $(patsubst %.c,$(O)/obj/%.o,$(wildcard $(1)))
LOW_OBJS = $(call obj,core/*.c index/*.c)
# What the command alone needs, which looks at whole backends, is no burden for programs.
CMD_CORE = core/backend_walk core/tree core/gc core/gc_names core/gc_proc core/gc_remove core/check core/check_tree core/findings \
	core/look core/look_live core/look_index core/look_log core/look_trailers core/look_global core/lost core/repair core/rebuild core/finish core/left_index core/mend
SO_OBJS = $(call obj,preload/*.c) $(filter-out $(CMD_CORE:%=$(O)/obj/%.o),$(LOW_OBJS)) $(JEMALLOC_OBJ)
CMD_OBJS = $(call obj,tools/*.c)
FUZZERS = $(patsubst test/fuzz/%.c,$(O)/test/fuzz_%,$(wildcard test/fuzz/*.c))
TESTS = $(patsubst test/%.c,$(O)/test/%,$(wildcard test/test_*.c test/fault_*.c test/crash_*.c test/race_*.c)) $(FUZZERS)

all: $(O)/libplfs.so $(O)/plfs
tests: $(TESTS)

$(O)/libplfs.so: $(SO_OBJS) preload/libplfs.map
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(PLFS_LDFLAGS) $(SO_LDFLAGS) $(LDFLAGS) -o $@ $(SO_OBJS) $(PLFS_LIBS)

$(O)/plfs: $(CMD_OBJS) $(O)/obj/low.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(PLFS_LDFLAGS) $(LDFLAGS) -o $@ $^ $(PLFS_LIBS)

# A test may include the .c file that it tests: then the archive's copy stays out.
$(O)/test/%: $(O)/obj/test/%.o $(O)/obj/low.a
	$(call say,LINK,$@)mkdir -p $(@D) && $(CC) $(CFLAGS) $(PLFS_LDFLAGS) $(LDFLAGS) -o $@ $^ -lcriterion $(PLFS_LIBS)

$(O)/test/fuzz_%: $(O)/obj/test/fuzz/%.o $(O)/obj/low.a
	$(call say,LINK,$@)mkdir -p $(@D) && $(CC) $(CFLAGS) $(PLFS_LDFLAGS) $(LDFLAGS) $(FUZZ_LDFLAGS) -o $@ $^ $(PLFS_LIBS)

$(O)/obj/low.a: $(LOW_OBJS) $(JEMALLOC_OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(O)/obj/test/fuzz/%.o: PLFS_CFLAGS += -DFUZZ_DIR='"$(CURDIR)/test/fuzz"'

$(O)/obj/%.o: %.c $(O)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(PLFS_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# jemalloc as one object that offers three functions and keeps everything else, malloc above all,
# to itself; what it takes from libc is renamed to what core/alloc.c gives it. Its constructor goes:
# the first allocation initialises it as well, and a program that has none pays nothing.
JEMALLOC_API = mallocx rallocx dallocx
$(O)/obj/jemalloc.o: core/jemalloc.syms $(O)/flags Makefile
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) -nostdlib -r -o $@.tmp $(addprefix -Wl$(comma)-u$(comma),$(JEMALLOC_API)) \
		$(shell $(CC) -print-file-name=libjemalloc_pic.a)
	$(Q)$(OBJCOPY) --redefine-syms=$< $(addprefix -G ,$(JEMALLOC_API) plfs_jemalloc_conf) \
		-R .init_array -R .rela.init_array $@.tmp $@ && rm $@.tmp
comma = ,

# Remembers how the objects were built, so that another compiler or option rebuilds them; the
# libraries that the build needs are looked for at the same time.
missing = { echo 'libplfs: $(1) missing: install the Debian package $(2) (or run scripts/install-deps build)' >&2; exit 1; }
$(O)/flags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(CC) $(PLFS_CFLAGS) $(CPPFLAGS) $(CFLAGS) jemalloc:$(JEMALLOC))' >$@.new; \
	cmp -s $@ $@.new && { rm $@.new; exit 0; }; \
	command -v $(firstword $(CC)) >/dev/null || $(call missing,$(CC),$(firstword $(CC))); \
	echo '#include <uthash.h>' | $(CC) -E -x c - >/dev/null 2>&1 || $(call missing,uthash.h,uthash-dev); \
	$(if $(JEMALLOC_OBJ),test -f "`$(CC) -print-file-name=libjemalloc_pic.a`" || \
		$(call missing,libjemalloc_pic.a,libjemalloc-dev; JEMALLOC=no builds without);) \
	mv $@.new $@
FORCE:

check:
	@scripts/install-deps check
	@scripts/check $(STAGES)

SCALE = 100
check-long:
	@scripts/install-deps check
	@AT_ONCE=1 SCALE=$(SCALE) PLFS_FAULTS=all scripts/check $(or $(STAGES),build faults kills long histories)

demo:
	@scripts/install-deps demo
	@$(MAKE) --no-print-directory all
	@BUILD='$(abspath $(O))' scripts/demo

bench:
	@scripts/install-deps bench
	@$(MAKE) --no-print-directory all
	@BUILD='$(abspath $(O))' test/bench/run $(BENCH)

fuzz:
	@scripts/fuzz $(FUZZ)

bench-plot:
	@BUILD='$(abspath $(O))' test/bench/plot -o '$(O)/bench-history.svg'

check-cluster bench-cluster:
	@scripts/install-deps cluster
	@$(MAKE) --no-print-directory all
	@BUILD='$(abspath $(O))' test/cluster/$(if $(filter check%,$@),run,bench) $(CLUSTER)

install: all
	install -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(BINDIR)'
	install -m 755 $(O)/libplfs.so '$(DESTDIR)$(LIBDIR)/libplfs.so'
	install -m 755 $(O)/plfs '$(DESTDIR)$(BINDIR)/plfs'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' libplfs.pc.in \
		>'$(DESTDIR)$(LIBDIR)/pkgconfig/libplfs.pc'
	for page in $(wildcard man/*.[1-8]); do \
		install -D -m 644 $$page '$(DESTDIR)$(MANDIR)'/man$${page##*.}/$${page##*/} || exit 1; \
	done

clean:
	rm -rf $(O)

.PHONY: all tests check check-long demo bench bench-plot fuzz check-cluster bench-cluster install clean FORCE
TEST_OBJS = $(patsubst $(O)/test/fuzz_%,$(O)/obj/test/fuzz/%.o,$(filter $(FUZZERS),$(TESTS))) \
	$(patsubst $(O)/test/%,$(O)/obj/test/%.o,$(filter-out $(FUZZERS),$(TESTS)))
.SECONDARY: $(TEST_OBJS)
-include $(patsubst %.o,%.d,$(filter-out $(JEMALLOC_OBJ),$(SO_OBJS) $(LOW_OBJS) $(CMD_OBJS)) $(TEST_OBJS))
