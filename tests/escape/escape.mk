# The escape suite: one static program, so that it runs in any template.

ESCAPE_SRCS := $(wildcard tests/escape/*.c)

$(BUILD)/helpers/escape: $(ESCAPE_SRCS) tests/escape/escape.h
	$(call say,MUSL)
	$(Q)mkdir -p $(@D)
	$(Q)$(MUSL_CC) -std=gnu17 -D_GNU_SOURCE -O1 -g $(WARN) -Wno-format-truncation -static -idirafter /usr/include \
	    -idirafter /usr/include/$(shell uname -m)-linux-gnu -o $@ $(ESCAPE_SRCS)

helpers: $(BUILD)/helpers/escape
