/** Compression of replies, as far as the client accepts it. */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Smaller replies are sent as they are: head and reply fit into one packet. */
const LEAST_BYTES = 1_024
/** Of eleven; from here on it takes more time than it saves. */
const BROTLI_QUALITY = 5

const toGzip = promisify(gzip)
const toBrotli = promisify(brotliCompress)

/** What a reply may be compressed with. */
export type Encoding = 'br' | 'gzip'

/** Whether an `accept-encoding` header allows the encoding. */
export function accepts(name: Encoding, header: string | undefined): boolean {
  return (header ?? '').split(',').some((part) => {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    return coding === name && !parameters.some((text) => /^q=0(?:\.0{0,3})?$/.test(text))
  })
}

/** The better one of the encodings that the header allows; null if it allows none. */
export function encodingFor(header: string | undefined): Encoding | null {
  if (accepts('br', header)) return 'br'
  return accepts('gzip', header) ? 'gzip' : null
}

/** A body as it is sent. */
export interface Compressed {
  readonly body: string | Buffer
  /** Null: as it is. */
  readonly encoding: Encoding | null
}

/** Compresses a text in the thread pool; a short one stays as it is. */
export async function compressed(text: string, header: string | undefined): Promise<Compressed> {
  const encoding = Buffer.byteLength(text) < LEAST_BYTES ? null : encodingFor(header)
  switch (encoding) {
    case null:
      return { body: text, encoding }
    case 'gzip':
      return { body: await toGzip(text), encoding }
    case 'br': {
      const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY }
      return { body: await toBrotli(text, { params }), encoding }
    }
  }
}
