/** Reads the lines of a batch: those of the client, and the checked ones in the gateway's own. */
import { isObject, numberOf, objectOf, stringOf } from '../../base/json.js'
import { GatewayError, malformed } from '../../errors.js'
import type { FileStore, StoredFile } from '../../policy/file-store.js'
import { KeyNumbers } from './key-numbers.js'
import type { AskedBatch, LineForm, ReadLine } from './clients/client-form.js'

/** A line that is valid as such. */
export interface BatchLine extends ReadLine {
  /** Its number in the client's file, from 1. */
  readonly number: number
  readonly id: string
}

/** A line as the gateway keeps it until the batch ends. */
export interface PlannedLine {
  readonly number: number
  readonly id: string
  /** What its result has besides, as JSON. */
  readonly metadata?: string
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
 * The lines of a client's batch. Rejects with `malformed_request`, which names the line, at the first one
 * that is not valid.
 */
export async function* linesOf(files: FileStore, { input, lines }: AskedLines): AsyncIterable<BatchLine> {
  const { idName, modelName, maxLines } = lines
  const seen = new KeyNumbers()
  let number = 0
  let model: string | null = null
  for await (const bytes of files.lines(input)) {
    number += 1
    if (number > 2 * maxLines) {
      throw refusedLine(lines, number, `a file has at most ${2 * maxLines} lines, blank ones included`)
    }
    if (isBlank(bytes)) continue
    const line = at(lines, number, () => lines.read(bytes))
    const id = line.id ?? `request-${number}`
    const first = seen.add(id, number)
    if (first !== number) {
      const before = lines.place(first).replace(/^L/, 'l')
      throw refusedLine(
        lines,
        number,
        `${idName} ${JSON.stringify(id.slice(0, 100))} is used twice (${before})`,
      )
    }
    if (seen.size > maxLines) throw refusedLine(lines, number, `a batch has at most ${maxLines} lines`)
    model ??= line.model
    if (line.model !== model) {
      throw refusedLine(
        lines,
        number,
        `${modelName} must be "${model.slice(0, 100)}" as in the lines before: a batch has one model`,
      )
    }
    yield { ...line, id, number }
  }
  if (seen.size === 0) throw noLines(lines)
}

/** The lines of a batch, and how they are read. */
type AskedLines = Pick<AskedBatch, 'input' | 'lines'>

/** The error of a batch without lines. */
export function noLines({ param }: LineForm): GatewayError {
  return malformed('The batch has no lines.', param)
}

/** The error of a batch because of a line. */
export function refusedLine({ param, place }: LineForm, number: number, message: string): GatewayError {
  return malformed(`${place(number)}: ${message}`, param)
}

/** Adds the place of the line to its error. */
function at<Result>(lines: LineForm, number: number, step: () => Result): Result {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw refusedLine(lines, number, error.message.replace(/^The body /, 'it '))
  }
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09)
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
  const { number, id, metadata, body, request, refused, part, most } = objectOf(value)
  const { status, body: reply } = objectOf(refused)
  const { input, output, nanoUsd } = objectOf(most)
  return {
    number: numberOf(number) ?? 0,
    id: stringOf(id) ?? '',
    body: stringOf(body) ?? '',
    ...(typeof metadata === 'string' && { metadata }),
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
