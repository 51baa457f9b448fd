# Tests: unit programs are tests/unit/<dir>/<module>_test.c, each its own program linked with the
# modules of its program. End-to-end tests are executables in tests/e2e and tests/fault. All of them
# print `ok - …`, `not ok - …` or `skip - …` lines, which tests/run counts.

UNIT_SRCS  := $(wildcard tests/unit/*/*_test.c)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRCS))

# The keeper's modules without its main, so that unit tests can call them.
KEEPER_TESTED := $(filter-out src/keeper/main.c,$(KEEPER_SRCS))
CLI_TESTED    := $(filter-out src/cli/main.c,$(HOST_SRCS))
AGENT_TESTED  := $(filter-out src/agent/main.c,$(wildcard src/agent/*.c src/agent/*/*.c))

# The unit tests of some folders are linked with an archive of the modules that they test: the linker takes from it only
# what a test needs. Static patterns: of implicit ones, make would take a rule that needs fewer objects while others are missing.
define unit_tests # name of the archive, folders of tests/unit, sources, libraries
$(BUILD)/lib/$(1).a: $(call objs,$(sort $(3)))
	$$(call say,AR  )
	$(Q)mkdir -p $$(@D) && rm -f $$@ && ar rcsT $$@ $$^
$(filter $(patsubst %,$(BUILD)/tests/%/%,$(2)),$(UNIT_TESTS)): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/lib/$(1).a
	$$(call say,LINK)
	$(Q)mkdir -p $$(@D) && $$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$^ $(4)
