/**
 * Compressed request bodies: which codings are taken, and the stream that decodes each. Output is produced piece by
 * piece off the main thread, so that whoever reads the stream can stop a body that grows too large.
 */
import type { Duplex } from 'node:stream'
import * as zlib from 'node:zlib'
import { GatewayError } from '../../errors.js'
import { headerOf, type HttpRequest } from '../message.js'
import { ZSTD_MAX_WINDOW_LOG } from './zstd-frames.js'
import { ZstdDecoder } from './zstd-decoder.js'

/** What a request's `content-encoding` may be, besides `identity`. */
export const CODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const

/** A content coding. */
export type Coding = (typeof CODINGS)[number]

/** Bytes of each piece of output. */
const PIECE_BYTES = 64 * 1024

/** The coding of the body; null for none. Throws `unsupported_media_type` for others, several among them. */
export function codingOf(req: HttpRequest): Coding | null {
  const value = headerOf(req, 'content-encoding')
  if (value === undefined) return null
  const name = value.trim().toLowerCase()
  if (name === 'identity' || name === '') return null
  const coding = CODINGS.find((each) => each === (name === 'x-gzip' ? 'gzip' : name))
  if (coding !== undefined) return coding
  throw new GatewayError(
    'unsupported_media_type',
    `The content-encoding of the body must be one of ${CODINGS.join(', ')}, or left out.`,
    { param: 'content-encoding' },
  )
}

/**
 * A stream from the coded bytes to the body. It fails with any `Error` if the bytes are damaged or cut off. A body of
 * more than `maxBytes` need not be decoded to its end.
 */
export function decoderFor(coding: Coding, maxBytes: number): Duplex {
  const options = { chunkSize: PIECE_BYTES }
  switch (coding) {
    case 'gzip':
      return zlib.createGunzip(options)
    case 'deflate':
      return zlib.createInflate(options)
    case 'br':
      return zlib.createBrotliDecompress(options)
    case 'zstd':
      return zstdDecoder(PIECE_BYTES, maxBytes)
    default:
      return coding satisfies never
  }
}

/** The part of `node:zlib` that Node 20 does not have. */
interface ZstdOfNode {
  readonly createZstdDecompress: (options: {
    readonly chunkSize: number
    readonly params: Readonly<Record<number, number>>
  }) => Duplex
  readonly constants: { readonly ZSTD_d_windowLogMax: number }
}

function hasZstd(module: object): module is ZstdOfNode {
  return 'createZstdDecompress' in module
}

function zstdDecoder(chunkSize: number, maxBytes: number): Duplex {
  const module: object = zlib
  if (!hasZstd(module)) return new ZstdDecoder(maxBytes)
  const params = { [module.constants.ZSTD_d_windowLogMax]: ZSTD_MAX_WINDOW_LOG }
  return module.createZstdDecompress({ chunkSize, params })
}
