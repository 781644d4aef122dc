# SPDX-License-Identifier: BSD-3-Clause
#
# make                    build/libplfs.so and build/plfs
# make check|demo|bench   test, show, measure; each installs the packages it needs first
#                         BENCH='--quick' or '--only n1 files': less of it (test/bench/run --help)
# make fuzz               FUZZ='TARGET [SECONDS]': libFuzzer on test/fuzz/TARGET.c, with clang (scripts/fuzz)
# make check-long         what takes hours: random kills, processes that race, long runs; SCALE=100
# make check-bare         demo and check, each first on a bare Debian of its own, as root; BARE='-c demo trixie' (scripts/check-bare)
# make check-cluster|bench-cluster   the same on CephFS and GlusterFS, several hosts on this machine; CLUSTER='ceph-ec'
# make images/report.svg  the picture of plfs report in README.md, anew
# make bench-plot         the history of make bench as build/bench-history.svg
# make install|uninstall  PREFIX=/usr/local DESTDIR=, also LIBDIR, MODULEDIR...
# make dist|deb|rpm       a tarball with the recipes for Spack and EasyBuild, or packages, into build/dist (scripts/package)
# make test|posix|mpi|tools|histories   T=write/resume, T=io...: some tests, or all of the kind (scripts/test)
# make html               the manual pages as a small site with a search, in build/html
# make tests              the test programs alone, into build/test/
#
# CC=gcc|clang   O=build (where to build)   V=1 (show commands)   WERROR=yes
# JEMALLOC=no (our own small allocator)     SANITIZE=address,undefined | thread

VERSION = 0.1.0
PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man
PKGCONFIGDIR = $(LIBDIR)/pkgconfig
MODULEDIR = $(PREFIX)/share/modulefiles
BASHDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d
ifeq ($(origin CC),default)
CC = gcc
endif
CFLAGS = -O2 -g
TEST_CFLAGS = -O1 -g1
OBJCOPY = objcopy
O = build$(if $(SANITIZE),/san-$(SANITIZE))
# As it was built last, so that `make install` needs no word of it.
JEMALLOC := $(or $(patsubst jemalloc:%,%,$(lastword $(shell cat $(O)/flags 2>/dev/null))),yes)
Q = $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)	$(2)';)

