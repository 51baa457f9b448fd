# cove: `make` builds, `make run` runs, `make test` tests, `make bench` measures. See `make help`.

BUILD   ?= build
PREFIX  ?= /usr/local
CC      ?= gcc
MUSL_CC ?= musl-gcc
SAN     ?=
V       ?= 0
# Of `make run`, `make test` and `make bench`, which build with all processors unless -j was given.
JOBS    ?= $(shell nproc)
parallel = $(MAKE) $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(JOBS))

VERSION := 0.1.0

# Rows of tables leave out the columns that are 0 and last.
WARN  := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
         -Wwrite-strings -Wno-missing-field-initializers -Werror
CLANG := $(shell $(CC) --version 2>/dev/null | grep -c clang)
ifeq ($(CLANG),0)
WARN  += -Wlogical-op -Wduplicated-cond -Wno-stringop-truncation -Wno-format-truncation
endif
OPT    := -O2 -g
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
LDHARD := -pie -Wl,-z,relro,-z,now,-z,noexecstack
ifneq ($(SAN),)
SAN_OPT ?= -O1 -g
OPT    := $(SAN_OPT) -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
HARDEN := -fPIE
LDHARD := -pie
endif

CFLAGS  += -std=gnu17 -D_GNU_SOURCE= $(OPT) $(HARDEN) $(WARN) -Isrc -DCOVE_VERSION='"$(VERSION)"' -MMD -MP
LDFLAGS += $(LDHARD)

# The agent: static, musl, no libraries, the same warnings.
AGENT_CFLAGS := -std=gnu17 -D_GNU_SOURCE= -Os -g $(WARN) -Isrc -DCOVE_VERSION='"$(VERSION)"' -MMD -MP \
                -Wno-format-truncation -Wno-stringop-truncation -ffunction-sections -fdata-sections \
                -fno-asynchronous-unwind-tables \
                -idirafter /usr/include -idirafter /usr/include/$(shell uname -m)-linux-gnu
AGENT_LDFLAGS := -static -Wl,--gc-sections -Wl,-z,noexecstack

LIB_SRCS    := $(wildcard src/base/*.c src/wire/*.c)
MUX_SRCS    := $(wildcard src/mux/*.c)
BRIDGE_SRCS := $(wildcard src/bridge/*.c)
CLIENT_SRCS := $(wildcard src/client/*.c)
KEEPER_SRCS := $(wildcard src/keeper/*.c src/driver/*.c src/driver/*/*.c src/image/*.c src/disk/*.c src/jail/*.c)
CLI_SRCS    := $(wildcard src/cli/*.c $(foreach room,help doctor template copy up,src/cli/$(room)/*.c))
API_SRCS    := $(wildcard src/cli/api/*.c)
REMOTE_SRCS := $(wildcard src/remote/*.c)
MCP_SRCS    := $(wildcard src/mcp/*.c)
DOCKER_SRCS := $(wildcard src/dockerfile/*.c)
TEMPLATE_SRCS := $(wildcard src/template/*.c)
HTTP_SRCS   := $(wildcard src/http/*.c)
STORE_SRCS  := $(wildcard src/store/*.c)
POLICY_SRCS := $(wildcard src/policy/*.c)
SERVER_SRCS := $(wildcard src/server/*/*.c)
SURFACE_SRCS := $(wildcard src/surface/*/*.c)
EGRESS_SRCS := $(wildcard src/egress/*.c)
GATEWAY_SRCS := $(wildcard src/gateway/*.c)
# What no agent needs: the rest of these is in every program.
AGENT_SRCS  := $(wildcard src/agent/*.c src/agent/*/*.c) $(filter-out src/wire/keeper.c src/wire/limits.c src/wire/volume.c src/base/lockdown%.c,$(LIB_SRCS)) $(MUX_SRCS)

# Before a compile: the directory, where there is none yet. One process for each file of a thousand is worth saving.
in_dir = $(if $(wildcard $(@D)/.),,mkdir -p $(@D) && )

objs  = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
# Of the agent, which has no sanitizers: a second build may use the objects of the first.
AGENT_OBJ ?= $(BUILD)/agent-obj
aobjs = $(patsubst %.c,$(AGENT_OBJ)/%.o,$(1))

