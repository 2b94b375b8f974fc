/**
 * The `thoughtSignature` for models of other providers: an envelope with their reasoning state or the id of a
 * call, which the client returns on the next turn. The state is opaque and checked by its provider; the
 * envelope adds the provider's dialect. It is standard base64, as the field's type requires.
 */
import { arrayOf, isObject, type JsonObject, objectOf, stringOf } from '../../chat/json.js'
import type { ThinkingPart } from '../../chat/request.js'
import type { NestedJson } from '../../wire/json/nested-json.js'

/**
 * The first nine bytes of an envelope: a multiple of three, so that their base64 is a prefix of its base64.
 */
const MARK = 'sluice:v1'
const PREFIX = Buffer.from(MARK).toString('base64')

/** Placeholders that Google documents for lost signatures. */
const PLACEHOLDERS: ReadonlySet<string> = new Set([
  'skip_thought_signature_validator',
  'context_engineering_is_the_way_to_go',
])

/** One block of reasoning inside an envelope. */
export interface Thought {
  /** Absent if the part that carries the envelope has the text. */
  readonly text?: string
  readonly signature?: string
  readonly redacted?: string
}

/** The content of an envelope. */
interface Envelope {
  /** The dialect of the upstream that issued the state. */
  readonly origin: string
  readonly thoughts: readonly Thought[]
  /** The id of the call that has the signature. */
  readonly callId?: string
}

/** The envelope as a `thoughtSignature`. */
export function sealEnvelope({ origin, thoughts, callId }: Envelope): string {
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

/** True for an envelope of the gateway, which Google would reject. */
export function isEnvelope(signature: unknown): boolean {
  return typeof signature === 'string' && signature.startsWith(PREFIX)
}

/**
 * The content of an envelope; null for Google's own signature. A damaged envelope, or one that exceeds the
 * limits of nested JSON in a request, has no thoughts.
 */
export function openEnvelope(signature: string, nested: NestedJson): Envelope | null {
  if (!isEnvelope(signature)) return null
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

/** The thoughts of an envelope as parts of a turn; `text` is that of the part with the envelope. */
export function thoughtsOf({ origin, thoughts }: Envelope, text: string): ThinkingPart[] {
  return thoughts.map((thought) => {
    const part: ThinkingPart = { type: 'thinking', text: thought.text ?? text, origin }
    if (thought.signature !== undefined) part.signature = thought.signature
    if (thought.redacted !== undefined) part.redacted = thought.redacted
    return part
  })
}

/** Google's signature; undefined if it is empty or a placeholder. */
export function googleSignature(signature: string): string | undefined {
  return signature === '' || PLACEHOLDERS.has(signature) ? undefined : signature
}

function member<K extends string>(name: K, value: string | undefined): Partial<Record<K, string>> {
  const out: Partial<Record<K, string>> = {}
  if (value !== undefined) out[name] = value
  return out
}
