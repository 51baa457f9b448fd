/* device_filter.h - which devices sandboxes may open, on cgroup v2, where no file says so. */
#ifndef COVE_JAIL_DEVICE_FILTER_H
#define COVE_JAIL_DEVICE_FILTER_H

#include "base/err.h"

int device_filter_attach(int cgroup_fd, struct err *err);

#endif
