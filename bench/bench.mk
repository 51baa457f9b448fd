# `make bench`: builds, installs the peers that are missing, measures. BENCH_ROUNDS=200 BENCH_COUNT=1000
# BENCH_SDK=100 BENCH_PYTHON=300 BENCH_TYPESCRIPT=300; docs/benchmarks.md has the rest.

BENCH_SRCS := $(wildcard bench/*.c)

$(BUILD)/cove-bench: LIBS := -lm -pthread
$(BUILD)/cove-bench: $(call objs,$(BENCH_SRCS) $(CLIENT_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/obj/bench/%.o: CFLAGS += -pthread

# bench/short_test, which tests/run calls, needs it.
helpers: $(BUILD)/cove-bench

bench:
	tools/deps bench
	+$(parallel) all $(BUILD)/cove-bench
	$(BUILD)/cove-bench
	BUILD=$(BUILD) bench/sdk/run
	BUILD=$(BUILD) bench/python/run
	BUILD=$(BUILD) bench/typescript/run
	BUILD=$(BUILD) bench/claude/run
	BUILD=$(BUILD) bench/network/run
	BUILD=$(BUILD) bench/contexts/run
	BUILD=$(BUILD) bench/cells/run
	BUILD=$(BUILD) bench/pool/run
	BUILD=$(BUILD) bench/isolation/run
	BUILD=$(BUILD) bench/run/run
	BUILD=$(BUILD) bench/import/run
	BUILD=$(BUILD) bench/build/run
	BUILD=$(BUILD) bench/image/run
