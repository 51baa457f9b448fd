# cove: `make` builds, `make run` runs, `make test` tests, `make bench` measures. See `make help`.

BUILD   ?= build
PREFIX  ?= /usr/local
CC      ?= gcc
MUSL_CC ?= musl-gcc
SAN     ?=
V       ?= 0

VERSION := 0.1.0

WARN  := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
         -Wwrite-strings -Werror
CLANG := $(shell $(CC) --version 2>/dev/null | grep -c clang)
ifeq ($(CLANG),0)
WARN  += -Wlogical-op -Wduplicated-cond -Wno-stringop-truncation -Wno-format-truncation
endif
OPT    := -O2 -g
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
LDHARD := -pie -Wl,-z,relro,-z,now,-z,noexecstack
ifneq ($(SAN),)
OPT    := -O1 -g -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
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
CLIENT_SRCS := $(wildcard src/client/*.c)
KEEPER_SRCS := $(wildcard src/keeper/*.c src/image/*.c src/disk/*.c src/jail/*.c)
CLI_SRCS    := $(wildcard src/cli/*.c)
HTTP_SRCS   := $(wildcard src/http/*.c)
STORE_SRCS  := $(wildcard src/store/*.c)
POLICY_SRCS := $(wildcard src/policy/*.c)
API_SRCS    := $(wildcard src/api/*.c)
E2B_SRCS    := $(wildcard src/e2b/*.c)
EGRESS_SRCS := $(wildcard src/egress/*.c)
# What no agent needs: the rest of these is in every program.
AGENT_SRCS  := $(wildcard src/agent/*.c) $(filter-out src/wire/keeper.c src/wire/limits.c src/wire/volume.c src/base/lockdown%.c,$(LIB_SRCS))

objs  = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
aobjs = $(patsubst %.c,$(BUILD)/agent-obj/%.o,$(1))

PROGRAMS := $(BUILD)/cove $(BUILD)/cove-keeper $(BUILD)/cove-agent $(BUILD)/coved $(BUILD)/cove-criu.so

ifeq ($(V),0)
Q := @
say = @echo "  $(1)  $(patsubst $(BUILD)/%,%,$@)";
else
say =
endif

all: $(PROGRAMS)

# Of the gateway, what rules are: pure, and all that the command line needs of it.
RULES_SRCS := $(addprefix src/egress/,ip.c reach.c upstream.c)

$(BUILD)/cove: $(call objs,$(CLI_SRCS) $(RULES_SRCS) $(STORE_SRCS) $(CLIENT_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lcrypto -pthread

# What is assembled in with .incbin is no header that the compiler would tell of.
$(BUILD)/obj/src/cli/template_kernels.o: $(wildcard kernels/*)

# Static: the privileged program loads nothing after it was built, and forks faster.
$(BUILD)/cove-keeper: $(call objs,$(KEEPER_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^ -lzstd

# base/json.c writes JSON for the command line; here jansson does, whose names are the same.
COVED_SRCS := $(wildcard src/coved/*.c) $(E2B_SRCS) $(API_SRCS) $(EGRESS_SRCS) $(HTTP_SRCS) $(STORE_SRCS) $(POLICY_SRCS) $(CLIENT_SRCS) \
              $(filter-out src/base/json.c,$(LIB_SRCS))
COVED_LIBS := -ljansson -lssl -lcrypto -lsqlite3 -lpcre2-8 -lz -pthread

$(BUILD)/coved: $(call objs,$(COVED_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(COVED_LIBS)

$(BUILD)/cove-agent: $(call aobjs,$(AGENT_SRCS))
	$(call say,LINK)
	$(Q)$(MUSL_CC) $(AGENT_LDFLAGS) -o $@ $^

# Loaded into criu, whose C library may be another than ours: it has none.
$(BUILD)/cove-criu.so: src/criu/shim.c
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) -O2 -Wall -Wextra -fPIC -shared -nostdlib -o $@ $<

# Taken in by .incbin, which no dependency file knows.
$(BUILD)/obj/src/api/v1_spec.o: spec/openapi.yaml

$(BUILD)/obj/%.o: %.c
	$(call say,CC  )
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<

$(BUILD)/agent-obj/%.o: %.c
	$(call say,MUSL)
	$(Q)mkdir -p $(@D)
	$(Q)$(MUSL_CC) $(AGENT_CFLAGS) -c -o $@ $<

include tests/tests.mk

deps:
	tools/deps

# Installs what is missing, builds, and starts; `cove` becomes callable where no other cove is.
run:
	tools/deps run
	$(MAKE) all
	tools/link-cove $(BUILD) $(PREFIX)
	$(BUILD)/cove up

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/cove \
	           $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/doc/cove
	install -m 0755 $(BUILD)/cove $(DESTDIR)$(PREFIX)/bin/cove
	install -m 0755 $(BUILD)/cove-keeper $(BUILD)/cove-agent $(BUILD)/coved $(DESTDIR)$(PREFIX)/libexec/cove/
	install -m 0644 $(BUILD)/cove-criu.so $(DESTDIR)$(PREFIX)/libexec/cove/
	$(BUILD)/cove completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/cove
	install -m 0644 README.md docs/*.md docs/*.yml $(DESTDIR)$(PREFIX)/share/doc/cove/

compile_commands.json:
	$(MAKE) clean
	bear -- $(MAKE) all

clean:
	rm -rf $(BUILD) compile_commands.json

help:
	@echo "make                  build cove, cove-keeper and cove-agent into build/"
	@echo "make run              install what is missing, build, start cove in the foreground"
	@echo "make test             install what is missing, build, run every test"
	@echo "make bench            measure, side by side with bwrap, runc and runsc"
	@echo "make fuzz             fuzz every decoder (FUZZ_SECONDS=60 each)"
	@echo "make soak             long runs: kill -9 rounds, create/destroy for an hour"
	@echo "make install          DESTDIR= PREFIX=/usr/local"
	@echo "make SAN=address,undefined BUILD=build/asan   sanitizer build (or SAN=thread)"
	@echo "make compile_commands.json                    for clangd (needs bear)"
	@echo "make clean"

.PHONY: all deps run install clean help test bench fuzz soak compile_commands.json

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
