/**
 * Which features of chat requests an upstream does not receive. A plain request is rendered for the upstream
 * with and without each concept; a loss that is reported only with it is a loss of the concept.
 */
import { PLAIN } from '../../config/quirks.js'
import { GatewayError } from '../../errors.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ClientCodec, DialectName, UpstreamCodec } from '../../formats/dialect.js'
import { resolveEndpoint, upstreamCodecOf, type ResolvedEndpoint } from '../../formats/index.js'
import type { PlatformTraits } from '../../formats/platform-codec.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import { render } from '../attempts/render-for-upstream.js'
import { PLAIN_REQUEST, REQUEST_GROUPS } from './request-concepts.js'

/** Features that an upstream of this dialect and model does not receive, without Markdown marks. */
export function notCarried(
  dialect: DialectName,
  { facts, upstream: traits }: { readonly facts: ModelFacts; readonly upstream: PlatformTraits },
): { loses: string[]; refuses: string[] } {
  const loses: string[] = []
  const refuses: string[] = []
  for (const { name, base, members } of REQUEST_GROUPS.flatMap(({ concepts }) => concepts)) {
    const plain = { ...PLAIN_REQUEST, ...base }
    const { outcome } = translateConcept(plain, members, { dialect, facts, traits })
    if (outcome === 'lost') loses.push(name.replaceAll('`', ''))
    if (outcome === 'rejected') refuses.push(name.replaceAll('`', ''))
  }
  return { loses, refuses }
}

/** The formats between which a request is translated. */
interface Translation {
  /** The upstream's format. */
  readonly dialect: DialectName
  /** The requested model. */
  readonly facts: ModelFacts
  /** The client's endpoint; default: chat completions. */
  readonly path?: string
  /** The platform of the upstream; default: the vendor's own API. */
  readonly traits?: PlatformTraits
}

/** `lost`: dropped and reported. `rejected`: 400. `translated`: the upstream gets it or an equivalent. */
type TranslatedConcept =
  | { readonly outcome: 'lost' | 'rejected'; readonly reported: readonly string[] }
  | {
      readonly outcome: 'translated'
      /** The fields for which an equivalent is sent. */
      readonly reported: readonly string[]
      /** The rendered requests. */
      readonly without: JsonValue
      readonly with: JsonValue
    }

/** Adds these members to the base of a request, and translates it with and without them. */
export function translateConcept(
  base: JsonObject,
  members: JsonObject,
  { dialect, facts, path, traits }: Translation,
): TranslatedConcept {
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
    const reported = [...changed.drops.keys()]
    if ([...changed.drops.values()].some((why) => why !== 'approximated'))
      return { outcome: 'lost', reported }
    return { outcome: 'translated', reported, without: plain.json, with: changed.json }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { outcome: 'rejected', reported: [error.wire.param ?? ''] }
  }
}

/** The codecs of a client's endpoint and of an upstream. */
export function codecsOf(
  dialect: DialectName,
  path = '/v1/chat/completions',
  traits: PlatformTraits | null = null,
): { clientCodec: ClientCodec; upstreamCodec: UpstreamCodec; at: ResolvedEndpoint } {
  const at = resolveEndpoint('POST', path)
  const upstreamCodec = upstreamCodecOf(dialect, traits)
  if (at === null || upstreamCodec === null) throw new Error(`no dialect ${dialect}`)
  return { clientCodec: at.clientCodec, upstreamCodec, at }
}
