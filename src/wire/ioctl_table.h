/* ioctl_table.h - which ioctl commands a sandbox may use: one row each.
 *
 * An ioctl is a door behind a door: whatever driver a descriptor belongs to takes commands of its own. What has no row
 * answers ENOTTY, as a file does that does not know the command, so that programs continue as on another file system. REFUSED
 * ones are known to be dangerous; they answer EPERM, and are counted and reported.
 *
 * Rows are by number: the headers of some hosts lack some. All commands on descriptors that a sandbox can have were looked at:
 * terminals, files on ext4, overlay and tmpfs, sockets, pipes, notification and random devices. Left out are: line disciplines, consoles,
 * serial lines, changes of network interfaces, ext4's own (resize, move extents, shut down), trimming, freezing, encryption and
 * verity of files, deduplication, namespaces by pidfd and by nsfs, parameters of epoll and timers.
 *
 * Included more than once, with IOCTL and IOCTL_REFUSED defined by the includer. */
#ifndef COVE_WIRE_IOCTL_TABLE_H
#define COVE_WIRE_IOCTL_TABLE_H

/* clang-format off */
#define SECCOMP_IOCTLS \
    /* what runtimes ask of every descriptor */ \
    IOCTL("TCGETS", 0x5401) IOCTL("FIONREAD", 0x541b) IOCTL("FIONBIO", 0x5421) IOCTL("FIOCLEX", 0x5451) \
    IOCTL("FIONCLEX", 0x5450) IOCTL("FIOASYNC", 0x5452) IOCTL("FIOQSIZE", 0x5460) IOCTL("TIOCOUTQ", 0x5411) \
    /* terminals: shells, editors, tmux, ssh, pagers */ \
    IOCTL("TCSETS", 0x5402) IOCTL("TCSETSW", 0x5403) IOCTL("TCSETSF", 0x5404) IOCTL("TCGETA", 0x5405) \
    IOCTL("TCSETA", 0x5406) IOCTL("TCSETAW", 0x5407) IOCTL("TCSETAF", 0x5408) IOCTL("TCGETS2", 0x802c542a) \
    IOCTL("TCSETS2", 0x402c542b) IOCTL("TCSETSW2", 0x402c542c) IOCTL("TCSETSF2", 0x402c542d) \
    IOCTL("TIOCGWINSZ", 0x5413) IOCTL("TIOCSWINSZ", 0x5414) IOCTL("TIOCGPGRP", 0x540f) IOCTL("TIOCSPGRP", 0x5410) \
    IOCTL("TIOCGSID", 0x5429) IOCTL("TIOCSCTTY", 0x540e) IOCTL("TIOCNOTTY", 0x5422) IOCTL("TIOCEXCL", 0x540c) \
    IOCTL("TIOCNXCL", 0x540d) IOCTL("TIOCGEXCL", 0x80045440) IOCTL("TCSBRK", 0x5409) IOCTL("TCSBRKP", 0x5425) \
    IOCTL("TIOCSBRK", 0x5427) IOCTL("TIOCCBRK", 0x5428) IOCTL("TCXONC", 0x540a) IOCTL("TCFLSH", 0x540b) \
    IOCTL("TIOCGETD", 0x5424) IOCTL("TIOCGDEV", 0x80045432) \
    /* … and their other ends: screen, script, expect, debuggers */ \
    IOCTL("TIOCGPTN", 0x80045430) IOCTL("TIOCSPTLCK", 0x40045431) IOCTL("TIOCGPTLCK", 0x80045439) \
    IOCTL("TIOCGPTPEER", 0x5441) IOCTL("TIOCPKT", 0x5420) IOCTL("TIOCGPKT", 0x80045438) IOCTL("TIOCSIG", 0x40045436) \
    /* files: cp and its kin share and map blocks, chattr and lsattr flags */ \
    IOCTL("FICLONE", 0x40049409) IOCTL("FICLONERANGE", 0x4020940d) IOCTL("FIEMAP", 0xc020660b) IOCTL("FIGETBSZ", 2) \
    IOCTL("FS_IOC_GETFLAGS", 0x80086601) IOCTL("FS_IOC_SETFLAGS", 0x40086602) IOCTL("FS_IOC_FSGETXATTR", 0x801c581f) \
    IOCTL("FS_IOC_FSSETXATTR", 0x401c5820) \
    /* sockets: owners, marks, times, what waits */ \
    IOCTL("FIOSETOWN", 0x8901) IOCTL("SIOCSPGRP", 0x8902) IOCTL("FIOGETOWN", 0x8903) IOCTL("SIOCGPGRP", 0x8904) \
    IOCTL("SIOCATMARK", 0x8905) IOCTL("SIOCGSTAMP", 0x8906) IOCTL("SIOCGSTAMPNS", 0x8907) \
    IOCTL("SIOCGSTAMP_NEW", 0x80108906) IOCTL("SIOCGSTAMPNS_NEW", 0x80108907) IOCTL("SIOCOUTQNSD", 0x894b) \
    /* interfaces, to look at: runtimes and monitors list them */ \
    IOCTL("SIOCGIFNAME", 0x8910) IOCTL("SIOCGIFCONF", 0x8912) IOCTL("SIOCGIFFLAGS", 0x8913) IOCTL("SIOCGIFADDR", 0x8915) \
    IOCTL("SIOCGIFDSTADDR", 0x8917) IOCTL("SIOCGIFBRDADDR", 0x8919) IOCTL("SIOCGIFNETMASK", 0x891b) \
    IOCTL("SIOCGIFMETRIC", 0x891d) IOCTL("SIOCGIFMTU", 0x8921) IOCTL("SIOCGIFHWADDR", 0x8927) IOCTL("SIOCGIFINDEX", 0x8933) \
    IOCTL("SIOCGIFCOUNT", 0x8938) IOCTL("SIOCGIFTXQLEN", 0x8942) IOCTL("SIOCETHTOOL", 0x8946) IOCTL("SIOCGIFMAP", 0x8970) \
    /* how much randomness there is */ \
    IOCTL("RNDGETENTCNT", 0x80045200) \
    /* the agent's listener; no command can have one */ \
    IOCTL("SECCOMP_IOCTL_NOTIF_RECV", 0xc0502100) IOCTL("SECCOMP_IOCTL_NOTIF_SEND", 0xc0182101) \
    IOCTL("SECCOMP_IOCTL_NOTIF_ID_VALID", 0x40082102)

#define SECCOMP_IOCTLS_REFUSED \
    IOCTL_REFUSED("TIOCSTI", 0x5412)   /* types into a terminal */ \
    IOCTL_REFUSED("TIOCLINUX", 0x541c) /* pastes into a console */ \
    IOCTL_REFUSED("TIOCCONS", 0x541d)  /* takes the console's output */ \
    IOCTL_REFUSED("TIOCSETD", 0x5423)  /* line disciplines: n_gsm, n_hdlc, slip and their races */
/* clang-format on */

#endif
