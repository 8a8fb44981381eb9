/* Zip archives as PyTorch writes and reads them (APPNOTE 6.3, zip64, stored and deflated).
 *
 * Only the central directory is believed; payloads are found through each local header.  Hostile
 * archives are refused: overlapping payloads, names that leave the archive, sizes past the file,
 * deflate bombs, duplicate names (also when they differ in ASCII case only, as PyTorch looks
 * records up without regard to it).  Entries for folders are left out. */
#ifndef P2O_FORMAT_ZIP_H
#define P2O_FORMAT_ZIP_H

#include "base/io.h"

typedef struct ZipEntry {
    Str      name;                      /* UTF-8 without control characters; no NUL at its end */
    uint64_t offset;                    /* of the payload, in the Source */
    uint64_t csize, usize;
    uint32_t crc;                       /* 0: not recorded */
    bool     deflated;
} ZipEntry;

typedef struct Zip {
    Source   *source;
    ZipEntry *entries;                  /* in directory order */
    size_t    n;
    Map       index;                    /* name -> ZipEntry * */
} Zip;

/* Bytes [offset, offset + size) of the source are an archive.  NULL after a diagnostic. */
Zip *p2o_zip_open(Diags *d, Source *s, uint64_t offset, uint64_t size);

const ZipEntry *p2o_zip_find(const Zip *z, Str name);           /* NULL: none */

/* The payload: in place when stored, inflated into the arena else, CRC checked when recorded.
 * false after a diagnostic. */
bool p2o_zip_read(Diags *d, const Zip *z, const ZipEntry *e, Str *out);

/* CRC-32 of bytes [offset, offset + n) of a source, read in pieces; false when unreadable. */
bool p2o_zip_crc(Source *s, uint64_t offset, uint64_t n, uint32_t *crc);

#endif
