/** The input of `sluice explain`: a body, and options for the conditions of routes. */
import { readBoundedFile } from '../../files/bounded-file.js'
import { factsFor } from '../../config/catalogue.js'
import type { Catalogue } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import { traitsOf, type RequestTraits } from '../../routing/match-route-conditions.js'
import { UsageError } from '../usage-error.js'
import { requestOf } from './explain-body.js'

/** The options about the conditions of routes. */
export interface TraitValues {
  readonly label: readonly string[]
  readonly images: boolean
  readonly tools: boolean
  readonly 'prompt-tokens': string
}

/** The request that `sluice explain` explains. */
export interface TraitSources {
  /** The bytes of `--body`; null without one. */
  readonly body: Buffer | null
  /** The requested model, before aliases. */
  readonly model: string
  /** The models of the configuration. */
  readonly catalogue: Catalogue
}

/** The traits for the conditions of routes: from the options, and from a valid body. */
export function traitsFor(
  values: TraitValues,
  { body, model, catalogue }: TraitSources,
): RequestTraits {
  const labels = Object.fromEntries(values.label.map(labelOf))
  const tokens = Number(values['prompt-tokens'])
  if (!Number.isInteger(tokens) || tokens < 0) {
    throw new UsageError(`--prompt-tokens must be a whole number, not "${values['prompt-tokens']}"`)
  }
  const sent = body === null ? null : traitsOfBody(body, { model, catalogue }, labels)
  return {
    labels,
    hasImages: () => values.images || sent?.hasImages() === true,
    hasTools: () => values.tools || sent?.hasTools() === true,
    promptTokens: () => Math.max(tokens, sent?.promptTokens() ?? 0),
  }
}

function labelOf(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--label must be NAME=VALUE, not "${text}"`)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Null for an invalid body: its own explanation states why. */
function traitsOfBody(
  bytes: Buffer,
  { model, catalogue }: Omit<TraitSources, 'body'>,
  labels: Readonly<Record<string, string>>,
): RequestTraits | null {
  try {
    const request = requestOf(bytes, model)
    const { family } = factsFor(catalogue, model)
    return traitsOf(request, labels, () => inputTokens(promptSizeOf(request), family))
  } catch (error) {
    if (error instanceof GatewayError) return null
    throw error
  }
}

/** Why a body cannot be explained: path and rule, never the value, which may be part of a prompt. */
export interface BodyError {
  readonly error: { readonly param: string | null; readonly message: string }
}

/** The largest `server.max_body_bytes`. */
const MAX_BODY_BYTES = 268_435_456

/** The bytes of the file, or of standard input for `-`. */
export async function readBody(file: string): Promise<{ bytes: Buffer } | BodyError> {
  try {
    const bytes = file === '-' ? await standardInput() : readBoundedFile(file, MAX_BODY_BYTES)
    if (bytes !== null) return { bytes }
    return bodyError(null, `standard input is larger than ${MAX_BODY_BYTES} bytes`)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    const why = error instanceof Error ? error.message : code
    return bodyError(
      null,
      `cannot read "${file}": ${code === 'ENOENT' ? 'it does not exist' : why}`,
    )
  }
}

/** All of standard input; null once it is larger than a body may be. */
async function standardInput(): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk as Uint8Array)
    total += bytes.length
    if (total > MAX_BODY_BYTES) return null
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

/** An error about a body; `param` is a path in it. */
export function bodyError(param: string | null, message: string): BodyError {
  return { error: { param, message } }
}
