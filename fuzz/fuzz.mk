# Fuzzing: `make fuzz` builds every fuzz/*_fuzz.c with clang's libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer, and runs each for FUZZ_SECONDS. A fuzzer is linked with base and wire, and
# with those of mux, agent, client, cli, remote, mcp, http, policy, egress, jail and image whose headers it includes; one that includes the
# server's, with all of the server but its dialects. Corpora are committed in
# fuzz/corpus/<name>/ and replayed by fuzz/replay_test; `make fuzz-merge` adds what is new and reaches
# further.

FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang
FUZZ_OPT     ?= -O1 -g
FUZZ_NAMES   := $(patsubst fuzz/%_fuzz.c,%,$(wildcard fuzz/*_fuzz.c))
FUZZERS      := $(patsubst %,$(BUILD)/fuzz/%_fuzz,$(FUZZ_NAMES))
FUZZ_SAN     := -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_CFLAGS  := -std=gnu17 -D_GNU_SOURCE= $(FUZZ_OPT) $(filter-out -Wlogical-op -Wduplicated-cond \
                -Wno-stringop-truncation -Wno-format-truncation,$(WARN)) -Isrc -DCOVE_VERSION='"$(VERSION)"' -DFUZZING=1 -MMD -MP

fuzz_objs = $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(filter-out src/$(1)/main.c,$(wildcard src/$(1)/*.c src/$(1)/*/*.c)))

$(BUILD)/fuzz/obj/%.o: %.c
	$(call say,FUZZ)
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,address,undefined $(FUZZ_SAN) -c -o $@ $<

define fuzz_lib
$(BUILD)/fuzz/lib$(1).a: $(call fuzz_objs,$(1))
	$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach layer,base wire mux agent http policy egress client cli jail image remote backup mcp oci erofs registry importer dockerfile,$(eval $(call fuzz_lib,$(layer))))

FUZZ_COVED := $(filter-out src/coved/main.c src/coved/surfaces.c src/surface/e2b/%,$(COVED_SRCS))
$(BUILD)/fuzz/libcoved.a: $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(FUZZ_COVED))
	$(Q)rm -f $@ && ar rcs $@ $^

# The layers that a fuzzer names in its includes, and those below them. The order is the linker's.
fuzz_includes = $(shell grep -qs '^#include "$(2)/' fuzz/$(1)_fuzz.c && echo $(2))
fuzz_layers   = $(if $(call fuzz_includes,$(1),server),coved,$(call fuzz_below,$(1)))
fuzz_below    = $(foreach layer,importer registry oci,$(call fuzz_includes,$(1),$(layer))) $(if $(call fuzz_includes,$(1),oci)$(call fuzz_includes,$(1),registry),oci erofs) \
                $(if $(call fuzz_includes,$(1),registry),remote) $(if $(call fuzz_includes,$(1),oci)$(call fuzz_includes,$(1),registry),http) \
                $(foreach layer,backup dockerfile image jail cli client egress remote mcp http policy agent mux,$(call fuzz_includes,$(1),$(layer))) \
                $(if $(call fuzz_includes,$(1),cli),client) $(if $(call fuzz_includes,$(1),egress),http) $(if $(call fuzz_includes,$(1),agent),mux) wire base
fuzz_libs     = $(if $(call fuzz_includes,$(1),server),$(COVED_LIBS)) $(if $(call fuzz_includes,$(1),policy),-lpcre2-8) \
                $(if $(call fuzz_includes,$(1),http)$(call fuzz_includes,$(1),egress),-lz) \
                $(if $(call fuzz_includes,$(1),image),-lzstd) $(if $(call fuzz_includes,$(1),remote)$(call fuzz_includes,$(1),mcp)$(call fuzz_includes,$(1),dockerfile),-ljansson) \
                $(if $(call fuzz_includes,$(1),oci)$(call fuzz_includes,$(1),registry),-ljansson -lz -lzstd)

define fuzz_link
$(BUILD)/fuzz/$(1)_fuzz: $(BUILD)/fuzz/obj/fuzz/$(1)_fuzz.o $(patsubst %,$(BUILD)/fuzz/lib%.a,$(call fuzz_layers,$(1)))
	$$(call say,LINK)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined $(FUZZ_SAN) -o $$@ $$^ $(call fuzz_libs,$(1))
endef
$(foreach name,$(FUZZ_NAMES),$(eval $(call fuzz_link,$(name))))

fuzz-build: $(FUZZERS)

fuzz: fuzz-build
	@for name in $(FUZZ_NAMES); do \
	    echo "== $$name: $(FUZZ_SECONDS) s"; \
	    mkdir -p fuzz/corpus/$$name $(BUILD)/fuzz/corpus/$$name; \
	    $(BUILD)/fuzz/$${name}_fuzz -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=1024 -timeout=10 \
	        -print_final_stats=1 -verbosity=0 -artifact_prefix=$(BUILD)/fuzz/$$name- \
	        $(BUILD)/fuzz/corpus/$$name fuzz/corpus/$$name || exit 1; \
	done

fuzz-merge: fuzz-build
	@for name in $(FUZZ_NAMES); do \
	    mkdir -p fuzz/corpus/$$name $(BUILD)/fuzz/corpus/$$name; \
	    $(BUILD)/fuzz/$${name}_fuzz -merge=1 -verbosity=0 fuzz/corpus/$$name $(BUILD)/fuzz/corpus/$$name || exit 1; \
	done

# Texts that cost the policy's analyser most, by bytes and by counted steps; see the head of shell_cost.c.
$(BUILD)/fuzz/shell_cost: fuzz/shell_cost.c $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard src/policy/*.c src/base/*.c))
	$(call say,LINK)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lpcre2-8

fuzz-cost: $(BUILD)/fuzz/shell_cost
	@for size in 64 256 1024 4096; do for by in bytes steps; do $< $$by $(FUZZ_SECONDS) $$size; done; done

.PHONY: fuzz fuzz-build fuzz-merge fuzz-cost
