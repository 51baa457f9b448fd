#include "template/template_files.h"

#include "base/hash.h"
#include "base/own.h"
#include "template/tree.h"

#include <string.h>
#include <sys/types.h>

static const char etc_passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                                 "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                                 "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
                                 "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
                                 "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
                                 "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
                                 "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
                                 "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
                                 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
                                 "user:x:1000:1000:user:/home/user:/bin/bash\n";

static const char etc_group[] = "root:x:0:\n"
                                "daemon:x:1:\n"
                                "bin:x:2:\n"
                                "sys:x:3:\n"
                                "adm:x:4:\n"
                                "tty:x:5:\n"
                                "disk:x:6:\n"
                                "mail:x:8:\n"
                                "man:x:12:\n"
                                "sudo:x:27:user\n"
                                "www-data:x:33:\n"
                                "shadow:x:42:\n"
                                "utmp:x:43:\n"
                                "staff:x:50:\n"
                                "users:x:100:\n"
                                "user:x:1000:\n"
                                "nogroup:x:65534:\n";

/* The sandbox's own name is in /etc/hosts only as localhost's neighbour: it changes with every
 * sandbox, and 127.0.1.1 for "sandbox" gives programs that look themselves up an answer. */
static const char etc_hosts[] = "127.0.0.1\tlocalhost\n"
                                "127.0.1.1\tsandbox\n"
                                "::1\tlocalhost ip6-localhost ip6-loopback\n";

/* Nothing listens there while a sandbox has no network, so look-ups fail at once, not by timeout. */
static const char etc_resolv[] =
    "# cove: names are answered as the network policy of this sandbox says. With the mode\n"
    "# 'off', the default, none is: there is no network.\n"
    "nameserver 192.0.2.1\n"
    "options timeout:2 attempts:2\n";

/* For su and its like: root may all, others have no passwords to show. */
static const char etc_pam[] = "auth sufficient pam_rootok.so\n"
                              "auth required pam_deny.so\n"
                              "account required pam_permit.so\n"
                              "password required pam_deny.so\n"
                              "session required pam_permit.so\n";

/* Without a network no name server can be asked ("unavailable"), and glibc would call that a temporary failure. The files
 * have the last word instead: the name does not exist, and programs do not ask again. */
static const char etc_nsswitch[] = "passwd: files\n"
                                   "group: files\n"
                                   "shadow: files\n"
                                   "gshadow: files\n"
                                   "hosts: files dns [UNAVAIL=continue TRYAGAIN=return "
                                   "NOTFOUND=return] files\n"
                                   "networks: files\n"
                                   "protocols: files\n"
                                   "services: files\n"
                                   "ethers: files\n"
                                   "rpc: files\n";

/* PATH comes with the environment of the sandbox and stays: sudo lives in /opt/cove/bin. */
static const char etc_profile[] =
    "# What login shells start with.\n"
    "case \":$PATH:\" in\n"
    "*:/opt/cove/bin:*) ;;\n"
    "*) PATH=/opt/cove/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ;;\n"
    "esac\n"
    "if [ -n \"$HOME\" ] && [ \"$HOME\" != / ]; then\n"
    "    case \":$PATH:\" in\n"
    "    *\":$HOME/.local/bin:\"*) ;;\n"
    "    *) PATH=$HOME/.local/bin:$PATH ;;\n"
    "    esac\n"
    "fi\n"
    "export PATH\n"
    "if [ \"${PS1-}\" ] && [ \"${BASH-}\" ] && [ \"$BASH\" != /bin/sh ] && [ -f /etc/bash.bashrc "
    "]; then\n"
    "    . /etc/bash.bashrc\n"
    "fi\n"
    "if [ -d /etc/profile.d ]; then\n"
    "    for i in /etc/profile.d/*.sh; do\n"
    "        if [ -r \"$i\" ]; then . \"$i\"; fi\n"
    "    done\n"
    "    unset i\n"
    "fi\n";

static const char etc_shells[] = "/bin/sh\n/usr/bin/sh\n/bin/bash\n/usr/bin/bash\n/bin/dash\n";

static const char home_profile[] = "# ~/.profile: login shells.\n"
                                   "if [ -n \"$BASH_VERSION\" ] && [ -f \"$HOME/.bashrc\" ]; then\n"
                                   "    . \"$HOME/.bashrc\"\n"
                                   "fi\n";

