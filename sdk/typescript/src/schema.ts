// Generated from spec/openapi.yaml by generate.mjs: do not edit.
export interface paths {
    "/v1/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run one command in a sandbox of its own
         * @description Makes a sandbox (from the pool where one fits), writes files, runs a command or code, answers with its output, its accounting and the files that were asked for, and removes the sandbox behind the answer. With `stream`, or with an Accept of application/x-ndjson or text/event-stream, events are sent as they come; the last one is `end`, or `error`. A client that goes away ends the run.
         */
        post: operations["run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A command over one WebSocket, from the create of its sandbox to its exit code
         * @description The first message of the client is the order, a JSON text `{"sandbox": NAME or CreateSandbox, "process": StartProcess, "on_disconnect": "kill" or "keep", "keep": false, "wait": false}`. After it, binary messages are bytes for stdin (if `process` has `"stdin": true`), and texts are `{"type":"stdin_end"}` and `{"type":"resize","rows":40,"columns":120}`. The server sends `{"type":"sandbox",…}` for a new sandbox, `{"type":"start","sandbox":…,"proc":7,"pid":9}`, binary messages whose first byte is the stream (1 stdout, 2 stderr), and last `{"type":"end",…}` or `{"type":"error","error":{…}}`. A sandbox that the order creates ends with the connection, unless `keep` is true; with `wait` it is gone before the server closes. Without `process` the connection only holds the sandbox.
         */
        get: operations["session"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List sandboxes, newest first */
        get: operations["listSandboxes"];
        put?: never;
        /** Make a sandbox */
        post: operations["createSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** One sandbox */
        get: operations["getSandbox"];
        put?: never;
        post?: never;
        /** Kill it; nothing of it is left */
        delete: operations["killSandbox"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set the deadline to now and timeout seconds */
        post: operations["extendSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Put it to sleep, in memory or on disk; its deadline stands still */
        post: operations["pauseSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Continue where it was paused */
        post: operations["resumeSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Save it; it keeps running */
        post: operations["createSnapshot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Copies of it, with its processes; it keeps running */
        post: operations["forkSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List snapshots, newest first */
        get: operations["listSnapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/snapshots/{snapshot}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id or name */
                snapshot: string;
            };
            cookie?: never;
        };
        /** One snapshot */
        get: operations["getSnapshot"];
        put?: never;
        post?: never;
        /** Delete it; sandboxes that were made of it keep running */
        delete: operations["deleteSnapshot"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Templates that the tenant may use. Built ones with their tags, its own first, and the names of installed ones */
        get: operations["listTemplates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/templates/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description name or id */
                name: string;
            };
            cookie?: never;
        };
        /** One template, with its tags and what it says of commands */
        get: operations["getTemplate"];
        put?: never;
        post?: never;
        /** Delete it with its builds; sandboxes that were made of it keep running */
        delete: operations["deleteTemplate"];
        options?: never;
        head?: never;
        /** Publish it to every tenant, or take that back; administrators of the tenant local only */
        patch: operations["publishTemplate"];
        trace?: never;
    };
    "/v1/templates/{name}/tags": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give more tags to the build that has a tag */
        post: operations["tagTemplate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/templates/{name}/tags/{tag}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                tag: string;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a tag; default stays */
        delete: operations["untagTemplate"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/builds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenant's last 100 builds, newest first */
        get: operations["listBuilds"];
        put?: never;
        /** Build a template; the answer comes at once, the build continues */
        post: operations["createBuild"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/builds/files/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the tenant's own name for the files */
                hash: string;
            };
            cookie?: never;
        };
        /** Whether files of that name are there */
        get: operations["getBuildFiles"];
        /** Upload files for COPY, a tar archive or one in gzip; kept for a day after their last use */
        put: operations["putBuildFiles"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/builds/{build}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                build: string;
            };
            cookie?: never;
        };
        /** One build */
        get: operations["getBuild"];
        put?: never;
        post?: never;
        /** Cancel it; one that has ended stays as it is */
        delete: operations["cancelBuild"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/builds/{build}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                build: string;
            };
            cookie?: never;
        };
        /** The log, line by line as it comes, until the build has ended; kept in memory, so a restart of the server ends it */
        get: operations["getBuildLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** What it uses now */
        get: operations["sandboxStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/network": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** What the sandbox may reach */
        get: operations["getNetwork"];
        /** Change it, at once; connections that are no longer allowed are cut */
        put: operations["putNetwork"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/network/allow": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Allow one thing more */
        post: operations["allowNetwork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/network/events": {
        parameters: {
            query?: {
                /** @description the seq of the last event that was seen */
                after?: number;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** What was refused and what was let out, oldest first */
        get: operations["listNetworkEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Who may look at its ports from outside, and the token that opens all of them */
        get: operations["getPreview"];
        /** Replace it; what is not said has its default */
        put: operations["setPreview"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/preview/roll": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take back its token, every link to its ports, and the cookies made of them */
        post: operations["rollPreview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports/{port}/link": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A link that shows one port in a browser without a key, until it expires or its key is revoked
         * @description docs/previews.md
         */
        post: operations["linkPort"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/volumes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List volumes by name */
        get: operations["listVolumes"];
        put?: never;
        /** Make a volume */
        post: operations["createVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/volumes/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description its name or id */
                name: string;
            };
            cookie?: never;
        };
        /** A volume, and the sandboxes that have it */
        get: operations["getVolume"];
        put?: never;
        post?: never;
        /**
         * Remove a volume and all that is in it
         * @description 409 `volume_in_use` while a sandbox has it
         */
        delete: operations["removeVolume"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/networks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Private networks between sandboxes */
        get: operations["listPrivateNetworks"];
        put?: never;
        /** Make one; one that is there already is no error */
        post: operations["createPrivateNetwork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/networks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        /** One, with its members */
        get: operations["getPrivateNetwork"];
        put?: never;
        post?: never;
        /** End it; connections that go through it are cut */
        delete: operations["deletePrivateNetwork"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/networks/{name}/members/{sandbox}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                sandbox: string;
            };
            cookie?: never;
        };
        get?: never;
        /** Put a sandbox into it, or change its alias and ports; at once, also for open connections */
        put: operations["joinPrivateNetwork"];
        post?: never;
        /** Take it out; its connections within are cut */
        delete: operations["leavePrivateNetwork"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenant/network": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What sandboxes of the tenant may reach whose create says nothing */
        get: operations["getDefaultNetwork"];
        /** Say it, for sandboxes that are made from now on; needs scope admin */
        put: operations["setDefaultNetwork"];
        post?: never;
        /** No default any more; needs scope admin */
        delete: operations["deleteDefaultNetwork"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Secrets of the tenant, without their values */
        get: operations["listSecrets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/secrets/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        get?: never;
        /** Keep a value for these hosts, in the place of any before */
        put: operations["putSecret"];
        post?: never;
        /** Forget it, also for sandboxes that run */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/refusals": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** System calls that the filter refused, by program */
        get: operations["listRefusals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** TCP ports that a program listens on inside */
        get: operations["listPorts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/ports/{port}/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
                /** @description any number of segments */
                path: string;
            };
            cookie?: never;
        };
        /** A request to a server inside */
        get: operations["relayGet"];
        /** A request to a server inside */
        put: operations["relayPut"];
        /** A request to a server inside */
        post: operations["relayPost"];
        /** A request to a server inside */
        delete: operations["relayDelete"];
        options?: never;
        head?: never;
        /** A request to a server inside */
        patch: operations["relayPatch"];
        trace?: never;
    };
    "/v1/sandboxes/{id}/exec": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command, and wait or stream
         * @description Waits for the end and answers with all of the output, up to output_limit bytes of each stream. With `stream`, or with an Accept of application/x-ndjson or text/event-stream, events are sent as they come; the last one is `end`, or `error`. A client that goes away ends the command, unless a stream says `on_disconnect: keep`.
         */
        post: operations["exec"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Processes that were started, running or not */
        get: operations["listProcesses"];
        put?: never;
        /** Start a command in the background */
        post: operations["startProcess"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{proc}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        /** One process */
        get: operations["getProcess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{proc}/output": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        /**
         * Attach, from byte N on, until it ends
         * @description A client that remembers the offset behind the last byte that it got loses nothing when it attaches again, also after a restart of the server. Bytes that are no longer kept show as `missed`.
         */
        get: operations["attachProcess"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{proc}/stdin": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Bytes for its stdin */
        post: operations["writeStdin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/processes/{proc}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a signal to its process group, or to all its descendants */
        post: operations["signalProcess"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/tunnel/{port}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
            };
            cookie?: never;
        };
        /**
         * A connection to a TCP port inside, over WebSocket
         * @description Binary messages are bytes of the connection, both ways, in messages of any size. Text messages are JSON: either side sends `{"type":"end"}` when it sends no more, and the other direction continues; the server sends `{"type":"error","error":{…}}` when the connection breaks. When both sides have ended, the server closes with 1000. 502 `port_closed`: nothing listens there; 429: `relay_most` connections to ports of this sandbox are open. `relay_idle` ends a tunnel through which nothing goes.
         */
        get: operations["tunnel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/terminal": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /**
         * A terminal over WebSocket
         * @description Binary messages are what is typed and shown. Text messages are JSON: the client sends `{"type":"resize","rows":40,"columns":120}`; the server sends `{"type":"start","proc":7}` first and `{"type":"end",…}` last. When the connection breaks, the shell continues: attach with `proc` and `from`.
         */
        get: operations["terminal"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files": {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Download a file; Range, If-None-Match, If-Modified-Since and If-Range are heeded */
        get: operations["readFile"];
        /** Upload a file of any size; the old content stays until the new is whole */
        put: operations["writeFile"];
        post?: never;
        /** Remove a file or directory */
        delete: operations["removeFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/tar": {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Download what is in a directory, or one file, as a tar archive */
        get: operations["readTar"];
        /** Unpack a tar archive, perhaps with Content-Encoding gzip, into a directory; nothing outside is touched */
        put: operations["writeTar"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/stat": {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** What is known of one file */
        get: operations["statFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/list": {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Entries of a directory */
        get: operations["listFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/glob": {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Files below path whose names match */
        get: operations["globFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/search": {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Lines below path that match */
        get: operations["searchFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/watch": {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** Changes, as they happen, until the client goes */
        get: operations["watchFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/sign": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A URL that reads (GET) or writes (PUT) one file without a key, until it expires or its key is revoked */
        post: operations["signFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/mkdir": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a directory */
        post: operations["makeDirectory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/move": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Move or rename */
        post: operations["moveFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{id}/files/chmod": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set permissions */
        post: operations["chmodFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sandboxes that are made ahead
         * @description scope admin of the tenant local; see docs/pools.md
         */
        get: operations["listPools"];
        put?: never;
        post?: never;
        /**
         * End all that wait
         * @description scope admin of the tenant local
         */
        delete: operations["drainPools"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools/{template}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description a name, or * for every other */
                template: string;
            };
            cookie?: never;
        };
        get?: never;
        /**
         * How many may wait of a template, in each size
         * @description scope admin of the tenant local
         */
        put: operations["setPool"];
        post?: never;
        /**
         * Back to what the configuration says
         * @description scope admin of the tenant local
         */
        delete: operations["unsetPool"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every tenant with its quotas, what it uses, and its default network */
        get: operations["listTenants"];
        put?: never;
        /** Make a tenant */
        post: operations["addTenant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant: string;
            };
            cookie?: never;
        };
        /** One tenant */
        get: operations["getTenant"];
        put?: never;
        post?: never;
        /** Remove a tenant without sandboxes, snapshots and volumes, and its keys */
        delete: operations["removeTenant"];
        options?: never;
        head?: never;
        /** Change quotas or the default network; what is absent stays as it is */
        patch: operations["changeTenant"];
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Keys, without their secret part */
        get: operations["listKeys"];
        put?: never;
        /** Make a key */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description its public id */
                key: string;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a key, at once and for good */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Records of the audit log, of all tenants */
        get: operations["listAuditChain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Compute the chain of the audit log again */
        post: operations["verifyAudit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/prune": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Remove old records; the chain stays valid */
        post: operations["pruneAudit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/host/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is recorded of the templates that are installed on the host */
        get: operations["listHostTemplates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/host/templates/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the template's name */
                name: string;
            };
            cookie?: never;
        };
        /** What is recorded of a template */
        get: operations["getHostTemplate"];
        /**
         * Record that the files of a template were made, or made again
         * @description The template must be installed. A memory image of the files before is removed.
         */
        put: operations["registerHostTemplate"];
        post?: never;
        /** Forget a template whose files are gone */
        delete: operations["forgetHostTemplate"];
        options?: never;
        head?: never;
        /** Change the default network or the memory image of a template; what is absent stays as it is */
        patch: operations["changeHostTemplate"];
        trace?: never;
    };
    "/v1/host/gc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Remove what nothing needs any more */
        post: operations["collectGarbage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/host/copy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Copy the store, for a backup
         * @description The copy is a file of the directory server/ in the state directory, for root to read and remove. A copy that is there already is replaced.
         */
        post: operations["copyStore"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/policy/analyze": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What policy says of a command, without running it */
        post: operations["analyzeCommand"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/policy/violations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What was refused, or let pass with a warning */
        get: operations["listViolations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/execute": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Any tool by its name */
        post: operations["executeTool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bash": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run a command in the default sandbox, or in sandbox_id */
        post: operations["toolBash"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/file/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Read a file */
        post: operations["toolRead"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/file/write": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write a file */
        post: operations["toolWrite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Find lines in files (Grep, output_mode content unless said otherwise) */
        post: operations["toolSearch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The default sandbox */
        get: operations["toolSandboxGet"];
        put?: never;
        /** Make a sandbox with settings of its own, perhaps as the default one */
        post: operations["toolSandboxMake"];
        /** End the default sandbox */
        delete: operations["toolSandboxEnd"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tools that there are */
        get: operations["listTools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/presets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Settings by name */
        get: operations["listPresets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit-logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who did what */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Figures of the caller's tenant */
        get: operations["getStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Prometheus text */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the server and the keeper answer; no key */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Status; a page for browsers */
        get: operations["getRoot"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The API, for people */
        get: operations["getDocs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.yaml": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This description */
        get: operations["getOpenapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            error: {
                /** @example sandbox_not_found */
                code: string;
                message: string;
                /** @description of the request */
                field?: string;
                /** @description that refused it */
                rule?: string;
                /** @enum {string} */
                layer?: "policy" | "quota";
            };
        };
        /** @description numbers, or texts such as "512m"; what is left out has its default */
        Limits: {
            /**
             * @description memory, swap and page cache included
             * @default 536870912
             */
            memory?: number | string;
            /**
             * @description cores, fractions allowed
             * @default 1
             */
            cpus?: number | string;
            /**
             * @description bytes the sandbox may write
             * @default 1073741824
             */
            disk?: number | string;
            /**
             * @description files the sandbox may make
             * @default 262144
             */
            inodes?: number | string;
            /**
             * @description processes and threads
             * @default 512
             */
            pids?: number | string;
            /**
             * @description open files per process
             * @default 16384
             */
            files?: number | string;
            /**
             * @description pseudo terminals
             * @default 64
             */
            ptys?: number | string;
            /** @description bytes per second read from the disk, and as many written; default: no limit */
            io?: number | string;
            /** @description disk reads per second, and as many writes; default: no limit */
            iops?: number | string;
        };
        /** @description 0 is no limit; docs/tenants.md */
        Quotas: {
            /** @description sandboxes at once */
            sandboxes?: number;
            /** @description thousandths of a core, of all sandboxes together */
            cpu_milli?: number;
            /** @description memory of all sandboxes together */
            memory_bytes?: number;
            /** @description disk of all sandboxes together */
            disk_bytes?: number;
            /** @description sandboxes created in a second */
            creates_per_s?: number;
            /** @description requests in a second */
            requests_per_s?: number;
            /** @description streams at once */
            streams?: number;
            /** @description snapshots, paused sandboxes and volumes together */
            stored_bytes?: number;
            /** @description snapshots and paused sandboxes */
            images?: number;
        };
        ChangeTenant: {
            /**
             * @description the least isolation that its sandboxes have
             * @enum {string}
             */
            isolation?: "jail" | "gvisor" | "vm";
            quotas?: components["schemas"]["Quotas"];
            /** @description the default network of its sandboxes; null: none any more */
            network?: components["schemas"]["NetworkRules"] | null;
        };
        AddTenant: {
            /** @description unique on the server */
            name: string;
            /**
             * @description the least isolation that its sandboxes have
             * @enum {string}
             */
            isolation?: "jail" | "gvisor" | "vm";
            quotas?: components["schemas"]["Quotas"];
            /** @description the default network of its sandboxes; null: none any more */
            network?: components["schemas"]["NetworkRules"] | null;
        };
        Tenant: {
            name?: string;
            /** Format: date-time */
            created_at?: string;
            /**
             * @description the least isolation that its sandboxes have
             * @enum {string}
             */
            isolation?: "jail" | "gvisor" | "vm";
            quotas?: components["schemas"]["Quotas"];
            used?: {
                sandboxes?: number;
                cpu_milli?: number;
                memory_bytes?: number;
                disk_bytes?: number;
            };
            network?: components["schemas"]["Network"] | null;
        };
        CreateKey: {
            /** @description whose sandboxes the key is for */
            tenant: string;
            /**
             * @description operator: only of the tenant local
             * @default run
             * @enum {string}
             */
            scope?: "read" | "run" | "admin" | "operator";
            /** @description what it is for */
            label?: string;
            /** @description seconds from now; default: never */
            expires?: number;
        };
        Key: {
            id?: string;
            /** @description the key itself; only where it was made */
            key?: string;
            tenant?: string;
            /** @enum {string} */
            scope?: "read" | "run" | "admin" | "operator";
            label?: string;
            /** @enum {string} */
            state?: "valid" | "expired" | "revoked";
            /** Format: date-time */
            created_at?: string;
            /** Format: date-time */
            expires_at?: string | null;
            /** Format: date-time */
            revoked_at?: string | null;
            /** Format: date-time */
            last_used_at?: string | null;
        };
        /** @description every field as the chain hashes it; docs/tenants.md */
        ChainRecord: {
            seq?: number;
            time_ms?: number;
            /** Format: date-time */
            timestamp?: string;
            tenant?: string;
            user_id?: string;
            sandbox_id?: string;
            action?: string;
            outcome?: string;
            request_id?: string;
            peer?: string;
            code_hash?: string;
            /** @description JSON in a text */
            resource_usage?: string;
            /** @description JSON in a text */
            security_events?: string;
            detail?: string;
            /** @description -1: not known */
            duration_ms?: number;
            exit_code?: number | null;
            hash?: string;
        };
        VerifyAudit: {
            /** @description a hash that was noted earlier and must still be there */
            head?: string;
        };
        AuditChain: {
            whole: boolean;
            records?: number;
            first?: number;
            last?: number;
            head?: string;
            /** @description only if a head was given */
            head_found?: boolean;
            /** @description the first record that does not fit */
            broken_at?: number;
            reason?: string;
        };
        PruneAudit: {
            /** @description age in seconds */
            older_than: number;
        };
        HostTemplate: {
            name?: string;
            /** @description its files are on the host */
            installed?: boolean;
            /** @description the default network of its sandboxes */
            network?: components["schemas"]["Network"] | null;
            /** @description its memory image */
            warm?: {
                image?: string;
                bytes?: number;
                /** Format: date-time */
                made_at?: string | null;
                start?: string;
                ready?: string;
                import?: string;
            } | null;
        };
        HostTemplateCooled: {
            /** @description the template had a memory image */
            cooled?: boolean;
        };
        RegisterHostTemplate: {
            /**
             * @description how its files were made
             * @enum {string}
             */
            how: "build" | "import" | "pull" | "update";
            /** @description the image or the file */
            from?: string;
        };
        ChangeHostTemplate: {
            /** @description the default network of its sandboxes; null: none any more */
            network?: components["schemas"]["NetworkRules"] | null;
            /** @description its memory image; null: none any more */
            warm?: {
                /** @description the id of the image */
                image: string;
                /** @description the command that runs in the image */
                start?: string;
                /** @description the command that ended with 0 once the image was ready */
                ready?: string;
                /** @description the modules of the python kernel that waits in the image */
                import?: string;
            } | null;
        };
        CollectGarbage: {
            /**
             * @description only say what would be done
             * @default false
             */
            dry_run?: boolean;
            /** @description snapshots that are older go, too; an age in seconds */
            older_than?: number;
            /** @description the memory of images that were not used for so many seconds is compressed */
            compress?: number;
        };
        GarbageItem: {
            /** @enum {string} */
            type?: "item" | "ping" | "end" | "error";
            /** @enum {string} */
            kind?: "snapshot" | "sandbox" | "volume" | "record";
            id?: string;
            /** @enum {string} */
            action?: "remove" | "compress";
            reason?: string;
            freed_bytes?: number;
            error?: {
                code?: string;
                message?: string;
            } | null;
            seen?: number;
        };
        Pool: {
            template?: string;
            /** @enum {string} */
            profile?: "strict" | "root";
            /** @enum {string} */
            isolation?: "jail" | "gvisor" | "vm";
            /** @description they come out of the template's memory image */
            warm?: boolean;
            /** @description for POST /v1/run: one command each, with the disk in memory */
            once?: boolean;
            limits?: components["schemas"]["Limits"];
            /** @description that wait now */
            ready?: number;
            /** @description that are to wait */
            target?: number;
            min?: number;
            max?: number;
            /** @description creates that took one */
            hits?: number;
            /** @description creates for which none was there */
            misses?: number;
        };
        PoolRule: {
            template?: string;
            min?: number;
            max?: number;
        };
        SetPool: {
            /**
             * @description sandboxes that always wait
             * @default 0
             */
            min?: number;
            /** @description sandboxes that wait at most */
            max: number;
        };
        /** @description what it may reach; docs/network.md */
        Network: {
            /**
             * @description default: list if something is allowed, else public
             * @enum {string}
             */
            mode?: "off" | "public" | "list";
            /** @description hosts and addresses that it may reach */
            allow?: string[];
            /** @description hosts and addresses that it may not reach */
            deny?: string[];
            proxy?: components["schemas"]["NetworkProxy"];
            /** @description names of secrets that it gets placeholders for; only at the create. docs/secrets.md */
            secrets?: string[];
            /** @description at a create only: private networks that it is in from the start; with nothing beside it the mode is off */
            join?: components["schemas"]["Join"][];
        };
        /** @description docs/network.md */
        NetworkRules: {
            /**
             * @description default: list if something is allowed, else public
             * @enum {string}
             */
            mode?: "off" | "public" | "list";
            /** @description hosts and addresses that it may reach */
            allow?: string[];
            /** @description hosts and addresses that it may not reach */
            deny?: string[];
            proxy?: components["schemas"]["NetworkProxy"];
        };
        /** @description what connections go through; answers have no username and no password */
        NetworkProxy: {
            /**
             * @description what it speaks
             * @enum {string}
             */
            type: "http" | "socks5";
            /** @description host:port; at a public address */
            address: string;
            /** @description of a proxy that wants a login */
            username?: string;
            /** @description of a proxy that wants a login */
            password?: string;
        };
        Preview: {
            /**
             * @description no token is needed
             * @default false
             */
            public?: boolean;
            /**
             * @description a request to a port wakes it when it is paused
             * @default false
             */
            auto_resume?: boolean;
            /** @description the Host that servers inside see; ${PORT} stands for the port */
            mask_host?: string | null;
        };
        PreviewState: {
            public: boolean;
            auto_resume: boolean;
            mask_host: string | null;
            /** @description as the header e2b-traffic-access-token, or as ?cove_token= */
            token: string;
        };
        Join: {
            /** @description its name */
            network: string;
            /** @description what the others call it; default: the sandbox's name, or else its id */
            alias?: string;
            /** @description that the others may reach; default: none */
            ports?: number[];
        };
        Label: string;
        Ports: number[];
        Membership: {
            /** @description what the others call it; default: the sandbox's name, or else its id */
            alias?: string;
            /** @description that the others may reach; default: none */
            ports?: number[];
        };
        PrivateMember: {
            sandbox: string;
            alias: string;
            /** @example db.app.internal */
            host: string;
            /** @description made up; means something inside of members only */
            address: string;
            ports: components["schemas"]["Ports"];
            /** Format: date-time */
            joined_at?: string;
        };
        PrivateNetwork: {
            name: string;
            /** Format: date-time */
            created_at?: string;
            member_count: number;
            /** @description not in lists */
            members?: components["schemas"]["PrivateMember"][];
        };
        Secret: {
            name?: string;
            hosts?: string[];
            /** Format: date-time */
            created?: string;
            /** Format: date-time */
            updated?: string;
        };
        NetworkEvent: {
            seq?: number;
            /** Format: date-time */
            time?: string;
            sandbox?: string;
            /** @enum {string} */
            event?: "connect" | "refused" | "name_refused" | "failed";
            host?: string;
            address?: string;
            port?: number;
            /** @description what decided: a rule, or a reason such as private, or proxy */
            rule?: string;
            /** @description what the word in rule means (reserved: kept for examples and protocols …), or what was wrong with the proxy */
            reason?: string;
            /** @description of refused: who inside opened it, by the word of the sandbox; null: not known */
            process?: {
                pid?: number;
                name?: string;
            } | null;
            sent?: number;
            received?: number;
            duration_ms?: number;
            /** @description how many equal refusals in a row it stands for; absent: 1 */
            count?: number;
            /** @description others of this sandbox before it that were too many to be written down */
            missed?: number;
            /** @description between two sandboxes of a private network: who connected */
            from?: string;
            /** @description and who was reached; both have the event */
            to?: string;
        };
        CreateSandbox: {
            /** @description NAME or NAME:TAG */
            template?: string;
            /** @description unique in the tenant */
            name?: string;
            limits?: components["schemas"]["Limits"];
            /** @description variables of every command in it */
            env?: {
                [key: string]: string;
            };
            /** @description kept and shown; lists can be filtered by it */
            metadata?: {
                [key: string]: string;
            };
            /**
             * @description seconds until on_timeout; 0: no deadline, for administrators of the tenant local
             * @default 300
             */
            timeout?: number;
            network?: components["schemas"]["Network"];
            /** @description who may look at its ports; docs/previews.md */
            preview?: components["schemas"]["Preview"];
            /** @description volumes that it has from the start */
            volumes?: components["schemas"]["Mount"][];
            /**
             * @description what happens at the deadline
             * @default kill
             * @enum {string}
             */
            on_timeout?: "kill" | "pause";
            /** @description id or name of what it is made of; template, root and volumes are then the snapshot's, and so is each limit that is not said. 400 `limit_invalid` where its processes or files do not fit into the limits */
            snapshot?: string;
            /**
             * @description false, with `snapshot`: its files only, it starts again
             * @default true
             */
            memory?: boolean;
            /**
             * @description a request to it wakes it when it is paused
             * @default false
             */
            auto_resume?: boolean;
            /** @description pause it when it was idle for so long; 0: never */
            idle_pause_seconds?: number;
            /** @description move it to disk when it was idle for so long; 0: never */
            idle_disk_seconds?: number;
            /**
             * @description whether root inside may be used
             * @default false
             */
            root?: boolean;
            /** @description what isolates it from the host: `jail`, `gvisor`, `vm` or `vm-emulated`. Default: the server's setting `isolation`, or the tenant's least level. 501 `unsupported` for one that this host does not have, 403 `denied` for one below the tenant's least level */
            isolation?: string;
            /** @description a create with the same key again answers with the same sandbox */
            idempotency_key?: string;
        };
        Sandbox: {
            id: string;
            name?: string | null;
            /** @enum {string} */
            state: "new" | "starting" | "running" | "pausing" | "paused" | "stopping" | "lost";
            template: string;
            /** @enum {string} */
            profile?: "strict" | "root";
            /**
             * @description null of one that is lost
             * @enum {string|null}
             */
            isolation?: "jail" | "gvisor" | "vm" | "vm-emulated" | null;
            metadata?: {
                [key: string]: string;
            };
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            deadline?: string | null;
            /** @enum {string} */
            on_timeout?: "kill" | "pause";
            limits?: components["schemas"]["Limits"];
            volumes?: components["schemas"]["Mount"][];
            /**
             * @description where a paused one is
             * @enum {string|null}
             */
            tier?: "hot" | "warm" | "disk" | null;
            /** Format: date-time */
            paused_since?: string | null;
            /** @description what one on disk takes there */
            image_bytes?: number | null;
            auto_resume?: boolean;
            idle_pause_seconds?: number;
            idle_disk_seconds?: number;
        };
        Mount: {
            /** @description of a volume of the same tenant */
            name: string;
            /**
             * @description where it is mounted; not /, /proc, /sys or /dev, nor behind a link
             * @example /data
             */
            path: string;
            /**
             * @description any number of sandboxes read a volume at a time and at most one writes
             * @default false
             */
            read_only?: boolean;
        };
        Volume: {
            id: string;
            name: string;
            tenant?: string;
            /** @description bytes it can hold, its file system included */
            size: number;
            /** @description files and directories it can hold */
            inodes?: number;
            /** @description what the host's disk holds of it now */
            stored_bytes?: number;
            readers?: number;
            writers?: number;
            /** Format: date-time */
            created_at?: string;
            /** @description only where one volume is asked for */
            users?: {
                sandbox?: string;
                path?: string;
                read_only?: boolean;
            }[];
        };
        Template: {
            id: string;
            name: string;
            /** @description the tenant's own */
            own: boolean;
            /** @description every tenant may use it */
            public: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            tags?: {
                tag?: string;
                build?: string;
                /** Format: date-time */
                created_at?: string;
                /** @description what is on the disk of the build itself; what it began with, and steps of 32 MiB and more before the last, are on disks below and not counted */
                bytes?: number;
                /** @description what the build began with */
                from?: string | null;
            }[];
            /** @description of the tag default: from, env, user, workdir, start, ready */
            settings?: Record<string, never> | null;
        };
        Build: {
            id: string;
            /** @description the template's id */
            template: string;
            /** @enum {string} */
            state: "new" | "waiting" | "building" | "ready" | "failed" | "cancelled";
            /** @description why it failed */
            reason: string | null;
            /** @description where it is, or failed: base, 1 …, finalize */
            step: string | null;
            tags: string[];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            ended_at: string | null;
        };
        BuildStep: {
            /**
             * @description what it does; docs/templates.md
             * @enum {string}
             */
            type: "RUN" | "COPY" | "ENV" | "WORKDIR" | "USER" | "ENTRYPOINT" | "CMD" | "LABEL" | "EXPOSE";
            /** @description by its type */
            args: string[];
            /** @description of COPY: the name of an upload */
            files?: string;
            /** @description another name of files */
            filesHash?: string;
            /** @description of COPY, in place of files: the number of a stage before this one */
            stage?: number;
            /** @description of RUN: the words of the command; without them a login shell runs args[0] */
            exec?: string[];
            /** @description of RUN: variables of this command alone */
            env?: {
                [key: string]: string;
            };
            /** @description of RUN: its directory */
            cwd?: string;
            /** @description of RUN: what is there while the command runs, and not in the template */
            mounts?: {
                /**
                 * @description what it is
                 * @enum {string}
                 */
                type: "secret" | "cache" | "tmpfs";
                /** @description of a secret or a cache */
                id?: string;
                /** @description an absolute path */
                target?: string;
                /** @description of a secret: a variable that has it */
                env?: string;
                /** @description an octal number */
                mode?: string;
                /** @description its owner */
                uid?: string;
                /** @description its group */
                gid?: string;
            }[];
            /**
             * @description this step and those behind it run though they are known
             * @default false
             */
            force?: boolean;
        };
        CreateBuild: {
            /**
             * @description a template that was built, or is installed; or an image, which is pulled if it is neither
             * @default base
             */
            from?: string;
            /** @description in place of from: an image of a registry, [HOST/]PATH[:TAG][@DIGEST] */
            image?: string;
            /** @description in place of from: the name of an upload, an image as docker save or OCI archives have it */
            archive?: string;
            /** @description which image of the archive, if there are several */
            archive_tag?: string;
            /** @description credentials for the registry of the image; used for this build, and kept nowhere */
            registry?: {
                /** @description of a login */
                username: string;
                /** @description of the login, or a token */
                password: string;
            };
            /** @description run one after the other */
            steps?: components["schemas"]["BuildStep"][];
            /** @description what steps of COPY are from; one runs only where its files are needed */
            stages?: {
                /** @description as of the build */
                from: string;
                /** @description as of the build */
                steps?: components["schemas"]["BuildStep"][];
            }[];
            /** @description by id, in base64; for mounts of RUN, and kept nowhere */
            secrets?: {
                [key: string]: string;
            };
            /** @description a command that runs in every sandbox made of it */
            start?: string;
            /** @description succeeds when the start command is ready; without it, 20 s are waited */
            ready?: string;
            /**
             * @description every step runs
             * @default false
             */
            force?: boolean;
            /** @description what the build may reach; docs/network.md */
            network?: components["schemas"]["NetworkRules"];
            /**
             * @description seconds that one step may take
             * @default 3600
             */
            step_timeout?: number;
            /** @description NAME or NAME:TAG */
            name: string;
            /** @description more tags */
            tags?: string[];
            /** @description cpus, memory and disk of its sandboxes */
            limits?: components["schemas"]["Limits"];
        };
        Snapshot: {
            id: string;
            name: string | null;
            /** @description that it was made of */
            sandbox: string;
            template: string;
            memory: boolean;
            bytes: number;
            /** Format: date-time */
            created_at: string;
        };
        /** @description command or args */
        Exec: {
            /** @description run by the user's login shell */
            command?: string;
            /** @description a program and its arguments */
            args?: string[];
            /** @description variables of this command */
            env?: {
                [key: string]: string;
            };
            /** @description its directory; default: the template's, or the user's home */
            cwd?: string;
            /** @description whose rights it has; default: the template's user */
            user?: string;
            /** @description a name of the process in lists */
            tag?: string;
            /** @description seconds until it is ended */
            timeout?: number;
            /** @description seconds of processor time, of all its processes together */
            cpu_timeout?: number;
            /** @description all of its input; then it ends */
            stdin?: string;
            /**
             * @description bytes of each stream
             * @default 1048576
             */
            output_limit?: number;
            /**
             * @description answer with events, in this form
             * @enum {string}
             */
            stream?: "ndjson" | "sse";
            /**
             * @description what happens to it when the reader of a stream goes away
             * @default kill
             * @enum {string}
             */
            on_disconnect?: "kill" | "keep";
        };
        /** @description one of command, args and code */
        Run: {
            /** @description NAME or NAME:TAG */
            template?: string;
            /** @description numbers, or texts such as "512m"; what is left out has its default; of disk, half of memory where it is in memory */
            limits?: components["schemas"]["Limits"];
            /** @description what it may reach; docs/network.md */
            network?: components["schemas"]["NetworkRules"];
            /**
             * @description whether root inside may be used
             * @default false
             */
            root?: boolean;
            /** @description by path, absolute or relative to the user's home; missing directories are made */
            files?: {
                [key: string]: string | {
                    /** @description what is in it */
                    data: string;
                    /**
                     * @description of data
                     * @default utf-8
                     * @enum {string}
                     */
                    encoding?: "utf-8" | "base64";
                    /** @description octal permission bits, such as "755" */
                    mode?: string;
                };
            };
            /** @description run by the user's login shell */
            command?: string;
            /** @description a program and its arguments */
            args?: string[];
            /** @description a program in the language */
            code?: string;
            /**
             * @description of code
             * @default python
             * @enum {string}
             */
            language?: "python" | "javascript" | "bash" | "sh";
            /** @description all of its input; then it ends */
            stdin?: string;
            /** @description variables of this command */
            env?: {
                [key: string]: string;
            };
            /** @description its directory; default: the template's, or the user's home */
            cwd?: string;
            /** @description whose rights it has; default: the template's user */
            user?: string;
            /**
             * @description seconds until it is ended
             * @default 60
             */
            timeout?: number;
            /** @description seconds of processor time, of all its processes together */
            cpu_timeout?: number;
            /**
             * @description bytes of each stream
             * @default 1048576
             */
            output_limit?: number;
            /** @description paths of files to answer with */
            return_files?: string[];
            /**
             * @description bytes of all returned files together
             * @default 1048576
             */
            files_limit?: number;
            /**
             * @description answer with events, in this form
             * @enum {string}
             */
            stream?: "ndjson" | "sse";
        };
        RunResult: components["schemas"]["Accounting"] & {
            /** @description the id that it had */
            sandbox?: string;
            /** @description of the whole sandbox */
            memory_peak_bytes?: number;
            stdout?: string;
            /** @enum {string} */
            stdout_encoding?: "utf-8" | "base64";
            stdout_truncated?: boolean;
            stderr?: string;
            /** @enum {string} */
            stderr_encoding?: "utf-8" | "base64";
            stderr_truncated?: boolean;
            files?: {
                path?: string;
                size?: number;
                truncated?: boolean;
                data?: string;
                /** @enum {string} */
                data_encoding?: "utf-8" | "base64";
                error?: {
                    code?: string;
                    message?: string;
                };
            }[];
        };
        /** @description command or args */
        StartProcess: {
            /** @description run by the user's login shell */
            command?: string;
            /** @description a program and its arguments */
            args?: string[];
            /** @description variables of this command */
            env?: {
                [key: string]: string;
            };
            /** @description its directory; default: the template's, or the user's home */
            cwd?: string;
            /** @description whose rights it has; default: the template's user */
            user?: string;
            /** @description a name of the process in lists */
            tag?: string;
            /** @description seconds until it is ended */
            timeout?: number;
            /** @description seconds of processor time, of all its processes together */
            cpu_timeout?: number;
            /**
             * @description whether its input stays open
             * @default false
             */
            stdin?: boolean;
            /**
             * @description bytes of each stream that can be read again
             * @default 262144
             */
            output_kept?: number;
            /**
             * @description it has a terminal
             * @default false
             */
            pty?: boolean;
            /** @description height of the terminal */
            rows?: number;
            /** @description width of the terminal */
            columns?: number;
        };
        Accounting: {
            /** @description 124 timeout or cpu_timeout, 137 out of memory, 128+n signal n */
            exit_code?: number;
            /** @enum {string} */
            exit_reason?: "exit" | "signal" | "timeout" | "cpu_timeout" | "oom" | "lost";
            signal?: number;
            wall_ms?: number;
            cpu_ms?: number;
            peak_bytes?: number;
            /** @description written in all */
            stdout_bytes?: number;
            stderr_bytes?: number;
        };
        ExecResult: components["schemas"]["Accounting"] & {
            proc?: number;
            stdout?: string;
            /** @enum {string} */
            stdout_encoding?: "utf-8" | "base64";
            stdout_truncated?: boolean;
            stderr?: string;
            /** @enum {string} */
            stderr_encoding?: "utf-8" | "base64";
            stderr_truncated?: boolean;
        };
        Process: components["schemas"]["Accounting"] & {
            /** @description the handle; never used again in this sandbox */
            proc?: number;
            pid?: number;
            running?: boolean;
            pty?: boolean;
            args?: string[];
            cwd?: string;
            tag?: string;
            user?: string;
            /** Format: date-time */
            started_at?: string;
        };
        Event: {
            /** @enum {string} */
            type: "start" | "stdout" | "stderr" | "ping" | "end" | "error";
            proc?: number;
            pid?: number;
            /** @description of the first byte of data in its stream */
            offset?: number;
            /** @description bytes before it that are no longer kept */
            missed?: number;
            data?: string;
            /** @enum {string} */
            data_encoding?: "utf-8" | "base64";
            error?: Record<string, never>;
        };
        Change: {
            type: string;
            path?: string;
            /** @description new name of a rename */
            to?: string;
        };
        Entry: {
            path?: string;
            /** @enum {string} */
            type?: "file" | "directory" | "symlink" | "fifo" | "socket" | "char" | "block";
            size?: number;
            /** @example 0644 */
            mode?: string;
            uid?: number;
            gid?: number;
            owner?: string;
            group?: string;
            /** Format: date-time */
            modified_at?: string;
            /** @description of a symlink */
            target?: string;
        };
        /** @description rules on top of the preset's; docs/policy.md */
        PolicyRules: {
            /**
             * @description rules to begin with
             * @enum {string}
             */
            preset?: "minimal" | "standard" | "development" | "open";
            /** @description tools that may be used; default: all */
            allowed_tools?: string[];
            /** @description tools that may not be used */
            blocked_tools?: string[];
            /** @description commands that may not run */
            command_blacklist?: string[];
            /** @description commands that may run, and no others */
            command_whitelist?: string[];
            /** @description files that may not be read or written */
            blocked_paths?: string[];
            /** @description rules of the preset that do not count */
            waived_rules?: string[];
            /** @description root inside may be used */
            allow_root?: boolean;
            /** @description whether network tools are no violation */
            network?: boolean;
            /**
             * @description the highest risk that may run
             * @enum {string}
             */
            max_risk?: "none" | "low" | "medium" | "high" | "critical";
            /**
             * @description the audit log is always on
             * @constant
             */
            enable_audit_log?: true;
        };
        /** @description exactly one of command, code, path and tool */
        PolicyQuestion: {
            /** @description a command for a shell */
            command?: string;
            /** @description a program */
            code?: string;
            /** @description of code */
            language?: string;
            /** @description a file */
            path?: string;
            /**
             * @description of path
             * @default read
             * @enum {string}
             */
            access?: "read" | "write";
            /** @description the name of a tool */
            tool?: string;
            /**
             * @description rules to ask
             * @default standard
             * @enum {string}
             */
            preset?: "minimal" | "standard" | "development" | "open";
            security?: components["schemas"]["PolicyRules"];
        };
        /** @enum {string} */
        Risk: "none" | "low" | "medium" | "high" | "critical";
        RiskCounts: {
            low?: number;
            medium?: number;
            high?: number;
            critical?: number;
        };
        PolicyReport: {
            allowed: boolean;
            risk: components["schemas"]["Risk"];
            /** @description all of it could be parsed */
            complete: boolean;
            /** @description why not */
            reason?: string;
            /** @description violations beyond those listed */
            dropped?: number;
            violations: {
                rule?: string;
                description?: string;
                risk?: components["schemas"]["Risk"];
                denied?: boolean;
                /** @description bytes into what was asked about */
                offset?: number;
                length?: number;
                command?: string;
            }[];
            /** @description that would be run */
            programs?: string[];
            paths?: {
                path?: string;
                /** @enum {string} */
                access?: "read" | "write";
            }[];
        };
        PolicyViolations: {
            violations: {
                /** Format: date-time */
                timestamp?: string;
                sandbox_id?: string;
                rule?: string;
                description?: string;
                risk?: components["schemas"]["Risk"];
                refused?: boolean;
                command?: string;
            }[];
            stats: {
                checked?: number;
                denied?: number;
                by_risk?: components["schemas"]["RiskCounts"];
            };
        };
        ToolCall: {
            /** @description the name of a tool of GET /tools */
            tool_name?: string;
            /** @description another name of tool_name */
            tool?: string;
            /** @description of the tool: GET /tools and docs/tools.md have them */
            arguments?: Record<string, never>;
            /** @description another name of arguments */
            input?: Record<string, never>;
            /** @description id or name of the sandbox to work in (default: your own, which is made when it is needed) */
            sandbox_id?: string;
        };
        ToolBash: {
            /** @description id or name of the sandbox to work in (default: your own, which is made when it is needed) */
            sandbox_id?: string;
            /** @description the command to run; may be absent with restart */
            command?: string;
            /** @description milliseconds after which the command is ended */
            timeout?: number;
            /** @description the same in seconds */
            timeout_seconds?: number;
            /** @description milliseconds of processor time */
            cpu_timeout?: number;
            /**
             * @description start it and return at once; its output is read with bash_output
             * @default false
             */
            run_in_background?: boolean;
            /** @description another name of run_in_background */
            background?: boolean;
            /** @description directory for this command (default: where the shell is) */
            cwd?: string;
            /** @description another name of cwd */
            working_directory?: string;
            /** @description variables for this command */
            env?: {
                [key: string]: string;
            };
            /** @description user of the sandbox to run as */
            user?: string;
            /**
             * @description name of the shell whose directory, variables and functions count
             * @default main
             */
            session?: string;
            /**
             * @description forget the session's directory, variables and functions first
             * @default false
             */
            restart?: boolean;
            /**
             * @description a shell of its own, which starts fresh and leaves nothing behind
             * @default false
             */
            one_shot?: boolean;
            /** @description what the command does, in a few words */
            description?: string;
            /** @description has no meaning here */
            dangerouslyDisableSandbox?: unknown;
        };
        ToolRead: {
            /** @description id or name of the sandbox to work in (default: your own, which is made when it is needed) */
            sandbox_id?: string;
            /** @description the file to read */
            file_path?: string;
            /** @description another name of file_path */
            path?: string;
            /**
             * @description first line to read, from 1
             * @default 1
             */
            offset?: number;
            /** @description lines to read (default: all, up to 4 MiB) */
            limit?: number;
            /**
             * @description put its number before each line
             * @default false
             */
            line_numbers?: boolean;
            /**
             * @description base64: the bytes of a file that is not a text
             * @default utf-8
             * @enum {string}
             */
            encoding?: "utf-8" | "base64";
            /** @description has no meaning here */
            pages?: unknown;
            /** @description has no meaning here */
            allow_large?: unknown;
        };
        ToolWrite: {
            /** @description id or name of the sandbox to work in (default: your own, which is made when it is needed) */
            sandbox_id?: string;
            /** @description the file to write; missing directories are made */
            file_path?: string;
            /** @description another name of file_path */
            path?: string;
            /** @description all of the file */
            content: string;
            /**
             * @description base64: content is base64 of the bytes to write
             * @default utf-8
             * @enum {string}
             */
            encoding?: "utf-8" | "base64";
        };
        ToolGrep: {
            /** @description id or name of the sandbox to work in (default: your own, which is made when it is needed) */
            sandbox_id?: string;
            /** @description regular expression to search for */
            pattern?: string;
            /** @description another name of pattern */
            query?: string;
            /** @description file or directory to search (default: the working directory) */
            path?: string;
            /** @description only files whose name is like this, such as *.js */
            glob?: string;
            /** @description another name of glob */
            include?: string;
            /**
             * @description content: matching lines; files_with_matches: paths; count: matches of each file
             * @default content
             * @enum {string}
             */
            output_mode?: "content" | "files_with_matches" | "count";
            /**
             * @description ignore case
             * @default false
             */
            "-i"?: boolean;
            /** @description another name of -i */
            ignore_case?: boolean;
            /**
             * @description line numbers, in output_mode content
             * @default true
             */
            "-n"?: boolean;
            /** @description another name of -n */
            line_numbers?: boolean;
            /** @description lines to show behind each match, in output_mode content */
            "-A"?: number;
            /** @description lines to show before each match, in output_mode content */
            "-B"?: number;
            /** @description lines to show around each match, in output_mode content */
            "-C"?: number;
            /** @description another name of -C */
            context?: number;
            /**
             * @description matches at most
             * @default 1000
             */
            head_limit?: number;
            /** @description another name of head_limit */
            limit?: number;
            /**
             * @description pattern is a text, not a regular expression
             * @default false
             */
            fixed_strings?: boolean;
            /**
             * @description also files whose name begins with a dot
             * @default false
             */
            hidden?: boolean;
        };
        /** @description what every tool answers, and below it what some add */
        ToolAnswer: {
            tool: string;
            sandbox_id: string;
            success: boolean;
            error: string | null;
            /** @description to be shown */
            output: string;
            duration_ms: number;
            truncated?: boolean;
            /** @description what the sandbox was refused since the last answer, if anything */
            network_refused?: components["schemas"]["NetworkEvent"][];
            /** @description Bash, and BashOutput of one that has ended */
            exit_code?: number;
            /** @enum {string} */
            exit_reason?: "exit" | "signal" | "timeout" | "cpu_timeout" | "oom" | "lost";
            stdout?: string;
            stderr?: string;
            resource_usage?: {
                cpu_ms?: number;
                memory_peak_bytes?: number;
                memory_mb?: number;
            };
            /** @description of one in the background */
            process_id?: number;
            pid?: number;
            /** @description BashOutput */
            running?: boolean;
            /** @description BashOutput; where to continue */
            stdout_next?: number;
            stderr_next?: number;
            /** @description KillProcess; processes */
            reached?: number;
            /**
             * @description Read
             * @enum {string}
             */
            type?: "text" | "image" | "binary";
            /** @description Read, Write, Edit, MultiEdit */
            path?: string;
            size?: number;
            first_line?: number;
            lines?: number;
            media_type?: string;
            data?: string;
            /** @description Edit, MultiEdit */
            replacements?: number;
            /** @description Glob; Grep, files_with_matches */
            files?: string[];
            /** @description Glob, Grep */
            count?: number;
            /** @description Grep */
            file_count?: number;
            /** @description Grep, content */
            matches?: {
                path?: string;
                line?: number;
                column?: number;
                text?: string;
            }[];
            /** @description Grep, count */
            counts?: {
                path?: string;
                count?: number;
            }[];
            /** @description LS */
            entries?: Record<string, never>[];
        };
        /** @description other limits than the preset's */
        ToolLimits: {
            /** @description processors, such as 0.5 */
            cpu_cores?: number;
            /** @description memory, in MiB */
            memory_mb?: number;
            /** @description disk, in MiB */
            disk_mb?: number;
            /** @description of a command that is given no timeout */
            timeout_seconds?: number;
            /** @description processes at once */
            max_processes?: number;
        };
        /** @description what the sandbox may reach */
        ToolNetwork: {
            /** @description whether the sandbox has a network */
            enabled?: boolean;
            /** @description hosts it may reach, such as pypi.org; none: every public address */
            allowed_domains?: string[];
        };
        ToolSandboxMake: {
            /**
             * @description limits and policy to begin with; development has more of everything, and a network
             * @default standard
             * @enum {string}
             */
            preset?: "minimal" | "standard" | "development";
            /** @description what the sandbox is made of (default: the server's) */
            template?: string;
            /** @description the same as template; 'base' is the default template where none was built */
            e2b_template?: string;
            /** @description of configurations for E2B; has no meaning here */
            sandbox_type?: unknown;
            /** @description of configurations for E2B; has no meaning here, and is not kept */
            e2b_api_key?: unknown;
            /** @description what isolates it from the host: jail, gvisor, vm or vm-emulated (default: the server's) */
            isolation?: string;
            resource_limits?: components["schemas"]["ToolLimits"];
            network?: components["schemas"]["ToolNetwork"];
            security?: components["schemas"]["PolicyRules"];
            /** @description the sandbox ends after so long without use */
            session_timeout_minutes?: number;
            /**
             * @description end it after the session, rather than pause it
             * @default true
             */
            auto_cleanup?: boolean;
            /** @description absolute path where relative ones begin */
            working_directory?: string;
            /**
             * @description use this sandbox for calls without a sandbox_id from now on; the one that was used ends
             * @default false
             */
            default?: boolean;
        };
        ToolConfig: components["schemas"]["ToolSandboxMake"];
        ToolSandbox: {
            sandbox_id: string;
            template?: string;
            status: string;
            isolation?: string;
            default?: boolean;
            created_ms?: number;
            deadline_ms?: number;
            resource_limits?: components["schemas"]["ToolLimits"];
            config?: components["schemas"]["ToolConfig"];
        };
        ToolSandboxEnded: {
            sandbox_id?: string;
            ended?: boolean;
        };
        ToolList: {
            tools?: {
                name?: string;
                description?: string;
                arguments?: string;
            }[];
        };
        ToolPresets: {
            presets?: {
                [key: string]: components["schemas"]["ToolConfig"];
            };
        };
        AuditRecord: {
            seq: number;
            /** Format: date-time */
            timestamp: string;
            tenant: string;
            sandbox_id?: string | null;
            user_id: string;
            /**
             * @example exec
             * @example file.write
             * @example url.sign
             */
            action: string;
            outcome: string;
            /** @description SHA-256 of the command */
            code_hash?: string | null;
            duration_ms?: number | null;
            exit_code?: number | null;
            resource_usage?: Record<string, never>;
            security_events?: Record<string, never>[];
            detail?: string | null;
            request_id?: string | null;
            peer?: string | null;
            /** @description of this record and the one before */
            hash: string;
        };
        AuditPage: {
            logs: components["schemas"]["AuditRecord"][];
            count: number;
            /** @description after */
            next?: number;
        };
        Stats: {
            tenant?: string;
            uptime_ms?: number;
            sandboxes?: {
                count?: number;
                cpu_milli?: number;
                memory_bytes?: number;
                disk_bytes?: number;
            };
            security?: {
                checked?: number;
                denied?: number;
                violations_by_risk?: components["schemas"]["RiskCounts"];
            };
            /** @description if there is one */
            default_sandbox?: {
                sandbox_id?: string;
                uptime_ms?: number;
                cpu_ms?: number;
                memory_bytes?: number;
                disk_bytes?: number;
                processes?: number;
                /** @description system calls that the jail refused */
                escape_attempts?: number;
            };
        };
        Health: {
            /** @enum {string} */
            status: "healthy" | "unhealthy";
            keeper?: boolean;
            store?: boolean;
            /** @description false: the host's disk is full, and writes in sandboxes are refused; missing while the keeper does not answer */
            disk?: boolean;
            /** @description the network gateway is up; missing where sandboxes have no network */
            gateway?: boolean;
            version?: string;
            uptime_ms?: number;
        };
        Root: {
            /** @constant */
            service?: "cove";
            /** @enum {string} */
            status?: "running" | "degraded";
            version?: string;
            uptime_ms?: number;
            docs?: string;
            openapi?: string;
        };
    };
    responses: {
        /** @description the sandbox */
        Sandbox: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Sandbox"];
            };
        };
        /** @description the default of the tenant; null: there is none */
        DefaultNetwork: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    network?: components["schemas"]["Network"] | null;
                };
            };
        };
        /** @description the file */
        Entry: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Entry"];
            };
        };
        /** @description files */
        Entries: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    entries?: components["schemas"]["Entry"][];
                    /** @description there were more than limit */
                    truncated?: boolean;
                };
            };
        };
        /** @description whether it was there before */
        Existed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    existed?: boolean;
                };
            };
        };
        /** @description refused or failed */
        Error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /** @description the id, the name, or the beginning of the id (5 characters or more) */
        id: string;
        proc: number;
        /** @description absolute, or relative to the user's home */
        path: string;
        /** @description whose rights; the template's user without it */
        user: string;
        limit: number;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Run"];
            };
        };
        responses: {
            /** @description it ended, in whatever way */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunResult"];
                    "application/x-ndjson": components["schemas"]["Event"];
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description switching to WebSocket */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listSandboxes: {
        parameters: {
            query?: {
                state?: "starting" | "running" | "paused" | "stopping" | "lost";
                name?: string;
                /** @description key:value, several divided by commas; all of them must match */
                metadata?: string;
                limit?: number;
                /** @description next of the page before */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        sandboxes: components["schemas"]["Sandbox"][];
                        /** @description cursor of the next page */
                        next: string | null;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createSandbox: {
        parameters: {
            query?: never;
            header?: {
                /** @description a second request with the same key gets the sandbox of the first, and one that asks for something else 409; the same as idempotency_key */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CreateSandbox"];
            };
        };
        responses: {
            /** @description the key was used before; the header Idempotent-Replayed says so */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sandbox"];
                };
            };
            201: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    getSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    killSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    extendSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description seconds from now */
                    timeout: number;
                };
            };
        };
        responses: {
            200: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    pauseSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description where its memory is kept; docs/pause.md
                     * @default auto
                     * @enum {string}
                     */
                    tier?: "auto" | "hot" | "warm" | "disk";
                    /**
                     * @description false keeps its files only, on disk; a resume then starts it again
                     * @default true
                     */
                    memory?: boolean;
                };
            };
        };
        responses: {
            /** @description the sandbox as it is now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sandbox"] & {
                        /** @description why it is not in the tier that was asked for */
                        fallback_reason?: string | null;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    resumeSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description seconds from now until its deadline; without it the old deadline stays, or, where that is over, it has the time of its create */
                    timeout?: number;
                };
            };
        };
        responses: {
            200: components["responses"]["Sandbox"];
            default: components["responses"]["Error"];
        };
    };
    createSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description unique in its tenant */
                    name?: string;
                    /**
                     * @description with its processes, or only its files
                     * @default true
                     */
                    memory?: boolean;
                };
            };
        };
        responses: {
            /** @description made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"] & {
                        /** @description how long the sandbox stood still */
                        frozen_ms?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    forkSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description how many copies
                     * @default 1
                     */
                    count?: number;
                    /** @description seconds until each copy's deadline; default: that of the sandbox */
                    timeout?: number;
                };
            };
        };
        responses: {
            /** @description one entry for each that was asked for */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        forks: {
                            sandbox: components["schemas"]["Sandbox"] | null;
                            error: {
                                code?: string;
                                message?: string;
                            } | null;
                        }[];
                    };
                };
            };
            /** @description `volume_in_use` for one that writes to a volume; `wrong_state` for one that does not run */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listSnapshots: {
        parameters: {
            query?: {
                /** @description made of this one */
                sandbox?: string;
                name?: string;
                limit?: number;
                /** @description next of the page before */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        snapshots: components["schemas"]["Snapshot"][];
                        /** @description cursor of the next page */
                        next: string | null;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id or name */
                snapshot: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the snapshot */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description id or name */
                snapshot: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listTemplates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a list */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description built ones */
                        templates: components["schemas"]["Template"][];
                        /** @description those of the host, by name */
                        installed: string[];
                        /** @description of a create that names none */
                        default: string;
                        /** @description the most bytes of one upload for builds, of the setting build_upload */
                        upload_bytes: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description name or id */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the template */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description name or id */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    publishTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description name or id */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description every tenant may use it */
                    public: boolean;
                };
            };
        };
        responses: {
            /** @description the template */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    tagTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description the tag of the build
                     * @default default
                     */
                    from?: string;
                    /** @description tags that the build gets */
                    tags: string[];
                };
            };
        };
        responses: {
            /** @description the template */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Template"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    untagTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                tag: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listBuilds: {
        parameters: {
            query?: {
                /** @description of this template only */
                template?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a list */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        builds: components["schemas"]["Build"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createBuild: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateBuild"];
            };
        };
        responses: {
            /** @description the build */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Build"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getBuildFiles: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the tenant's own name for the files */
                hash: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description they are */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        present: boolean;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    putBuildFiles: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the tenant's own name for the files */
                hash: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description how much came */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        bytes?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getBuild: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                build: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the build */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Build"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    cancelBuild: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                build: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description it ends soon */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getBuildLogs: {
        parameters: {
            query?: {
                /** @description false: what there is now */
                follow?: boolean;
            };
            header?: never;
            path: {
                build: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description events `line` (time, level, step, text), `ping`, and at last `end` with the build */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/event-stream": string;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    sandboxStats: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description figures */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cpu_ms?: number;
                        memory_bytes?: number;
                        memory_peak_bytes?: number;
                        memory_limit_bytes?: number;
                        oom_kills?: number;
                        processes?: number;
                        disk_bytes?: number;
                        disk_inodes?: number;
                        disk_limit_bytes?: number;
                        /** @description below its disk */
                        layer_bytes?: number;
                        uptime_ms?: number;
                        /** @description system calls that its filter refused */
                        refused_calls?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description rules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Network"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    putNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NetworkRules"];
            };
        };
        responses: {
            /** @description rules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Network"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    allowNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description a host or an address that it may reach
                     * @example api.example.com
                     * @example 10.0.0.5:5432
                     */
                    rule: string;
                };
            };
        };
        responses: {
            /** @description rules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Network"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listNetworkEvents: {
        parameters: {
            query?: {
                /** @description the seq of the last event that was seen */
                after?: number;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description up to 200 events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        events?: components["schemas"]["NetworkEvent"][];
                        next?: number | null;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getPreview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description rules and token */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewState"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setPreview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Preview"];
            };
        };
        responses: {
            /** @description as it is now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewState"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    rollPreview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description with the new token */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewState"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    linkPort: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description how long the link can be used
                     * @default 3600
                     */
                    expires_seconds?: number;
                };
            };
        };
        responses: {
            /** @description the link */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uri */
                        url: string;
                        /** @description what the url has as cove_token */
                        token: string;
                        port: number;
                        /** Format: date-time */
                        expires_at: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listVolumes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description volumes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        volumes?: components["schemas"]["Volume"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createVolume: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description unique in the tenant */
                    name: string;
                    /**
                     * @description what it can hold, its file system included; rounded up to whole MiB, at least 16
                     * @default 1g
                     */
                    size?: number | string;
                    /** @description files that it can hold; default: one per 16 KiB, at most one per 8 KiB */
                    inodes?: number;
                };
            };
        };
        responses: {
            /** @description the volume */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volume"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description its name or id */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the volume */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Volume"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    removeVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description its name or id */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listPrivateNetworks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description networks by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        networks?: components["schemas"]["PrivateNetwork"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createPrivateNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description unique in the tenant; a part of its members' names */
                    name: string;
                };
            };
        };
        responses: {
            /** @description it was there */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrivateNetwork"];
                };
            };
            /** @description made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrivateNetwork"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getPrivateNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the network */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrivateNetwork"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deletePrivateNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    joinPrivateNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Membership"];
            };
        };
        responses: {
            /** @description the member */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrivateMember"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    leavePrivateNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description out */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getDefaultNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["DefaultNetwork"];
            default: components["responses"]["Error"];
        };
    };
    setDefaultNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NetworkRules"];
            };
        };
        responses: {
            200: components["responses"]["DefaultNetwork"];
            default: components["responses"]["Error"];
        };
    };
    deleteDefaultNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["DefaultNetwork"];
            default: components["responses"]["Error"];
        };
    };
    listSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        secrets?: components["schemas"]["Secret"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    putSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description one line; never returned */
                    value: string;
                    /**
                     * @description where requests may carry it; docs/secrets.md
                     * @example [
                     *       "api.example.com",
                     *       "*.example.org:443",
                     *       "http://plain.example.com"
                     *     ]
                     */
                    hosts: string[];
                };
            };
        };
        responses: {
            /** @description kept */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listRefusals: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description refusals */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        refusals?: {
                            call?: string;
                            program?: string;
                            pid?: number;
                            count?: number;
                        }[];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listPorts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ports */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ports?: {
                            port?: number;
                            address?: string;
                            program?: string;
                        }[];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    relayGet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
                /** @description any number of segments */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            502: components["responses"]["Error"];
            /** @description what the server inside answers */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    relayPut: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
                /** @description any number of segments */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            502: components["responses"]["Error"];
            /** @description what the server inside answers */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    relayPost: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
                /** @description any number of segments */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            502: components["responses"]["Error"];
            /** @description what the server inside answers */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    relayDelete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
                /** @description any number of segments */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            502: components["responses"]["Error"];
            /** @description what the server inside answers */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    relayPatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
                /** @description any number of segments */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            502: components["responses"]["Error"];
            /** @description what the server inside answers */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    exec: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Exec"];
            };
        };
        responses: {
            /** @description it ended, in whatever way */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExecResult"];
                    "application/x-ndjson": components["schemas"]["Event"];
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listProcesses: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description processes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        processes?: components["schemas"]["Process"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    startProcess: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StartProcess"];
            };
        };
        responses: {
            /** @description it runs */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        proc?: number;
                        pid?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getProcess: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the process */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Process"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    attachProcess: {
        parameters: {
            query?: {
                /** @description first byte of stdout */
                from?: number;
                /** @description first byte of stderr */
                from_stderr?: number;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["Event"];
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    writeStdin: {
        parameters: {
            query?: {
                /** @description close stdin behind them */
                end?: boolean;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description taken */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        bytes?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    signalProcess: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                proc: components["parameters"]["proc"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description a number, or a name such as TERM */
                    signal: number | string;
                    /**
                     * @description also to every process that it started
                     * @default false
                     */
                    all?: boolean;
                };
            };
        };
        responses: {
            /** @description sent */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        reached?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    tunnel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
                port: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description switching to WebSocket */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            502: components["responses"]["Error"];
            default: components["responses"]["Error"];
        };
    };
    terminal: {
        parameters: {
            query?: {
                /** @description instead of the user's shell */
                command?: string;
                cwd?: string;
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                rows?: number;
                columns?: number;
                /** @description attach to this one */
                proc?: number;
                /** @description first byte wanted */
                from?: number;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description switching to WebSocket */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    readFile: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description all of it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            /** @description the range */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            /** @description not modified */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            416: components["responses"]["Error"];
            default: components["responses"]["Error"];
        };
    };
    writeFile: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                /** @description octal */
                mode?: string;
                append?: boolean;
                /** @description refuse if it exists */
                create?: boolean;
                /** @description make missing directories */
                parents?: boolean;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "*/*": string;
            };
        };
        responses: {
            200: components["responses"]["Entry"];
            default: components["responses"]["Error"];
        };
    };
    removeFile: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                recursive?: boolean;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description removed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        removed?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    readTar: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                gzip?: boolean;
                /** @description leave out what may not be read instead of cutting the answer */
                skip_unreadable?: boolean;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the archive */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-tar": string;
                    "application/gzip": string;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    writeTar: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                /** @description make the directory if it is missing */
                parents?: boolean;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/x-tar": string;
            };
        };
        responses: {
            /** @description unpacked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        entries?: number;
                        bytes?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    statFile: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                /** @description false: of a link itself */
                follow?: boolean;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Entry"];
            default: components["responses"]["Error"];
        };
    };
    listFiles: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                depth?: number;
                limit?: components["parameters"]["limit"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Entries"];
            default: components["responses"]["Error"];
        };
    };
    globFiles: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                pattern: string;
                hidden?: boolean;
                limit?: components["parameters"]["limit"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Entries"];
            default: components["responses"]["Error"];
        };
    };
    searchFiles: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                /** @description regular expression */
                pattern: string;
                /** @description glob that file names must match */
                include?: string;
                /** @description pattern is plain text */
                fixed?: boolean;
                ignore_case?: boolean;
                files_only?: boolean;
                hidden?: boolean;
                /** @description lines of context */
                before?: number;
                /** @description lines of context */
                after?: number;
                limit?: components["parameters"]["limit"];
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description matches */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        matches?: {
                            path?: string;
                            line?: number;
                            column?: number;
                            text?: string;
                            context?: boolean;
                            binary?: boolean;
                        }[];
                        truncated?: boolean;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    watchFiles: {
        parameters: {
            query: {
                /** @description absolute, or relative to the user's home */
                path: components["parameters"]["path"];
                /** @description whose rights; the template's user without it */
                user?: components["parameters"]["user"];
                recursive?: boolean;
            };
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description events of type start, create, write, remove, rename, chmod, overflow, ping, error */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["Change"];
                    "text/event-stream": components["schemas"]["Change"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    signFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description absolute, or relative to the user's home */
                    path: string;
                    /**
                     * @description what the URL is for
                     * @enum {string}
                     */
                    operation: "read" | "write";
                    /**
                     * @description seconds
                     * @default 3600
                     */
                    expires_in?: number;
                    /** @description whose rights; default: the template's user */
                    user?: string;
                };
            };
        };
        responses: {
            /** @description signed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uri */
                        url: string;
                        /** Format: date-time */
                        expires_at: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    makeDirectory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description absolute, or relative to the user's home */
                    path: string;
                    /** @description whose rights; default: the template's user */
                    user?: string;
                    /**
                     * @description octal permission bits
                     * @example 755
                     */
                    mode?: string;
                    /**
                     * @description missing directories above it are made
                     * @default true
                     */
                    parents?: boolean;
                };
            };
        };
        responses: {
            200: components["responses"]["Existed"];
            201: components["responses"]["Existed"];
            default: components["responses"]["Error"];
        };
    };
    moveFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description absolute, or relative to the user's home */
                    path: string;
                    /** @description the new path */
                    to: string;
                    /** @description whose rights; default: the template's user */
                    user?: string;
                    /**
                     * @description missing directories above it are made
                     * @default true
                     */
                    parents?: boolean;
                };
            };
        };
        responses: {
            /** @description moved */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    chmodFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id, the name, or the beginning of the id (5 characters or more) */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description absolute, or relative to the user's home */
                    path: string;
                    /**
                     * @description octal permission bits
                     * @example 755
                     */
                    mode: string;
                    /** @description whose rights; default: the template's user */
                    user?: string;
                    /**
                     * @description also everything below it
                     * @default false
                     */
                    recursive?: boolean;
                };
            };
        };
        responses: {
            /** @description set */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listPools: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description pools, and the rules that were set */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        pools?: components["schemas"]["Pool"][];
                        rules?: components["schemas"]["PoolRule"][];
                        /** @description of those that wait */
                        memory_bytes?: number;
                        memory_limit_bytes?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    drainPools: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description how many were ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    setPool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description a name, or * for every other */
                template: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetPool"];
            };
        };
        responses: {
            /** @description the rule */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoolRule"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    unsetPool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description a name, or * for every other */
                template: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listTenants: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        tenants?: components["schemas"]["Tenant"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    addTenant: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AddTenant"];
            };
        };
        responses: {
            /** @description the tenant */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the tenant */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    removeTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description gone */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    changeTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                tenant: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeTenant"];
            };
        };
        responses: {
            /** @description the tenant */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description of this tenant only */
                tenant?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys?: components["schemas"]["Key"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateKey"];
            };
        };
        responses: {
            /** @description the key; `key` is shown this once */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description its public id */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description revoked */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listAuditChain: {
        parameters: {
            query?: {
                /** @description of this tenant only */
                tenant?: string;
                /** @description of this sandbox only: an id, or the name of one of the tenant; else of the operator's own */
                sandbox?: string;
                /** @description whole, or a kind with its dot: exec. */
                action?: string;
                /** @description ok, or the code of an error */
                outcome?: string;
                /** @description not older; milliseconds since 1970 */
                since_ms?: number;
                /** @description older than this */
                until_ms?: number;
                /** @description in the order of the chain */
                oldest_first?: boolean;
                /** @description 1 to 1000; 100 without it */
                limit?: number;
                /** @description next of the page before */
                cursor?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a page; `next` is the cursor of the next one */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        records?: components["schemas"]["ChainRecord"][];
                        next?: number | null;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    verifyAudit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VerifyAudit"];
            };
        };
        responses: {
            /** @description what was found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditChain"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    pruneAudit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PruneAudit"];
            };
        };
        responses: {
            /** @description how many went */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        removed?: number;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listHostTemplates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description also those that are not installed any more, and have a memory image */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        templates?: components["schemas"]["HostTemplate"][];
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getHostTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the template's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the template */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostTemplate"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    registerHostTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the template's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterHostTemplate"];
            };
        };
        responses: {
            /** @description whether a memory image was removed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostTemplateCooled"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    forgetHostTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the template's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description whether a memory image was removed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostTemplateCooled"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    changeHostTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the template's name */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeHostTemplate"];
            };
        };
        responses: {
            /** @description the template */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostTemplate"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    collectGarbage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CollectGarbage"];
            };
        };
        responses: {
            /** @description an event `item` for each thing as it goes, then `end` with how many things were looked at, or `error` */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["GarbageItem"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    copyStore: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the name of the file */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        file?: string;
                    };
                };
            };
            default: components["responses"]["Error"];
        };
    };
    analyzeCommand: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyQuestion"];
            };
        };
        responses: {
            /** @description the verdict */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyReport"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listViolations: {
        parameters: {
            query?: {
                risk?: "low" | "medium" | "high" | "critical";
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description newest first, and counts since the start */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyViolations"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    executeTool: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolCall"];
            };
        };
        responses: {
            /** @description what the tool answers; as events, the last of which is `end` with all of it, with an Accept of application/x-ndjson or text/event-stream */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolAnswer"];
                    "application/x-ndjson": components["schemas"]["Event"];
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    toolBash: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolBash"];
            };
        };
        responses: {
            /** @description how it ended, and its output; as events with an Accept of application/x-ndjson or text/event-stream */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolAnswer"];
                    "application/x-ndjson": components["schemas"]["Event"];
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    toolRead: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolRead"];
            };
        };
        responses: {
            /** @description the content */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolAnswer"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    toolWrite: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolWrite"];
            };
        };
        responses: {
            /** @description written */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolAnswer"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    toolSearch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolGrep"];
            };
        };
        responses: {
            /** @description matches */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolAnswer"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    toolSandboxGet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the default sandbox */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolSandbox"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    toolSandboxMake: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolSandboxMake"];
            };
        };
        responses: {
            /** @description made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolSandbox"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    toolSandboxEnd: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolSandboxEnded"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listTools: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description names, what they do, and their arguments */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolList"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listPresets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolPresets"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listAudit: {
        parameters: {
            query?: {
                limit?: number;
                /** @description next of the page before */
                after?: number;
                action?: string;
                sandbox_id?: string;
                outcome?: string;
                /** @description since 1970 */
                since_ms?: number;
                /** @description since 1970 */
                until_ms?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getStats: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description figures */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description metrics */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description healthy */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description something that it stands on is down */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    getRoot: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description status, or a page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Root"];
                    "text/html": string;
                };
            };
        };
    };
    getDocs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    getOpenapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description YAML */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/yaml": string;
                };
            };
        };
    };
}
