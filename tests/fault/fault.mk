# Fault injection: tests/fault/*.c is one program; see fault_inject.c.

FAULT_SRCS := $(wildcard tests/fault/*.c)

$(BUILD)/obj/tests/fault/%.o: CFLAGS += -Itests/fault
$(BUILD)/helpers/fault_inject: $(call objs,$(FAULT_SRCS) $(CLIENT_SRCS) $(LIB_SRCS))
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

helpers: $(BUILD)/helpers/fault_inject

# Every call, every error, then an hour of create, run, destroy and kill -9.
soak: all helpers
	tests/soak
