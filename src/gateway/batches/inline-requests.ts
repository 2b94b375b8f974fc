/** Reads the requests of a batch that are in the JSON body of the request itself, as it arrives. */
import { Pacer } from '../../base/pacer.js'
import { arrayOf, isObject, objectOf, type JsonObject } from '../../base/json.js'
import { GatewayError, malformed, bodyTooLarge } from '../../errors.js'
import { MemberScan } from '../../formats/wire/json/member-scan.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import { codingOf } from '../../http/content-encoding.js'
import { headerOf } from '../../http/message.js'
import type { StoredFile } from '../../policy/file-store.js'
import type { Exchange } from '../client-exchange.js'
import { chunksOf } from './body-chunks.js'
import type { Asking, LineForm } from './clients/client-form.js'

/** The members on the way to the requests in the body; one of the ways may be given. */
type ListPaths = readonly (readonly string[])[]

/** Bytes of the body beside its requests. */
const MAX_REST_BYTES = 65_536
const MAX_DAYS_KEPT_MS = 86_400_000
/** In the place of each request in the rest of the body. */
const PLACE = '{}'

/** The requests of a body, and the rest of it. */
interface InlineRequests {
  /** One request a line; the caller removes it. */
  readonly file: StoredFile
  /** The body with an empty object for each request. */
  readonly rest: JsonObject
}

/** Throws `unsupported_media_type` for a body that is no plain JSON. */
export function assertJson({ req }: Exchange): void {
  const isJson = /^application\/json\s*(?:;|$)/i.test(headerOf(req, 'content-type') ?? '')
  if (isJson && codingOf(req) === null) return
  const message = isJson
    ? 'The body of a batch must not be compressed.'
    : 'The content-type header must be application/json.'
  throw new GatewayError('unsupported_media_type', message)
}

/**
 * Writes the requests in the body to a file of the gateway while they arrive; memory is that of one request.
 * Rejects with `GatewayError`; then no file is left.
 */
export async function storeRequests(
  x: Exchange,
  { identity, files }: Asking,
  { paths, lines }: { readonly paths: ListPaths; readonly lines: LineForm },
): Promise<InlineRequests> {
  assertJson(x)
  const { maxBytes, maxLineBytes } = files.settings
  const length = Number(headerOf(x.req, 'content-length') ?? 0)
  if (length > maxBytes) throw bodyTooLarge(maxBytes, 'A batch')
  const expiresAtMs = Date.now() + MAX_DAYS_KEPT_MS
  const expectedBytes = length || maxBytes
  const of = { name: 'requests', purpose: 'work' as const, expiresAtMs, expectedBytes }
  const writer = await files.begin(identity, of)
  const split = new RequestSplit({ paths, maxLineBytes, lines })
  const pacer = new Pacer()
  let bytes = 0
  try {
    for await (const chunk of chunksOf(x)) {
      bytes += chunk.length
      if (bytes > maxBytes) throw bodyTooLarge(maxBytes, 'A batch')
      await pacer.pace()
      for (const line of split.write(chunk)) await writer.write(line)
    }
    const rest = split.end()
    x.cancellation.check()
    return { file: await writer.end(), rest }
  } catch (error) {
    await writer.abort().catch(() => undefined)
    throw error
  }
}

/** Splits a body into its requests and the rest. */
class RequestSplit {
  private readonly scan: MemberScan
  private readonly paths: ListPaths
  private readonly maxLineBytes: number
  private readonly lines: LineForm
  /** The requests that have ended in the present chunk, by their places in the body. */
  private ended: (readonly [from: number, to: number])[] = []
  /** What is read since the last request, and its place. */
  private tail: Buffer[] = []
  private tailBytes = 0
  private tailAt = 0
  private rest = ''
  private count = 0

  constructor({
    paths,
    maxLineBytes,
    lines,
  }: {
    readonly paths: ListPaths
    readonly maxLineBytes: number
    readonly lines: LineForm
  }) {
    this.paths = paths
    this.maxLineBytes = maxLineBytes
    this.lines = lines
    this.scan = new MemberScan({
      isLines: false,
      selects: () => false,
      found: () => undefined,
      item: (from, to) => void this.ended.push([from, to]),
      itemsIn: paths,
    })
  }

  /** The requests that end in the chunk, each with a line end. Throws `malformed_request`. */
  write(chunk: Buffer): Buffer[] {
    if (!this.scan.write(chunk)) throw malformed('The body is not valid JSON.')
    this.tail.push(chunk)
    this.tailBytes += chunk.length
    const { ended } = this
    this.ended = []
    const found = ended.length === 0 ? [] : this.take(ended)
    if (this.tailBytes > this.maxLineBytes + MAX_REST_BYTES) throw this.tooLong(this.count + 1)
    return found
  }

  /** The rest of the body. Throws `malformed_request`. */
  end(): JsonObject {
    if (!this.scan.end()) throw malformed('The body is not valid JSON.')
    this.addRest(Buffer.concat(this.tail))
    const { value } = parseObject(Buffer.from(this.rest))
    const { lines, count } = this
    const lists = this.paths.map((path) => path.reduce<unknown>((at, name) => objectOf(at)[name], value))
    const items = arrayOf(lists.find((list) => list !== undefined))
    const other = items.findIndex((item) => !isObject(item) || Object.keys(item).length > 0)
    if (other !== -1) throw malformed(`${lines.place(other + 1)}: must be an object`, lines.param)
    if (items.length !== count) throw malformed(`${lines.param} must occur once`, lines.param)
    return value
  }

  private take(ended: readonly (readonly [number, number])[]): Buffer[] {
    const bytes = Buffer.concat(this.tail, this.tailBytes)
    const found: Buffer[] = []
    let at = 0
    for (const [from, to] of ended) {
      const [begin, end] = [from - this.tailAt, to - this.tailAt]
      this.count += 1
      if (this.count > this.lines.maxLines) {
        throw malformed(`a batch has at most ${this.lines.maxLines} requests`, this.lines.param)
      }
      if (end - begin > this.maxLineBytes) throw this.tooLong(this.count)
      this.addRest(bytes.subarray(at, begin))
      this.rest += PLACE
      found.push(lineOf(bytes.subarray(begin, end)))
      at = end
    }
    this.tail = [Buffer.from(bytes.subarray(at))]
    this.tailBytes = bytes.length - at
    this.tailAt += at
    return found
  }

  private addRest(bytes: Buffer): void {
    const text = bytes.toString('utf8')
    this.rest += /^\s*,\s*$/.test(text) ? ',' : text
    if (this.rest.length <= MAX_REST_BYTES + this.count * (PLACE.length + 1)) return
    const message = `The body must not have more than ${MAX_REST_BYTES} bytes beside its requests.`
    throw new GatewayError('body_too_large', message)
  }

  private tooLong(number: number): GatewayError {
    const { lines, maxLineBytes } = this
    return malformed(`${lines.place(number)}: must not be longer than ${maxLineBytes} bytes`, lines.param)
  }
}

/** The request on one line: JSON has line ends only between its values. */
function lineOf(request: Buffer): Buffer {
  const line = Buffer.allocUnsafe(request.length + 1)
  request.copy(line)
  for (let at = 0; at < request.length; at += 1) {
    if (line[at] === 0x0a || line[at] === 0x0d) line[at] = 0x20
  }
  line[request.length] = 0x0a
  return line
}