# Functions begin on a cache line: else moving one changes the time of a write by up to 1 ns of 37.
# A tarball has uthash with it; one that is installed comes first.
PLFS_CPPFLAGS = -I. $(if $(wildcard third_party/uthash.h),-idirafter third_party)
PLFS_CFLAGS = $(PLFS_CPPFLAGS) -std=gnu11 -falign-functions=64 -fPIC -fvisibility=hidden -pthread -Wall -Wextra -Wshadow $(if $(WERROR),-Werror) \
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
LOW_OBJS = $(call obj,core/*.c core/*/*.c core/admin/*/*.c index/*/*.c)
# core/admin/ is the command's alone: it looks at whole backends.
# memory.c and memory_tree.c are for tests.
SO_OBJS = $(call obj,preload/*.c) $(filter-out $(O)/obj/core/admin/% $(O)/obj/core/store/memory%,$(LOW_OBJS)) $(JEMALLOC_OBJ)
CMD_OBJS = $(call obj,tools/*.c)
LIB_OBJS = $(call obj,test/lib/*.c)
TESTS = $(patsubst %.c,$(O)/%,$(wildcard test/unit/*/*.c $(patsubst %,test/%/*.c,fault crash race fuzz)))
TEST_OBJS = $(patsubst $(O)/%,$(O)/obj/%.o,$(TESTS))

all: $(O)/libplfs.so $(O)/plfs
tests: $(TESTS)
test-objects: $(TEST_OBJS) $(LIB_OBJS)

$(O)/libplfs.so: $(SO_OBJS) preload/libplfs.map
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(PLFS_LDFLAGS) $(SO_LDFLAGS) $(LDFLAGS) -o $@ $(SO_OBJS) $(PLFS_LIBS)

$(O)/plfs: $(CMD_OBJS) $(O)/obj/low.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(PLFS_LDFLAGS) $(LDFLAGS) -o $@ $^ $(PLFS_LIBS)

# A test may include the .c file that it tests: then the archive's copy stays out. TEST_LDFLAGS: scripts/fuzz, scripts/check.
# TEST_O: where the tests' objects are, if another build has made them, as for a sanitizer of the library alone.
TEST_O = $(O)
# Of test/lib/no_certificates.c, which nothing of ours calls.
NO_CERTIFICATES = mbedtls_x509_crt_parse_file
$(O)/test/%: $(TEST_O)/obj/test/%.o $(TEST_O)/obj/test/lib.a $(O)/obj/low.a
	$(call say,LINK,$@)mkdir -p $(@D) && $(CC) $(CFLAGS) $(PLFS_LDFLAGS) $(LDFLAGS) $(TEST_LDFLAGS) -o $@ $^ \
		$(if $(filter fuzz/%,$*),,-Wl,-u,$(NO_CERTIFICATES) -lcriterion) -lm $(PLFS_LIBS)

$(O)/obj/low.a: $(LOW_OBJS) $(JEMALLOC_OBJ)
$(O)/obj/test/lib.a: $(LIB_OBJS)
$(O)/obj/low.a $(O)/obj/test/lib.a:
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

# The time goes into compiling them, not into running them.
$(TEST_OBJS) $(LIB_OBJS): LESS = $(TEST_CFLAGS)
$(O)/obj/test/fuzz/%.o: PLFS_CFLAGS += -DFUZZ_DIR='"$(CURDIR)/test/fuzz"'

$(O)/obj/%.o: %.c $(O)/flags
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(PLFS_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(LESS) -MMD -MP -c -o $@ $<

# jemalloc as one object that offers three functions and keeps everything else, malloc above all,
# to itself; what it takes from libc is renamed to what core/base/alloc.c gives it. Its constructor goes:
# the first allocation initialises it as well, and a program that has none pays nothing.
JEMALLOC_API = mallocx rallocx dallocx
$(O)/obj/jemalloc.o: core/base/jemalloc.syms $(O)/flags Makefile
	$(call say,LD,$@)mkdir -p $(@D) && $(CC) -nostdlib -r -o $@.tmp $(addprefix -Wl$(comma)-u$(comma),$(JEMALLOC_API)) \
		$(shell $(CC) -print-file-name=libjemalloc_pic.a)
	$(Q)$(OBJCOPY) --redefine-syms=$< $(addprefix -G ,$(JEMALLOC_API) plfs_jemalloc_conf) \
		-R .init_array -R .rela.init_array $@.tmp $@ && rm $@.tmp
comma = ,

# Remembers how the objects were built, so that another compiler or option rebuilds them; the
# libraries that the build needs are looked for at the same time.
$(O)/flags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(CC) $(PLFS_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(TEST_CFLAGS) jemalloc:$(JEMALLOC))' >$@.new; \
	cmp -s $@ $@.new && { rm $@.new; exit 0; }; \
	missing=; packages=; lacks() { missing="$$missing $$1" packages="$$packages $$2"; }; \
	has() { printf '#if !__has_include(<%s>)\n#error\n#endif\n' $$1 >$@.c; \
		$(CC) $(PLFS_CPPFLAGS) $(CPPFLAGS) -E $@.c >/dev/null 2>&1 || lacks $$1 $$2; rm $@.c; }; \
	old() { printf '#include <limits.h>\n#if !__GLIBC_PREREQ(2, 28)\n#error\n#endif\n' >$@.c; \
		! $(CC) $(PLFS_CPPFLAGS) $(CPPFLAGS) -E $@.c >/dev/null 2>&1; set -- $$?; rm $@.c; return $$1; }; \
	if ! command -v $(firstword $(CC)) >/dev/null; then \
		lacks $(firstword $(CC)) '$(firstword $(CC)) libc6-dev uthash-dev$(if $(JEMALLOC_OBJ), libjemalloc-dev)'; \
	else \
		has stdio.h libc6-dev; \
		has uthash.h uthash-dev; \
		$(if $(JEMALLOC_OBJ),test -f "`$(CC) -print-file-name=libjemalloc_pic.a`" || \
			{ lacks libjemalloc_pic.a libjemalloc-dev; without='; JEMALLOC=no builds without jemalloc'; };) \
	fi; \
	[ -z "$$missing" ] || { rm $@.new; echo "libplfs: missing:$$missing: install the Debian packages$$packages" \
		"(scripts/install-deps build does it)$$without" >&2; exit 1; }; \
	! old || { rm $@.new; echo "libplfs: needs glibc 2.28 or newer" >&2; exit 1; }; \
	mv $@.new $@
FORCE:

test posix mpi tools histories:
	@O='$(O)' scripts/test $@ $(if $(T),'$(subst ','\\'',$(T))')

check:
	@scripts/install-deps $(if $(STAGES),check,unit)
	@scripts/check $(STAGES)

check-bare:
	@BARE_DIR='$(abspath $(O))/bare' scripts/check-bare $(BARE)

SCALE = 100
check-long:
	@scripts/install-deps long
	@AT_ONCE=1 SCALE=$(SCALE) PLFS_FAULTS=all scripts/check $(or $(STAGES),build unit posix mpi tools sanitize faults kills long histories hostile packages)

demo:
	@scripts/install-deps demo
	@$(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc)) --no-print-directory all
	@BUILD='$(abspath $(O))' scripts/demo

bench:
	@scripts/install-deps bench
	@$(MAKE) --no-print-directory all
	@BUILD='$(abspath $(O))' test/bench/run $(BENCH)

fuzz:
	@scripts/fuzz $(FUZZ)

html:
	@scripts/html '$(O)/html'

bench-plot:
	@BUILD='$(abspath $(O))' test/bench/plot -o '$(O)/bench-history.svg'

images/report.svg: FORCE all
	@BUILD='$(abspath $(O))' scripts/report-picture $@

check-cluster bench-cluster:
	@scripts/install-deps cluster
	@$(MAKE) --no-print-directory all
	@BUILD='$(abspath $(O))' test/cluster/$(if $(filter check%,$@),run,bench) $(CLUSTER)

# What is installed, but for the manual pages: install and uninstall have one list.
INSTALLED = $(LIBDIR)/libplfs.so $(BINDIR)/plfs $(PKGCONFIGDIR)/libplfs.pc $(MODULEDIR)/libplfs/$(VERSION) \
	$(BASHDIR)/plfs $(ZSHDIR)/_plfs $(FISHDIR)/plfs.fish
# The page of plfs report: the command looks for it in share/libplfs/, beside its own directory.
REPORTDIR = $(PREFIX)/share/libplfs/report
REPORT = $(wildcard tools/report/*.py)
PAGES = $(wildcard man/*.[1-8])
fill = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@BINDIR@|$(BINDIR)|' -e 's|@MANDIR@|$(MANDIR)|' \
	-e 's|@PKGCONFIGDIR@|$(PKGCONFIGDIR)|' -e 's|@VERSION@|$(VERSION)|'

# The directory of the module is made: one of another version may be there.
install: all
	install -d $(patsubst %,'$(DESTDIR)%',$(sort $(dir $(INSTALLED))))
	install -m 755 $(O)/libplfs.so '$(DESTDIR)$(LIBDIR)/libplfs.so'
	install -m 755 $(O)/plfs '$(DESTDIR)$(BINDIR)/plfs'
	$(fill) libplfs.pc.in >'$(DESTDIR)$(PKGCONFIGDIR)/libplfs.pc'
	$(fill) packaging/modulefile.in >'$(DESTDIR)$(MODULEDIR)/libplfs/$(VERSION)'
	$(O)/plfs --completion=bash >'$(DESTDIR)$(BASHDIR)/plfs'
	$(O)/plfs --completion=zsh >'$(DESTDIR)$(ZSHDIR)/_plfs'
	$(O)/plfs --completion=fish >'$(DESTDIR)$(FISHDIR)/plfs.fish'
	chmod 644 $(patsubst %,'$(DESTDIR)%',$(filter-out %/libplfs.so %/bin/plfs,$(INSTALLED)))
	install -d '$(DESTDIR)$(REPORTDIR)'
	install -m 644 $(REPORT) '$(DESTDIR)$(REPORTDIR)'
	for page in $(PAGES); do \
		install -D -m 644 $$page '$(DESTDIR)$(MANDIR)'/man$${page##*.}/$${page##*/} || exit 1; \
	done

uninstall:
	rm -f $(patsubst %,'$(DESTDIR)%',$(INSTALLED))
	for page in $(PAGES); do rm -f '$(DESTDIR)$(MANDIR)'/man$${page##*.}/$${page##*/}; done
	rm -f $(patsubst tools/report/%,'$(DESTDIR)$(REPORTDIR)/%',$(REPORT))
	for dir in '$(DESTDIR)$(MODULEDIR)/libplfs' '$(DESTDIR)$(REPORTDIR)' '$(DESTDIR)$(dir $(REPORTDIR))'; do \
		[ ! -d "$$dir" ] || rmdir --ignore-fail-on-non-empty "$$dir"; done

dist deb rpm:
	@VERSION='$(VERSION)' CC='$(CC)' scripts/package $@ '$(abspath $(O))/dist'

clean:
	rm -rf $(O)

.PHONY: all tests test-objects test posix mpi tools histories check check-bare check-long demo bench bench-plot html fuzz check-cluster bench-cluster install uninstall dist deb rpm clean FORCE
.SECONDARY: $(TEST_OBJS)
-include $(patsubst %.o,%.d,$(filter-out $(JEMALLOC_OBJ),$(SO_OBJS) $(LOW_OBJS) $(CMD_OBJS) $(LIB_OBJS)) $(TEST_OBJS))
