/**
 * Finds the outcome of a concept: it renders a request or translates a reply with and without the concept,
 * and compares the results.
 */
import { isObject, type JsonObject, type JsonValue } from '../../formats/chat/json.js'
import type { ModelFacts } from '../../formats/chat/model.js'
import { PLAIN } from '../../config/presets.js'
import type { DialectName, UpstreamCodec, ClientCodec } from '../../formats/dialect.js'
import { resolveEndpoint, upstreamCodecOf, type ResolvedEndpoint } from '../../formats/index.js'
import { GatewayError } from '../../errors.js'
import { render } from '../../gateway/attempts/render-for-upstream.js'
import { translateReply } from '../../gateway/streams/whole-reply.js'
import type { PlatformTraits } from '../../formats/platform-codec.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'

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

const CHAT = '/v1/chat/completions'

/** The formats between which a request is translated. */
export interface RequestTranslation {
  /** The upstream's format. */
  readonly dialect: DialectName
  /** The requested model. */
  readonly facts: ModelFacts
  /** The client's endpoint; default: chat completions. */
  readonly path?: string
  /** The platform of the upstream; default: the vendor's own API. */
  readonly traits?: PlatformTraits
}

/** The outcome of adding these members to the base of a request. */
export function translateRequestConcept(
  base: JsonObject,
  members: JsonObject,
  { dialect, facts, path = CHAT, traits }: RequestTranslation,
): TranslationOutcome {
  const { clientCodec, upstreamCodec, at } = codecsOf(dialect, path, traits)
  const model = facts.id
  const rendered = (body: JsonObject): { json: JsonValue; drops: Map<string, string> } => {
    const raw = Buffer.from(JSON.stringify({ model, ...body }))
    const { value, members } = parseObject(raw)
    const request = clientCodec.decodeRequest(value, at.endpoint)
    const drops = new Map<string, string>()
    const losses = { drop: (path: string, why: string) => drops.set(path, why) }
    const call = { wire: at.wire, raw, members, body: value, request }
    const destination = { wire: dialect, upstreamCodec, model, facts, quirks: PLAIN }
    const { body: out } = render(call, { ...destination, allowSyntheticUser: false }, losses)
    const { path } = upstreamCodec.target(model, request.stream)
    return { json: { path, body: JSON.parse(out.toString()) as JsonValue }, drops }
  }
  try {
    const plain = rendered(base)
    const changed = rendered({ ...base, ...members })
    for (const path of plain.drops.keys()) changed.drops.delete(path)
    const paths = changedPaths(plain.json, changed.json).map((path) => ownPath(path, members))
    const whys = [...changed.drops.values()]
    const reported = [...changed.drops.keys()]
    if (whys.some((why) => why !== 'approximated')) return { outcome: 'lost', at: [], reported }
    if (whys.length > 0) return { outcome: 'emulated', at: paths, reported }
    return { outcome: paths.length === 0 ? 'needless' : 'kept', at: paths, reported: [] }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { outcome: 'rejected', at: [], reported: [error.wire.param ?? ''] }
  }
}

/** The request to which a reply belongs. */
export interface ReplyTranslation {
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
  const paths = changedPaths(
    JSON.parse(translated(plain).body) as JsonValue,
    JSON.parse(body) as JsonValue,
  )
  if (lost.length > 0) return { outcome: 'lost', at: [], reported: lost }
  return { outcome: paths.length === 0 ? 'needless' : 'kept', at: paths, reported: [] }
}

function codecsOf(
  dialect: DialectName,
  path = CHAT,
  traits: PlatformTraits | null = null,
): { clientCodec: ClientCodec; upstreamCodec: UpstreamCodec; at: ResolvedEndpoint } {
  const at = resolveEndpoint('POST', path)
  const upstreamCodec = upstreamCodecOf(dialect, traits)
  if (at === null || upstreamCodec === null) throw new Error(`no dialect ${dialect}`)
  return { clientCodec: at.clientCodec, upstreamCodec, at }
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
