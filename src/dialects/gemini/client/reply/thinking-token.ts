/**
 * `thoughtSignature` for models that are not Google's: an envelope that carries their reasoning state, or the
 * id of a call, to the client and back. Its content is the provider's own opaque state, which the provider
 * checks itself; the envelope only says whose it is. Standard base64, as the field's type demands.
 */
import { arrayOf, isObject, type JsonObject, objectOf, stringOf } from '../../../../chat/json.js'
import type { ThinkingPart } from '../../../../chat/request.js'
import type { NestedJson } from '../../../../wire/json/nested-json.js'

/** Nine bytes, so that their base64 is the beginning of every envelope. */
const MARK = 'sluice:v1'
const PREFIX = Buffer.from(MARK).toString('base64')

/** Stand-ins that Google documents for a signature that was lost; they mean nothing to other providers. */
const STAND_INS: ReadonlySet<string> = new Set([
  'skip_thought_signature_validator',
  'context_engineering_is_the_way_to_go',
])

/** One block of reasoning inside an envelope. */
export interface Thought {
  /** Left out if the part that carries the envelope has the text. */
  readonly text?: string
  readonly signature?: string
  readonly redacted?: string
}

/** What a signature carries. */
export interface Carried {
  /** The dialect whose state it is. */
  readonly origin: string
  readonly thoughts: readonly Thought[]
  /** The id of the call that the signature stands on. */
  readonly callId?: string
}

/** The envelope as a `thoughtSignature`. */
export function sealed({ origin, thoughts, callId }: Carried): string {
  const content: JsonObject = { o: origin }
  if (thoughts.length > 0) {
    content['t'] = thoughts.map(({ text, signature, redacted }) => ({
      t: text,
      s: signature,
      r: redacted,
    }))
  }
  if (callId !== undefined) content['i'] = callId
  return Buffer.from(MARK + JSON.stringify(content)).toString('base64')
}

/** True for an envelope of ours, which Google would refuse. */
export function isSealed(signature: unknown): boolean {
  return typeof signature === 'string' && signature.startsWith(PREFIX)
}

/**
 * What is in an envelope; null for a signature that is Google's own. A broken envelope carries nothing, and so does one
 * that holds more than the JSON inside the texts of a request may.
 */
export function unsealed(signature: string, nested: NestedJson): Carried | null {
  if (!isSealed(signature)) return null
  const text = Buffer.from(signature, 'base64').toString('utf8')
  const content = objectOf(nested.parse(text.slice(MARK.length)))
  const thoughts = arrayOf(content['t'])
    .filter(isObject)
    .map(({ t, s, r }) => ({
      ...member('text', stringOf(t)),
      ...member('signature', stringOf(s)),
      ...member('redacted', stringOf(r)),
    }))
  const callId = stringOf(content['i'])
  const origin = stringOf(content['o']) ?? 'unknown'
  return callId === undefined || callId === '' ? { origin, thoughts } : { origin, thoughts, callId }
}

/** The reasoning in an envelope as the parts of a turn; `text` is that of the part which carried it. */
export function thoughtsOf({ origin, thoughts }: Carried, text: string): ThinkingPart[] {
  return thoughts.map((thought) => {
    const part: ThinkingPart = { type: 'thinking', text: thought.text ?? text, origin }
    if (thought.signature !== undefined) part.signature = thought.signature
    if (thought.redacted !== undefined) part.redacted = thought.redacted
    return part
  })
}

/** The signature of Google's; undefined where it is none. */
export function ownSignature(signature: string): string | undefined {
  return signature === '' || STAND_INS.has(signature) ? undefined : signature
}

function member<K extends string>(name: K, value: string | undefined): Partial<Record<K, string>> {
  const out: Partial<Record<K, string>> = {}
  if (value !== undefined) out[name] = value
  return out
}
