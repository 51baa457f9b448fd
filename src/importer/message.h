/* message.h - what cove-import and its parent say to each other, over a pair of SOCK_SEQPACKET sockets; pure.
 *
 *   o NAME           open a file of the image: index.json, blobs/sha256/<hex>, or "" for an archive as a whole. The answer is
 *                    "+" with a descriptor, or a sentence
 *   c                the file that was given is whole, and what follows goes over it: another one is needed. The answer is as that
 *                    of 'o'
 *   k KEY            64 hex digits that stand for all that comes of this import: known early, so that the parent can stop it
 *   p PERCENT        how far it is
 *   n TEXT           worth saying
 *   m KEY=VALUE      a line of the template's manifest; its digest comes before the key
 *   e KIND TEXT      why it failed; the last message
 *   d                done; the image is whole; the last message
 *
 * The parent takes nothing on trust: cove-import has read hostile files. */
#ifndef COVE_IMPORTER_MESSAGE_H
#define COVE_IMPORTER_MESSAGE_H

#define IMPORT_MESSAGE_MAX 20000

#define IMPORT_SOCKET 3 /* descriptors of cove-import */
#define IMPORT_IMAGE  4 /* the first file, or the only one */
#define IMPORT_TOOLS  5 /* a tar of what cove adds to every image */

#define IMPORT_INDEX "index.json"
#define IMPORT_BLOBS "blobs/sha256/"

#endif
