/** Reads the lines of a batch: those of the client's file, and the checked ones in the gateway's own. */
import { hash } from 'node:crypto'
import { isObject, numberOf, objectOf, stringOf } from '../../base/json.js'
import { GatewayError, malformed } from '../../errors.js'
import { parseObject, type ParsedObject } from '../../formats/wire/json/parse-body.js'
import type { FileStore, StoredFile } from '../../policy/file-store.js'

/** OpenAI's own maximum. */
const MAX_LINES = 50_000
const MAX_ID_CHARS = 512
/** Longer ids are compared by their hash, so that memory does not depend on them. */
const MAX_COMPARED_CHARS = 32
/** Blank lines included. */
const MAX_READ_LINES = 2 * MAX_LINES

/** A line that is valid as such. */
export interface BatchLine {
  /** Its number in the client's file, from 1. */
  readonly number: number
  /** `custom_id` */
  readonly id: string
  /** The bytes of the request's body. */
  readonly body: Buffer
  readonly model: string
}

/** A line as the gateway keeps it until the batch ends. */
export interface PlannedLine {
  readonly number: number
  readonly id: string
  /** The body of the client's request. */
  readonly body: string
  /** The request for the upstream; absent if the line is sent as a request of its own, or not at all. */
  readonly request?: string
  /** Why it is not sent, as a reply to a client; absent if it is. */
  readonly refused?: { readonly status: number; readonly body: string }
  /** The number of its part, from 0. */
  readonly part?: number
  /** What it may use at most. */
  readonly most?: { readonly input: number; readonly output: number; readonly nanoUsd: number | null }
}

/**
 * The lines of a client's file. Rejects with `malformed_request`, which names the line, at the first one that
 * is not valid.
 */
export async function* linesOf(
  files: FileStore,
  input: StoredFile,
  endpoint: string,
): AsyncIterable<BatchLine> {
  const seen = new Map<string, number>()
  let number = 0
  let model: string | null = null
  for await (const bytes of files.lines(input)) {
    number += 1
    if (number > MAX_READ_LINES) {
      throw refusedLine(number, `a file has at most ${MAX_READ_LINES} lines, blank ones included`)
    }
    if (isBlank(bytes)) continue
    const line = at(number, () => lineIn(bytes, number, endpoint))
    const { id } = line
    const name = id.length > MAX_COMPARED_CHARS ? hash('sha256', id, 'base64') : id
    const first = seen.get(name)
    if (first !== undefined) {
      throw refusedLine(number, `custom_id ${JSON.stringify(id.slice(0, 100))} is used twice (line ${first})`)
    }
    seen.set(name, number)
    if (seen.size > MAX_LINES) throw refusedLine(number, `a batch has at most ${MAX_LINES} lines`)
    model ??= line.model
    if (line.model !== model) {
      throw refusedLine(
        number,
        `body.model must be "${model.slice(0, 100)}" as in the lines before: a batch has one model`,
      )
    }
    yield line
  }
  if (seen.size === 0) throw malformed('The file has no lines.', PARAM)
}

const PARAM = 'input_file_id'

function refusedLine(number: number, message: string): GatewayError {
  return malformed(`Line ${number}: ${message}`, PARAM)
}

/** Adds the number of the line to its error. */
function at<Result>(number: number, step: () => Result): Result {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw refusedLine(number, error.message.replace(/^The body /, 'it '))
  }
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09)
}

function lineIn(bytes: Buffer, number: number, endpoint: string): BatchLine {
  const parsed: ParsedObject = parseObject(bytes)
  const { value, members } = parsed
  const { custom_id: id, method, url, body } = value
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID_CHARS) {
    throw malformed(`custom_id must be a text of 1 to ${MAX_ID_CHARS} characters`)
  }
  if (method !== 'POST') throw malformed('method must be "POST"')
  if (typeof url !== 'string' || withVersion(url) !== endpoint) {
    throw malformed(`url must be "${endpoint}", the endpoint of the batch`)
  }
  const member = members.find(({ key }) => key === 'body')
  if (!isObject(body) || member === undefined) throw malformed('body must be an object')
  if (body['stream'] === true) throw malformed('body.stream must not be true: a batch has no streams')
  const { model } = body
  if (typeof model !== 'string' || model === '') throw malformed('body.model is required')
  return { number, id, body: bytes.subarray(member.valueStart, member.valueEnd), model }
}

/** The path with the version, which Azure's clients leave out. */
export function withVersion(path: string): string {
  return path.startsWith('/v1/') ? path : `/v1${path}`
}

/** The line as the gateway's file has it. */
export function plannedText(line: PlannedLine): Buffer {
  return Buffer.from(`${JSON.stringify(line)}\n`)
}

/** The lines in the gateway's file, in the order of the client's. */
export async function* plannedLines(files: FileStore, plan: StoredFile): AsyncIterable<PlannedLine> {
  for await (const bytes of files.lines(plan)) {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    yield plannedIn(value)
  }
}

function plannedIn(value: unknown): PlannedLine {
  const { number, id, body, request, refused, part, most } = objectOf(value)
  const { status, body: reply } = objectOf(refused)
  const { input, output, nanoUsd } = objectOf(most)
  return {
    number: numberOf(number) ?? 0,
    id: stringOf(id) ?? '',
    body: stringOf(body) ?? '',
    ...(typeof request === 'string' && { request }),
    ...(isObject(refused) && { refused: { status: numberOf(status) ?? 400, body: stringOf(reply) ?? '{}' } }),
    ...(typeof part === 'number' && { part }),
    ...(isObject(most) && {
      most: {
        input: numberOf(input) ?? 0,
        output: numberOf(output) ?? 0,
        nanoUsd: numberOf(nanoUsd) ?? null,
      },
    }),
  }
}
