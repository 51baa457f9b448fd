# Tests: unit programs are tests/unit/<dir>/<module>_test.c, each its own program linked with the
# modules of its program. End-to-end tests are executables in tests/e2e and tests/fault. All of them
# print `ok - …`, `not ok - …` or `skip - …` lines, which tests/run counts.

UNIT_SRCS  := $(wildcard tests/unit/*/*_test.c)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRCS))

# The keeper's modules without its main, so that unit tests can call them.
KEEPER_TESTED := $(filter-out src/keeper/main.c,$(KEEPER_SRCS))
CLI_TESTED    := $(filter-out src/cli/main.c,$(CLI_SRCS))
AGENT_TESTED  := $(filter-out src/agent/main.c,$(wildcard src/agent/*.c))

# Static patterns: of implicit ones, make would take a rule that needs fewer objects while others are missing.
# What the privileged program is made of.
KEPT := $(filter $(addprefix $(BUILD)/tests/,keeper/% jail/% disk/% image/%),$(UNIT_TESTS))
$(KEPT): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(call objs,$(KEEPER_TESTED) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lzstd
$(filter $(BUILD)/tests/cli/%,$(UNIT_TESTS)): $(BUILD)/tests/cli/%: $(BUILD)/obj/tests/unit/cli/%.o $(call objs,$(CLI_TESTED) $(RULES_SRCS) $(STORE_SRCS) $(CLIENT_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lcrypto -pthread
$(filter $(BUILD)/tests/store/%,$(UNIT_TESTS)): $(BUILD)/tests/store/%: $(BUILD)/obj/tests/unit/store/%.o $(call objs,$(STORE_SRCS) $(wildcard src/base/*.c))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lcrypto -pthread
$(filter $(BUILD)/tests/agent/%,$(UNIT_TESTS)): $(BUILD)/tests/agent/%: $(BUILD)/obj/tests/unit/agent/%.o $(call objs,$(AGENT_TESTED) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^
$(filter $(BUILD)/tests/http/%,$(UNIT_TESTS)): $(BUILD)/tests/http/%: $(BUILD)/obj/tests/unit/http/%.o $(call objs,$(wildcard src/http/*.c src/base/*.c))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lz
$(filter $(BUILD)/tests/egress/%,$(UNIT_TESTS)): $(BUILD)/tests/egress/%: $(BUILD)/obj/tests/unit/egress/%.o $(call objs,$(wildcard src/egress/*.c src/http/*.c src/base/*.c src/wire/*.c))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -pthread -lz -lssl -lcrypto
$(filter $(BUILD)/tests/policy/%,$(UNIT_TESTS)): $(BUILD)/tests/policy/%: $(BUILD)/obj/tests/unit/policy/%.o $(call objs,$(POLICY_SRCS) $(wildcard src/base/*.c))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpcre2-8
$(filter $(BUILD)/tests/api/%,$(UNIT_TESTS)): $(BUILD)/tests/api/%: $(BUILD)/obj/tests/unit/api/%.o $(call objs,$(filter-out src/coved/main.c,$(COVED_SRCS)))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(COVED_LIBS)
$(filter $(BUILD)/tests/e2b/%,$(UNIT_TESTS)): $(BUILD)/tests/e2b/%: $(BUILD)/obj/tests/unit/e2b/%.o $(call objs,$(filter-out src/coved/main.c,$(COVED_SRCS)))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(COVED_LIBS)
$(filter-out $(BUILD)/tests/api/% $(BUILD)/tests/egress/% $(BUILD)/tests/e2b/% $(BUILD)/tests/store/% $(KEPT) $(BUILD)/tests/cli/% $(BUILD)/tests/agent/% $(BUILD)/tests/http/% $(BUILD)/tests/policy/%,$(UNIT_TESTS)): \
    $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(call objs,$(CLIENT_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(BUILD)/obj/tests/%.o: CFLAGS += -Itests -Wno-unused-function

# What tests/e2e and bench run inside and beside sandboxes: small C programs, static where the name
# says so.
HELPER_SRCS := $(wildcard tests/helpers/*.c)
HELPERS     := $(patsubst tests/helpers/%.c,$(BUILD)/helpers/%,$(HELPER_SRCS))

$(BUILD)/helpers/%: tests/helpers/%.c $(call objs,$(CLIENT_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu17 -D_GNU_SOURCE= -O1 -g $(WARN) -Isrc -Itests $(if $(SAN),-fsanitize=$(SAN)) -o $@ $^

# These call the agent's worker, and need its modules alone.
WORKER_SRCS := $(addprefix src/agent/,$(addsuffix .c,answer dial entry file find glob grep move needle \
                   nodes owner pack path place port subtree user unpack walk watch worker xattr))
$(filter $(BUILD)/helpers/agent_%,$(HELPERS)): $(BUILD)/helpers/%: tests/helpers/%.c tests/drive.h $(call objs,$(WORKER_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu17 -D_GNU_SOURCE= -O1 -g $(WARN) -Wno-unused-function -Isrc -Itests \
	    $(if $(SAN),-fsanitize=$(SAN)) -o $@ $(filter-out %.h,$^)

# A keeper of another version, as far as its filter goes; what it needs beside itself is beside it.
OLDER_KEEPER := $(BUILD)/older/cove-keeper
$(BUILD)/older/seccomp.o: src/jail/seccomp.c tests/helpers/older_table.h src/wire/seccomp_table.h src/jail/seccomp.h
	$(call say,CC  )
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) -include tests/helpers/older_table.h -c -o $@ $<
$(OLDER_KEEPER): $(BUILD)/older/seccomp.o $(call objs,$(filter-out src/jail/seccomp.c,$(KEEPER_SRCS)) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^ -lzstd
	$(Q)ln -sf ../cove-agent ../cove-criu.so $(@D)/

# The whole agent with sanitizers, and so with glibc: for tests only (tests/static/agent_asan_test). Beside it what starts it, because the keeper
# takes the agent from its own directory.
ASAN_DIR    := $(BUILD)/agent-asan
ASAN_FLAGS  := -std=gnu17 -D_GNU_SOURCE= -O1 -g $(WARN) -Isrc -Itests -DCOVE_VERSION='"$(VERSION)"' -MMD -MP -Wno-unused-function \
               -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
asan_objs    = $(patsubst %.c,$(ASAN_DIR)/obj/%.o,$(1))
ASAN_HELPERS := agent_files agent_trees agent_search agent_pack

$(ASAN_DIR)/obj/%.o: %.c
	$(call say,ASAN)
	$(Q)mkdir -p $(@D) && $(CC) $(ASAN_FLAGS) -c -o $@ $<
$(ASAN_DIR)/cove-agent: $(call asan_objs,$(AGENT_SRCS) tests/agent_asan.c)
	$(call say,LINK)
	$(Q)$(CC) $(ASAN_FLAGS) -o $@ $^
$(addprefix $(ASAN_DIR)/helpers/,$(ASAN_HELPERS)): $(ASAN_DIR)/helpers/%: $(ASAN_DIR)/obj/tests/helpers/%.o $(call asan_objs,$(WORKER_SRCS) $(filter-out src/base/lockdown%,$(LIB_SRCS)))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(ASAN_FLAGS) -o $@ $^
agent-asan: $(ASAN_DIR)/cove-agent $(addprefix $(ASAN_DIR)/helpers/,$(ASAN_HELPERS)) all helpers
	$(Q)cp -l -f $(addprefix $(BUILD)/,cove cove-keeper coved cove-gateway cove-criu.so) $(ASAN_DIR)/
	$(Q)for h in $(filter-out $(ASAN_HELPERS),$(notdir $(HELPERS))); do cp -l -f $(BUILD)/helpers/$$h $(ASAN_DIR)/helpers/; done

unit: $(UNIT_TESTS)
helpers: $(HELPERS) $(OLDER_KEEPER)

test:
	tools/deps test
	tools/promtool $(BUILD)/tools
	$(MAKE) all unit helpers
	tests/run

# A whole Debian in QEMU, with its own kernel and systemd; MACHINE_TESTS names others than those of tests/machine/list.
test-debian12 test-debian13: test-%:
	tools/deps machine
	$(MAKE) all unit helpers
	tools/machine test $* $(MACHINE_TESTS)

.PHONY: unit helpers agent-asan test-debian12 test-debian13
.SECONDARY:

-include fuzz/fuzz.mk
-include bench/bench.mk

-include tests/escape/escape.mk
-include tests/fault/fault.mk
