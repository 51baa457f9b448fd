/* mcp.h - cove mcp: the bridge (mcp.c), and the configuration of clients that start it (mcp_config.c). */
#ifndef COVE_CLI_API_MCP_H
#define COVE_CLI_API_MCP_H

#define MCP_CLIENTS_HELP                                                                           \
    "CLIENT is one of:\n\n"                                                                        \
    "  claude-code      .mcp.json in this directory\n"                                             \
    "  claude-desktop   ~/.config/Claude/claude_desktop_config.json\n"                             \
    "  vscode           .vscode/mcp.json in this directory\n"                                      \
    "  cursor           ~/.cursor/mcp.json\n\n"                                                    \
    "The client starts this program by its whole path, and asks the server that is in force now. " \
    "Keys are not written:\n"                                                                      \
    "they are those of 'cove login', or COVE_KEY in the client's environment."

int mcp_config(int argc, char **argv);
int mcp_init(int argc, char **argv);

#endif
