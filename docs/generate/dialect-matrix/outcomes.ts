/**
 * The outcome of a concept in a dialect: a request is rendered, or a reply translated, with and without the
 * concept, and the results are compared.
 */
import { factsFor } from '../../../src/config/catalogue.js'
import type { Catalogue } from '../../../src/config/config.js'
import { codecsOf, translateConcept } from '../../../src/gateway/explain/not-carried.js'
import { PLAIN_REQUEST, type RequestConcept } from '../../../src/gateway/explain/request-concepts.js'
import { isObject, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { DialectName } from '../../../src/formats/dialect.js'
import { UPSTREAM_CODECS } from '../../../src/formats/index.js'
import { translateReply } from '../../../src/gateway/streams/whole-reply.js'
import { PLAIN_REPLY, type ReplyConcept } from './reply-concepts.js'

/** A column of the page: a dialect and its example model. */
export interface Column {
  readonly dialect: DialectName
  readonly title: string
  readonly model: string
}

const ALL_COLUMNS: readonly Column[] = [
  { dialect: 'openai-chat', title: 'OpenAI chat', model: 'gpt-4o' },
  { dialect: 'openai-responses', title: 'OpenAI Responses', model: 'gpt-5.5' },
  { dialect: 'anthropic', title: 'Anthropic', model: 'claude-opus-5-5' },
  { dialect: 'gemini', title: 'Gemini', model: 'gemini-3.5-flash' },
  { dialect: 'converse', title: 'Bedrock Converse', model: 'us.amazon.nova-2-lite-v1:0' },
]

/** The dialects of upstreams. */
export const COLUMNS: readonly Column[] = ALL_COLUMNS.filter(({ dialect }) =>
  UPSTREAM_CODECS.some((each) => each.dialect === dialect),
)

/**
 * `kept`: it arrives. `emulated`: an equivalent arrives. `lost`: it does not arrive, and is reported.
 * `rejected`: 400. `needless`: nothing is sent, since it is the default.
 */
export type Outcome = 'kept' | 'emulated' | 'lost' | 'rejected' | 'needless'

/** An outcome, and the concept's paths in the other format. */
export interface TranslationOutcome {
  readonly outcome: Outcome
  /** Paths without indices, shortest first. */
  readonly at: readonly string[]
  /** The reported losses, or the refused field. */
  readonly reported: readonly string[]
}

/** The outcome of a request's concept in a column. */
export function requestOutcome(
  { base, members }: RequestConcept,
  { dialect, model }: Column,
  catalogue: Catalogue,
): TranslationOutcome {
  return translateRequestConcept({ ...PLAIN_REQUEST, ...base }, members, {
    dialect,
    facts: factsFor(catalogue, model),
  })
}

/** The outcome of a reply's concept in a column; null if the format does not have it. */
export function replyOutcome(
  { replies, members }: ReplyConcept,
  { dialect, model }: Column,
  catalogue: Catalogue,
): TranslationOutcome | null {
  const reply = replies[dialect]
  if (dialect === 'openai-chat' || reply === undefined) return null
  const request = { ...PLAIN_REQUEST, ...members }
  return translateReplyConcept(PLAIN_REPLY[dialect], reply, {
    dialect,
    request,
    facts: factsFor(catalogue, model),
  })
}

/** The outcome of adding these members to the base of a request. */
export function translateRequestConcept(
  base: JsonObject,
  members: JsonObject,
  translation: Parameters<typeof translateConcept>[2],
): TranslationOutcome {
  const found = translateConcept(base, members, translation)
  if (found.outcome !== 'translated') return { ...found, at: [] }
  const { reported } = found
  const at = changedPaths(found.without, found.with).map((path) => ownPath(path, members))
  if (reported.length > 0) return { outcome: 'emulated', at, reported }
  return { outcome: at.length === 0 ? 'needless' : 'kept', at, reported }
}

/** The request to which a reply belongs. */
interface ReplyTranslation {
  /** The upstream's format. */
  readonly dialect: DialectName
  /** Members of the client's request, without the model. */
  readonly request: JsonObject
  /** The requested model. */
  readonly facts: ModelFacts
}

/** The outcome of a reply with the concept, compared with a plain one. */
export function translateReplyConcept(
  plain: JsonObject,
  changed: JsonObject,
  { dialect, request, facts }: ReplyTranslation,
): TranslationOutcome {
  const { clientCodec, upstreamCodec, at } = codecsOf(dialect)
  const chat = clientCodec.decodeRequest({ model: facts.id, ...request }, at.endpoint)
  const seed = { id: 'chatcmpl-1', createdAtSeconds: 0, model: facts.id }
  const translated = (body: JsonObject) =>
    translateReply(body, { upstreamCodec, clientCodec, request: chat, seed })
  const { body, lost, error } = translated(changed)
  if (error !== null) return { outcome: 'rejected', at: [], reported: [error.kind] }
  const paths = changedPaths(JSON.parse(translated(plain).body) as JsonValue, JSON.parse(body) as JsonValue)
  if (lost.length > 0) return { outcome: 'lost', at: [], reported: lost }
  return { outcome: paths.length === 0 ? 'needless' : 'kept', at: paths, reported: [] }
}

/** The paths at which two values differ: each once, without indices, in the order of the second. */
function changedPaths(a: JsonValue, b: JsonValue): string[] {
  const found = new Set<string>()
  compare(a, b, { path: '', found })
  return [...found].map((path) => path.replace(/^body\./, ''))
}

/** If an object arrives under its own name, only the name is listed, not its inner paths. */
function ownPath(path: string, members: JsonObject): string {
  const [top = path] = path.split('.')
  return isObject(members[top]) ? top : path
}

function compare(
  a: JsonValue | undefined,
  b: JsonValue | undefined,
  { path, found }: { readonly path: string; readonly found: Set<string> },
): void {
  if (isObject(a) && isObject(b)) {
    for (const key of new Set([...Object.keys(b), ...Object.keys(a)])) {
      compare(a[key], b[key], { path: path === '' ? key : `${path}.${key}`, found })
    }
  } else if (Array.isArray(a) && Array.isArray(b)) {
    for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
      compare(a[at], b[at], { path, found })
    }
  } else if (JSON.stringify(a) !== JSON.stringify(b)) {
    found.add(deepest(path, a === undefined ? b : undefined))
  }
}

/** The path of an added object with a single member is extended by that member. */
function deepest(path: string, added: JsonValue | undefined): string {
  if (!isObject(added)) return path
  const [key, ...more] = Object.keys(added)
  return key === undefined || more.length > 0 ? path : deepest(`${path}.${key}`, added[key])
}
