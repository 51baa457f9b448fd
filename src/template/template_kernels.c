#include "template/template_kernels.h"

#include "base/hash.h"
#include "base/own.h"
#include "template/embed.h"
#include "template/tree.h"

#include <stdbool.h>
#include <string.h>

#define DIRECTORY "opt/cove/kernels"
#define MCP       "opt/cove/mcp"
#define GATEWAY   "opt/cove/bin/mcp-gateway"

EMBED(pump, "kernels/kernel.py")
EMBED(fork, "kernels/fork.py")
EMBED(python, "kernels/python.py")
EMBED(python_errors, "kernels/python_errors.py")
EMBED(python_rich, "kernels/python_rich.py")
EMBED(python_magics, "kernels/python_magics.py")
EMBED(python_charts, "kernels/python_charts.py")
EMBED(python_ipython, "kernels/python_ipython.py")
EMBED(python_notebook, "kernels/python_notebook.py")
EMBED(javascript, "kernels/javascript.cjs")
EMBED(bash, "kernels/bash.py")
EMBED(r, "kernels/r.py")
EMBED(r_source, "kernels/r.R")
EMBED(java, "kernels/java.py")
EMBED(java_source, "kernels/Java.java")
EMBED(mcp_gateway, "inside/mcp_gateway.py")
EMBED(mcp_servers, "inside/mcp_servers.py")

static const struct {
    const char *path, *text;
} kernels[] = {
    { DIRECTORY "/kernel.py", kernel_pump },
    { DIRECTORY "/fork.py", kernel_fork },
    { DIRECTORY "/python.py", kernel_python },
    { DIRECTORY "/python_errors.py", kernel_python_errors },
    { DIRECTORY "/python_rich.py", kernel_python_rich },
    { DIRECTORY "/python_magics.py", kernel_python_magics },
    { DIRECTORY "/python_charts.py", kernel_python_charts },
    { DIRECTORY "/python_ipython.py", kernel_python_ipython },
    { DIRECTORY "/python_notebook.py", kernel_python_notebook },
    { DIRECTORY "/javascript.cjs", kernel_javascript },
    { DIRECTORY "/bash.py", kernel_bash },
    { DIRECTORY "/r.py", kernel_r },
    { DIRECTORY "/r.R", kernel_r_source },
    { DIRECTORY "/java.py", kernel_java },
    { DIRECTORY "/Java.java", kernel_java_source },
    { MCP "/mcp_servers.py", kernel_mcp_servers },
    { GATEWAY, kernel_mcp_gateway },
};

static mode_t mode_of(const char *path)
{
    return strcmp(path, GATEWAY) == 0 ? 0755 : 0644;
}

int template_put_kernels(int root_fd, struct err *err)
{
    static const char *const old[] = { DIRECTORY, MCP, GATEWAY };
    static const char *const dirs[] = { "opt", "opt/cove", "opt/cove/bin", DIRECTORY, MCP };
    bool same = true;

    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        same = same && tree_holds(root_fd, kernels[i].path, kernels[i].text);
    if (same)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(old); i++)
        if (tree_remove(root_fd, old[i], err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (tree_mkdir(root_fd, dirs[i], 0755, 0, err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        if (tree_put(root_fd, kernels[i].path, kernels[i].text, strlen(kernels[i].text),
                     mode_of(kernels[i].path), 0, err) < 0)
            return -1;
    return 0;
}

bool template_kernels_at(size_t i, const char **ret_path, const char **ret_text, mode_t *ret_mode)
{
    if (i >= ARRAY_LEN(kernels))
        return false;
    *ret_path = kernels[i].path;
    *ret_text = kernels[i].text;
    *ret_mode = mode_of(kernels[i].path);
    return true;
}

uint64_t template_kernels_hash(uint64_t hash)
{
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        hash = hash_text(hash_text(hash, kernels[i].path), kernels[i].text);
    return hash;
}