PROGRAMS := $(BUILD)/cove $(BUILD)/cove-host $(BUILD)/cove-dial $(BUILD)/cove-keeper $(BUILD)/cove-agent $(BUILD)/cove-bridge $(BUILD)/coved $(BUILD)/cove-gateway $(BUILD)/cove-import $(BUILD)/cove-pull $(BUILD)/cove-criu.so

ifeq ($(V),0)
Q := @
say = $(info $()  $(1)  $(patsubst $(BUILD)/%,%,$@))
else
say =
endif

all: $(PROGRAMS)

# Of the gateway, what rules are: pure, and all that the command line needs of it.
RULES_SRCS := $(addprefix src/egress/,ip.c reach.c upstream.c)

# Of images and of what is mounted, what backups need: reading and signing a meta, a mount by descriptor; and tar.
BACKUP_SRCS := $(wildcard src/backup/*.c) $(addprefix src/image/,image.c image_files.c chunks.c) src/jail/mountfd.c $(addprefix src/http/,tar.c tar_put.c slice.c)

# Static, without SQLite and TLS: the verbs of every day start as fast as a program can.
COVE_SRCS := $(API_SRCS) $(REMOTE_SRCS) $(MCP_SRCS) $(DOCKER_SRCS) $(addprefix src/cli/,common.c hints.c options.c programs.c report.c subverbs.c table.c terminal.c version.c) \
             $(filter-out %/gzip.c %/gunzip.c,$(HTTP_SRCS)) $(LIB_SRCS)
$(BUILD)/cove: $(call objs,$(COVE_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^ $(if $(SAN),-ljansson,-l:libjansson.a)

# Names and documents of images, and registries.
PULL_SRCS := $(wildcard src/registry/*.c) $(addprefix src/oci/,reference.c document.c)

# What is about this host: cove becomes this program for the verbs that it does not have itself.
HOST_SRCS := $(CLI_SRCS) $(filter-out %/main.c,$(API_SRCS)) $(REMOTE_SRCS) $(MCP_SRCS) $(DOCKER_SRCS) $(filter-out %/gzip.c %/gunzip.c,$(HTTP_SRCS)) \
             $(TEMPLATE_SRCS) $(PULL_SRCS) $(BACKUP_SRCS) $(STORE_SRCS) $(CLIENT_SRCS) $(LIB_SRCS)
HOST_LIBS := -ljansson -lsqlite3 -lcrypto -lzstd -pthread
$(BUILD)/cove-host: $(call objs,$(sort $(HOST_SRCS)))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(HOST_LIBS)

$(BUILD)/cove-dial: $(call objs,src/dial/main.c $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lssl -lcrypto

# What is assembled in with .incbin is no header that the compiler would tell of.
$(addprefix $(BUILD)/obj/src/template/,template_kernels.o template_java.o): $(wildcard kernels/* inside/*)

# Static: the privileged program loads nothing after it was built, and forks faster.
$(BUILD)/cove-keeper: $(call objs,$(KEEPER_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^ -lzstd

# Of the gateway, what coved needs to speak of it: rules, secrets, messages. None of it reads what the network sends.
SPOKEN_SRCS := $(RULES_SRCS) $(addprefix src/egress/,may_name.c message.c message_nets.c message_report.c message_request.c peer_ip.c \
                   rewrite.c tls.c tls_ca.c what.c)

COVED_SRCS := $(wildcard src/coved/*.c) $(SURFACE_SRCS) $(MCP_SRCS) $(SERVER_SRCS) $(SPOKEN_SRCS) $(HTTP_SRCS) $(STORE_SRCS) $(POLICY_SRCS) $(CLIENT_SRCS) \
              $(LIB_SRCS)
COVED_LIBS := -ljansson -lssl -lcrypto -lsqlite3 -lpcre2-8 -lz -pthread

$(BUILD)/coved: $(call objs,$(COVED_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(COVED_LIBS)

$(BUILD)/cove-gateway: $(call objs,$(GATEWAY_SRCS) $(EGRESS_SRCS) $(HTTP_SRCS) src/client/gateway_start.c src/client/local_socket.c $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lssl -lcrypto -lz -pthread

# Reads images, without any right.
IMPORT_SRCS := $(wildcard src/importer/*.c src/oci/*.c src/erofs/*.c) $(addprefix src/http/,tar.c tar_put.c slice.c gunzip.c)
IMPORT_LIBS := -ljansson -lz -lzstd
$(BUILD)/cove-import: $(call objs,$(IMPORT_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(IMPORT_LIBS)

# Asks registries for tenants, without any right.
$(BUILD)/cove-pull: $(call objs,$(wildcard src/puller/*.c) $(PULL_SRCS) $(REMOTE_SRCS) $(filter-out %/gzip.c %/gunzip.c,$(HTTP_SRCS)) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljansson

$(BUILD)/cove-agent: $(call aobjs,$(AGENT_SRCS))
	$(call say,LINK)
	$(Q)$(MUSL_CC) $(AGENT_LDFLAGS) -o $@ $^

# Static: in the jail around a guest there are no libraries.
$(BUILD)/cove-bridge: $(call objs,$(BRIDGE_SRCS) $(MUX_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^

# Loaded into criu, whose C library may be another than ours: it has none.
$(BUILD)/cove-criu.so: src/criu/shim.c
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) -O2 -Wall -Wextra -fPIC -shared -nostdlib -o $@ $<

# Taken in by .incbin, which no dependency file knows.
$(BUILD)/obj/src/surface/v1/v1_spec.o: spec/openapi.yaml

$(BUILD)/obj/%.o: %.c
	$(call say,CC  )
	$(Q)$(in_dir)$(CC) $(CFLAGS) -c -o $@ $<

$(AGENT_OBJ)/%.o: %.c
	$(call say,MUSL)
	$(Q)$(in_dir)$(MUSL_CC) $(AGENT_CFLAGS) -c -o $@ $<

include tests/tests.mk

deps:
	tools/deps

# Installs what is missing, builds, and starts; `cove` becomes callable where no other cove is.
run:
	tools/deps run
	+$(parallel) all
	tools/link-cove $(BUILD) $(PREFIX)
	$(BUILD)/cove up

BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
MANDIR  ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system

install: install-files
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/lib/tmpfiles.d
	sed 's|@PREFIX@|$(PREFIX)|' packaging/cove.service.in > $(DESTDIR)$(UNITDIR)/cove.service
	install -m 0644 packaging/cove.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/cove.conf
	install -m 0644 packaging/cove.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/cove.conf

# What the package has, but for what debhelper puts in its place (the unit, users, directories). The settings of an
# earlier installation stay.
install-files: all
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(PREFIX)/libexec/cove $(BASHDIR) $(ZSHDIR) $(FISHDIR) \
	           $(MANDIR)/man1 $(MANDIR)/man5 $(PREFIX)/share/doc/cove /etc/cove)
	install -m 0755 $(BUILD)/cove $(DESTDIR)$(PREFIX)/bin/cove
	install -m 0755 $(filter-out %/cove %.so,$(PROGRAMS)) $(DESTDIR)$(PREFIX)/libexec/cove/
	install -m 0644 $(filter %.so,$(PROGRAMS)) $(DESTDIR)$(PREFIX)/libexec/cove/
	install -m 0755 tools/criu $(DESTDIR)$(PREFIX)/libexec/cove/fetch-criu
	install -m 0755 tools/vm $(DESTDIR)$(PREFIX)/libexec/cove/fetch-vm
	install -m 0644 tools/packages.sh $(DESTDIR)$(PREFIX)/libexec/cove/
	$(BUILD)/cove completion bash > $(DESTDIR)$(BASHDIR)/cove
	$(BUILD)/cove completion zsh > $(DESTDIR)$(ZSHDIR)/_cove
	$(BUILD)/cove completion fish > $(DESTDIR)$(FISHDIR)/cove.fish
	$(BUILD)/cove help --man > $(DESTDIR)$(MANDIR)/man1/cove.1
	$(BUILD)/coved --man > $(DESTDIR)$(MANDIR)/man5/coved.conf.5
	test -e $(DESTDIR)/etc/cove/coved.conf || $(BUILD)/coved --sample-config > $(DESTDIR)/etc/cove/coved.conf
	install -m 0644 README.md docs/*.md docs/*.yml $(DESTDIR)$(PREFIX)/share/doc/cove/
	install -d $(DESTDIR)$(PREFIX)/share/doc/cove/grafana
	install -m 0644 packaging/grafana/*.json $(DESTDIR)$(PREFIX)/share/doc/cove/grafana/

# build/cove_<version>_amd64.deb, checked by lintian; made again when a source is newer.
DEB := $(BUILD)/cove_$(VERSION)_amd64.deb
deb:
	tools/deps deb
	+$(MAKE) $(DEB)

$(DEB): Makefile README.md $(wildcard src/*/*.[ch] src/*/*/*.[ch] kernels/* inside/* spec/* docs/* debian/* debian/source/* packaging/* packaging/grafana/* tools/criu tools/vm tools/packages.sh)
	packaging/make-deb $(BUILD) $(VERSION)

# What 'make test' skips for want of a template.
test-templates:
	tools/deps test
	+$(parallel) all helpers
	tests/templates

# One list of tests with each isolation: make test-isolation [ISOLATION_TESTS='cli e2b'] [ISOLATION_COLUMNS='jail gvisor vm']
test-isolation:
	tools/deps test
	+$(parallel) all helpers
	COLUMNS_OF="$(ISOLATION_COLUMNS)" tests/columns/run $(ISOLATION_TESTS)

test-deb: deb
	packaging/test-deb $(DEB)

# From the package of an earlier commit: make test-upgrade FROM=<commit or .deb>
test-upgrade: deb
	packaging/test-upgrade $(DEB) $(FROM)

compile_commands.json:
	$(MAKE) clean
	bear -- $(MAKE) all

guest-kernel:
	tools/guest-kernel

clean:
	rm -rf $(BUILD) compile_commands.json

help:
	@echo "make                  build all programs into build/"
	@echo "make run              install what is missing, build, start cove in the foreground"
	@echo "make test             install what is missing, build, run every test"
	@echo "make test-isolation   run one list of tests with each isolation: jail, gvisor, vm (ISOLATION_TESTS='cli e2b')"
	@echo "make test-templates   build the templates, and run the tests that need them"
	@echo "make test-debian12    run tests in QEMU, on Debian 12 (or 13) with its own kernel and systemd"
	@echo "make test-kvm         virtual machines with KVM, in a machine that has it: emulated where this host has none"
	@echo "make test-machines    both, and a reboot, a second machine, upgrades (FROM=HEAD~1), power cuts: hours without KVM"
	@echo "make test-powercut    cut the power under load, ROUNDS=20 times, and look what is left (MACHINE=debian12: of a whole machine)"
	@echo "make bench            measure, side by side with bwrap, runc and runsc"
	@echo "make fuzz             fuzz every decoder (FUZZ_SECONDS=60 each)"
	@echo "make soak             long runs: kill -9 rounds, create/destroy for an hour"
	@echo "make guest-kernel     build a kernel for virtual machines from Debian's source (20 minutes of a processor), and use it"
	@echo "make install          DESTDIR= PREFIX=/usr/local"
	@echo "make deb              a Debian package: build/cove_$(VERSION)_amd64.deb"
	@echo "make test-deb         install, upgrade, remove and purge it in Debian 12 and 13 (chroots)"
	@echo "make test-upgrade     upgrade to it from the package of an earlier commit (FROM=HEAD~1), with sandboxes running"
	@echo "make SAN=address,undefined BUILD=build/asan   sanitizer build (or SAN=thread)"
	@echo "make compile_commands.json                    for clangd (needs bear)"
	@echo "make clean"

.PHONY: all deps run install install-files deb test-deb test-isolation test-templates test-upgrade guest-kernel clean help test bench fuzz soak compile_commands.json

-include $(shell find $(BUILD) -path $(BUILD)/deb -prune -o -type f -name '*.d' -print 2>/dev/null)
