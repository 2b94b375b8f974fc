/**
 * Compressed request bodies: the supported codings, and the stream that decodes each. Decoding runs in chunks
 * off the main thread, so that the reader can stop a body that grows too large.
 */
import type { Duplex } from 'node:stream'
import * as zlib from 'node:zlib'
import { GatewayError } from '../../errors.js'
import { headerOf, type HttpRequest } from '../message.js'
import { ZSTD_MAX_WINDOW_LOG } from './zstd-frames.js'
import { ZstdDecoder } from './zstd-decoder.js'

/** Supported values of a request's `content-encoding`, besides `identity`. */
export const CODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const

/** A content coding. */
export type Coding = (typeof CODINGS)[number]

/** Bytes of each output chunk. */
const CHUNK_BYTES = 64 * 1024

/**
 * The coding of the body; null if it has none. Throws `unsupported_media_type` for other codings and for
 * several.
 */
export function codingOf(req: HttpRequest): Coding | null {
  const value = headerOf(req, 'content-encoding')
  if (value === undefined) return null
  const name = value.trim().toLowerCase()
  if (name === 'identity' || name === '') return null
  const coding = CODINGS.find((each) => each === (name === 'x-gzip' ? 'gzip' : name))
  if (coding !== undefined) return coding
  throw new GatewayError(
    'unsupported_media_type',
    `The content-encoding of the body must be one of ${CODINGS.join(', ')}, or absent.`,
    { param: 'content-encoding' },
  )
}

/**
 * A stream from the coded bytes to the body. It fails with an `Error` if the bytes are invalid or truncated.
 * Decoding may stop after `maxBytes`.
 */
export function decoderFor(coding: Coding, maxBytes: number): Duplex {
  const options = { chunkSize: CHUNK_BYTES }
  switch (coding) {
    case 'gzip':
      return zlib.createGunzip(options)
    case 'deflate':
      return zlib.createInflate(options)
    case 'br':
      return zlib.createBrotliDecompress(options)
    case 'zstd':
      return zstdDecoder(CHUNK_BYTES, maxBytes)
    default:
      return coding satisfies never
  }
}

/** The part of `node:zlib` that Node 20 lacks. */
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
