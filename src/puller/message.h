/* message.h - what cove-pull and its parent say to each other, over a pair of SOCK_SEQPACKET sockets; pure.
 *
 *   parent        struct pull_order (wire/pull.h), with a descriptor of an empty file
 *   cove-pull     d DIGEST          the manifest of that digest is in the file
 *   parent        g HEX             with a descriptor of an empty file: the blob of that digest into it
 *   cove-pull     p BYTES SIZE      how far it is, any number of times
 *                 +                 it is there, and is what its digest says
 *
 * In place of each answer: e KIND TEXT, why it failed; then cove-pull ends.
 *
 * The parent takes nothing on trust: cove-pull has read what the network sent. */
#ifndef COVE_PULLER_MESSAGE_H
#define COVE_PULLER_MESSAGE_H

#define PULLER_MESSAGE_MAX 512

#define PULLER_SOCKET 3 /* descriptors of cove-pull */
#define PULLER_DIALER 4 /* the program cove-dial */

#endif
