/** Compresses replies with brotli or gzip if the client accepts it. */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Smaller replies are not compressed: head and body fit into one packet. */
const MIN_BYTES = 1_024
/** Quality 5 of 11: higher qualities cost more time than they save. */
const BROTLI_QUALITY = 5

const toGzip = promisify(gzip)
const toBrotli = promisify(brotliCompress)

/** The supported encodings. */
type Encoding = 'br' | 'gzip'

/** Whether an `accept-encoding` header allows the encoding. */
export function accepts(name: Encoding, header: string | undefined): boolean {
  return (header ?? '').split(',').some((part) => {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    return coding === name && !parameters.some((text) => /^q=0(?:\.0{0,3})?$/.test(text))
  })
}

/** The preferred encoding that the header allows (brotli before gzip); null if it allows none. */
export function encodingFor(header: string | undefined): Encoding | null {
  if (accepts('br', header)) return 'br'
  return accepts('gzip', header) ? 'gzip' : null
}

/** A reply's body, ready to send. */
interface Compressed {
  readonly body: string | Buffer
  /** Null: not compressed. */
  readonly encoding: Encoding | null
}

/** Compresses a text in the thread pool. A short text is returned uncompressed. */
export async function compressed(text: string, header: string | undefined): Promise<Compressed> {
  const encoding = Buffer.byteLength(text) < MIN_BYTES ? null : encodingFor(header)
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