static const char home_bashrc[] =
    "# ~/.bashrc: interactive shells.\n"
    "case $- in *i*) ;; *) return ;; esac\n"
    "HISTCONTROL=ignoreboth\n"
    "shopt -s histappend checkwinsize\n"
    "PS1='\\[\\e[32m\\]\\u@\\h\\[\\e[0m\\]:\\[\\e[34m\\]\\w\\[\\e[0m\\]\\$ '\n"
    "alias ls='ls --color=auto' ll='ls -l' grep='grep --color=auto'\n";

/* Debian's pip refuses to install beside Debian's own packages. In a sandbox that is what people
 * want, and nothing is lost: the sandbox is theirs alone. pip takes every refusal for a bad moment and tries five times
 * more, for ten seconds; the first of them comes at once, and has to do. */
static const char etc_pip[] = "[global]\nbreak-system-packages = true\n"
                              "disable-pip-version-check = true\nretries = 1\n"
                              "root-user-action = ignore\n";

/* `npm install -g` without root; ~/.local/bin is in PATH. npm, too, asks again what was refused, but waits 70 seconds. Debian's
 * npm reads /etc/npmrc, others look below /usr, which may be the host's; all of them read the one at home. */
static const char npmrc[] =
    "prefix=${HOME}/.local\nupdate-notifier=false\nfund=false\naudit=false\n"
    "fetch-retry-mintimeout=100\nfetch-retry-maxtimeout=1000\n";

#define BOTH (FILES_HOST | FILES_TREE)
#define ALL  (BOTH | FILES_IMAGE)

static const struct file {
    const char *path;
    const char *text;
    mode_t mode;
    uid_t uid;
    uint32_t which;
} files[] = {
    /* clang-format off */
    { "etc/passwd",         etc_passwd,       0644, 0,            FILES_HOST },
    { "etc/group",          etc_group,        0644, 0,            FILES_HOST },
    { "etc/subuid",         "",               0644, 0,            FILES_HOST },
    { "etc/subgid",         "",               0644, 0,            FILES_HOST },
    { "etc/hosts",          etc_hosts,        0644, 0,            ALL },
    { "etc/hostname",       "sandbox\n",      0644, 0,            ALL },
    { "etc/resolv.conf",    etc_resolv,       0644, 0,            ALL },
    { "etc/nsswitch.conf",  etc_nsswitch,     0644, 0,            BOTH },
    { "etc/profile",        etc_profile,      0644, 0,            BOTH },
    { "etc/shells",         etc_shells,       0644, 0,            FILES_HOST },
    { "etc/pam.d/other",    etc_pam,          0644, 0,            FILES_HOST },
    { "etc/pip.conf",       etc_pip,          0644, 0,            BOTH },
    { "etc/npmrc",          npmrc,            0644, 0,            BOTH },
    { "etc/fstab",          "",               0644, 0,            BOTH },
    { "etc/machine-id",     "",               0444, 0,            ALL },
    { "home/user/.profile", home_profile,     0644, TEMPLATE_UID, BOTH },
    { "home/user/.bashrc",  home_bashrc,      0644, TEMPLATE_UID, BOTH },
    { "home/user/.npmrc",   npmrc,            0644, TEMPLATE_UID, BOTH },
    { "root/.npmrc",        npmrc,            0644, 0,            BOTH },
    { "root/.profile",      home_profile,     0644, 0,            BOTH },
    { "root/.bashrc",       home_bashrc,      0644, 0,            BOTH },
    /* clang-format on */
};

int template_files_put(int root_fd, uint32_t which, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const struct file *file = &files[i];

        if (!(file->which & which))
            continue;
        if (tree_remove(root_fd, file->path, err) < 0 ||
            tree_put(root_fd, file->path, file->text, strlen(file->text), file->mode, file->uid,
                     err) < 0)
            return -1;
    }
    return 0;
}

bool template_files_at(size_t i, uint32_t which, struct template_file *ret)
{
    for (size_t n = 0; n < ARRAY_LEN(files); n++)
        if ((files[n].which & which) && i-- == 0) {
            *ret = (struct template_file){ files[n].path, files[n].text, files[n].mode };
            return true;
        }
    return false;
}

uint64_t template_files_hash(uint64_t hash, uint32_t which)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (!(files[i].which & which))
            continue;
        hash = hash_text(hash_text(hash, files[i].path), files[i].text);
        hash = hash_bytes(hash, &files[i].mode, sizeof files[i].mode);
    }
    return hash;
}
