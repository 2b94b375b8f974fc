/**
 * Reads files that a user names: regular files only, and never more than a given number of bytes. A FIFO without a
 * writer, a device without an end and a file that grows meanwhile neither hang the process nor fill its memory.
 */
import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from 'node:fs'

/** The file's content. Throws an Error that says why it cannot be read; `code` as Node's, `EFBIG` if too large. */
export function readBoundedFile(path: string, maxBytes: number): Buffer {
  // Opening a FIFO waits for its writer otherwise.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stat = fstatSync(fd)
    if (stat.isDirectory()) throw failure('EISDIR', 'it is a folder')
    if (!stat.isFile()) throw failure('EINVAL', 'it is not a regular file')
    if (stat.size > maxBytes) throw tooLarge(maxBytes)
    return readAll(fd, stat.size + 1, maxBytes)
  } finally {
    closeSync(fd)
  }
}

/** Why a file could not be read, as the rest of a sentence that names it; `limit` is the most that it may hold. */
export function whyUnreadable(path: string, limit: string): string {
  if (!existsSync(path)) return 'does not exist'
  return `cannot be read, is no regular file, or is larger than ${limit}`
}

/** The files of `/proc` have no size, and any file may grow: what is read is counted. */
function readAll(fd: number, chunkBytes: number, maxBytes: number): Buffer {
  const chunks: Buffer[] = []
  let total = 0
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunks.length === 0 ? chunkBytes : MORE_BYTES)
    const bytesRead = readSync(fd, chunk)
    if (bytesRead === 0) return Buffer.concat(chunks, total)
    total += bytesRead
    if (total > maxBytes) throw tooLarge(maxBytes)
    chunks.push(chunk.subarray(0, bytesRead))
  }
}

const MORE_BYTES = 65_536

function tooLarge(maxBytes: number): Error {
  return failure('EFBIG', `it is larger than ${String(maxBytes)} bytes`)
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