endef
BASE_SRCS := $(wildcard src/base/*.c)
TAR_SRCS  := $(addprefix src/http/,tar.c tar_put.c slice.c)
$(eval $(call unit_tests,client,base wire client,$(CLIENT_SRCS) $(LIB_SRCS)))
$(eval $(call unit_tests,keeper,keeper jail disk image,$(KEEPER_TESTED) $(LIB_SRCS),-lzstd))
$(eval $(call unit_tests,agent,agent,$(AGENT_TESTED) $(MUX_SRCS) $(LIB_SRCS)))
$(eval $(call unit_tests,mux,mux,$(MUX_SRCS) $(LIB_SRCS)))
$(eval $(call unit_tests,cli,cli,$(CLI_TESTED),$(HOST_LIBS)))
$(eval $(call unit_tests,template,template,$(TEMPLATE_SRCS) $(TAR_SRCS) $(CLIENT_SRCS) $(LIB_SRCS)))
$(eval $(call unit_tests,import,oci erofs importer,$(filter-out %/main.c,$(IMPORT_SRCS)) $(LIB_SRCS),$(IMPORT_LIBS)))
$(eval $(call unit_tests,registry,registry,$(PULL_SRCS) $(REMOTE_SRCS) $(filter-out %/gzip.c %/gunzip.c,$(HTTP_SRCS)) $(LIB_SRCS),-ljansson))
$(eval $(call unit_tests,backup,backup,$(BACKUP_SRCS) $(STORE_SRCS) $(LIB_SRCS),$(HOST_LIBS)))
$(eval $(call unit_tests,store,store,$(STORE_SRCS) $(BASE_SRCS),-lsqlite3 -lcrypto -pthread))
$(eval $(call unit_tests,http,http,$(HTTP_SRCS) $(BASE_SRCS),-lz))
$(eval $(call unit_tests,egress,egress,$(EGRESS_SRCS) $(HTTP_SRCS) $(LIB_SRCS),-pthread -lz -lssl -lcrypto))
$(eval $(call unit_tests,policy,policy,$(POLICY_SRCS) $(BASE_SRCS),-lpcre2-8))
$(eval $(call unit_tests,mcp,mcp,$(MCP_SRCS) $(BASE_SRCS),-ljansson))
$(eval $(call unit_tests,dockerfile,dockerfile,$(DOCKER_SRCS) $(BASE_SRCS),-ljansson))
$(eval $(call unit_tests,coved,server surface,$(filter-out src/coved/main.c,$(COVED_SRCS)),$(COVED_LIBS)))

$(BUILD)/obj/tests/%.o: CFLAGS += -Itests -Wno-unused-function

# What tests/e2e and bench run inside and beside sandboxes: small C programs, static where the name
# says so.
HELPER_SRCS := $(wildcard tests/helpers/*.c)
HELPERS     := $(patsubst tests/helpers/%.c,$(BUILD)/helpers/%,$(HELPER_SRCS))

$(BUILD)/helpers/%: tests/helpers/%.c $(BUILD)/lib/client.a
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu17 -D_GNU_SOURCE= -O1 -g $(WARN) -Isrc -Itests $(if $(SAN),-fsanitize=$(SAN)) -o $@ $^

# The server's tables of requests: tests/static/spec_test.
$(BUILD)/helpers/forms: tests/helpers/forms.c $(BUILD)/lib/coved.a
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.h,$^) $(COVED_LIBS)

# A command line that asks the keeper and agents themselves, for tests of these: its verbs for sandboxes are not the product's. What
# it starts is beside it.
DIRECT := $(BUILD)/direct/cove
DIRECT_SRCS := $(wildcard tests/direct/*.c) $(filter-out src/cli/verbs.c,$(CLI_SRCS)) $(addprefix src/cli/api/,contexts.c login.c server.c show.c host.c build.c build_archive.c build_context.c build_watch.c image.c make.c network_rules.c) \
               $(DOCKER_SRCS) $(REMOTE_SRCS) $(filter-out %/gzip.c %/gunzip.c,$(HTTP_SRCS)) $(TEMPLATE_SRCS) $(PULL_SRCS) $(BACKUP_SRCS) $(RULES_SRCS) $(STORE_SRCS) $(CLIENT_SRCS) $(LIB_SRCS)
$(DIRECT): $(call objs,$(sort $(DIRECT_SRCS))) $(filter-out $(BUILD)/cove,$(PROGRAMS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)
	$(Q)for p in $(notdir $(filter-out $(BUILD)/cove,$(PROGRAMS))); do ln -sf ../$$p $(@D)/$$p; done

# These call the agent's worker, and need its modules alone.
WORKER_SRCS := $(wildcard src/agent/worker/*.c) src/agent/core/user.c
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
	$(Q)ln -sf ../cove-agent ../cove-bridge ../cove-criu.so $(@D)/

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
	$(Q)cp -l -f $(addprefix $(BUILD)/,cove cove-host cove-dial cove-bridge cove-keeper coved cove-gateway cove-criu.so) $(ASAN_DIR)/
	$(Q)cp -a $(BUILD)/direct $(ASAN_DIR)/
	$(Q)for h in $(filter-out $(ASAN_HELPERS),$(notdir $(HELPERS))); do cp -l -f $(BUILD)/helpers/$$h $(ASAN_DIR)/helpers/; done

unit: $(UNIT_TESTS)
# A keeper with a driver that fails on purpose, in vm's place, and with less patience: tests/driver/fault.c.
FAULT_KEEPER := $(BUILD)/fault/cove-keeper
FAULT_OBJS   := $(addprefix $(BUILD)/fault/,drivers.o tick.o fault.o)
$(FAULT_OBJS): CFLAGS += -DCOVE_FAULT_DRIVER -DWORKER_MS=4000
$(BUILD)/fault/drivers.o: src/driver/drivers.c
$(BUILD)/fault/tick.o: src/keeper/tick.c
$(BUILD)/fault/fault.o: tests/driver/fault.c
$(FAULT_OBJS):
	$(call say,CC  )
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) -c -o $@ $<
$(FAULT_KEEPER): $(FAULT_OBJS) $(call objs,$(filter-out src/driver/drivers.c src/keeper/tick.c,$(KEEPER_SRCS)) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^ -lzstd
	$(Q)ln -sf ../cove-agent ../cove-bridge ../cove-criu.so $(@D)/
-include $(FAULT_OBJS:.o=.d)

helpers: $(HELPERS) $(OLDER_KEEPER) $(FAULT_KEEPER) $(DIRECT)

test:
	@echo '== 1 of 3: install what is missing'
	tools/deps test
	tools/promtool $(BUILD)/tools
	@echo '== 2 of 3: build'
	+$(parallel) all unit helpers
	@echo '== 3 of 3: test (output of each program: $(BUILD)/test-logs)'
	tests/run

# A whole Debian in QEMU, with its own kernel and systemd, and cove from its package; MACHINE_TESTS names others than those
# of tests/machine/list, FROM= a commit that upgrade_test upgrades from.
test-debian12 test-debian13: test-%: deb
	tools/deps machine
	+$(parallel) all unit helpers
	$(if $(FROM),packaging/earlier-deb $(FROM) $(BUILD)/machines/earlier.deb)
	$(if $(FROM),COVE_EARLIER=$(BUILD)/machines/earlier.deb) tools/machine test $* $(MACHINE_TESTS)

# The isolation vm with KVM, in a Debian 13 whose processor QEMU emulates, with AMD's SVM: a host without KVM has such machines there. The
# keeper and the bridge are those of the build, but for their patience with a machine that starts.
PATIENT      := $(BUILD)/patient
PATIENT_OBJS := $(PATIENT)/vm.o $(PATIENT)/main.o
$(PATIENT_OBJS): CFLAGS += -DVM_START_MS=600000u
$(PATIENT)/vm.o: src/driver/vm/vm.c
$(PATIENT)/main.o: src/bridge/main.c
$(PATIENT_OBJS):
	$(call say,CC  )
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) -c -o $@ $<
$(PATIENT)/cove-keeper: $(PATIENT)/vm.o $(call objs,$(filter-out src/driver/vm/vm.c,$(KEEPER_SRCS)) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^ -lzstd
$(PATIENT)/cove-bridge: $(PATIENT)/main.o $(call objs,$(filter-out src/bridge/main.c,$(BRIDGE_SRCS)) $(MUX_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(if $(SAN),$(LDFLAGS),$(LDFLAGS:-pie=-static-pie)) -o $@ $^
-include $(PATIENT_OBJS:.o=.d)
test-kvm:
	tools/deps machine
	tools/vm
	+$(parallel) all $(DIRECT) $(PATIENT)/cove-keeper $(PATIENT)/cove-bridge
	COVE_MACHINE_CPUS=1 COVE_MACHINE_APPEND='mitigations=off init=/usr/local/sbin/cove-machine' tools/machine test debian13 machine/kvm_test

# What needs whole machines or many minutes, and is therefore no part of `make test`: for a nightly run, or before a release.
# A backup for a second machine and a reboot each need machines of their own.
test-machines: FROM ?= HEAD~1
test-machines:
	+$(MAKE) test-deb
	+$(MAKE) test-upgrade FROM=$(FROM)
	+for machine in debian12 debian13; do \
	    $(MAKE) test-$$machine FROM=$(FROM) && $(MAKE) test-$$machine MACHINE_TESTS=machine/backup_test && \
	    $(MAKE) test-$$machine MACHINE_TESTS=reboot_test || exit 1; \
	done
	+$(MAKE) test-powercut
	+$(MAKE) test-powercut MACHINE=debian12

# Power cuts under load on a disk that loses what was not flushed; ROUNDS= of them, SEED= repeats a run. On this host's kernel, or
# with MACHINE=debian12 (or debian13) a whole machine in QEMU, whose process is killed.
test-powercut: $(if $(MACHINE),deb)
	tools/deps machine
	+$(parallel) all $(if $(MACHINE),unit helpers)
	MACHINE=$(MACHINE) tests/powercut/run

.PHONY: unit helpers agent-asan test-debian12 test-debian13 test-kvm test-machines test-powercut
.SECONDARY:

-include fuzz/fuzz.mk
-include bench/bench.mk

-include tests/escape/escape.mk
-include tests/fault/fault.mk
