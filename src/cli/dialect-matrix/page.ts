/**
 * Generates `docs/reference/dialects.md`: the outcome of every concept in every dialect.
 */
import { type JsonObject, isObject, type JsonValue } from '../../formats/chat/json.js'
import type { Catalogue } from '../../config/config.js'
import { factsFor } from '../../config/catalogue.js'
import type { DialectName, UpstreamCodec, ClientCodec } from '../../formats/dialect.js'
import {
  resolveEndpoint,
  UPSTREAM_CODECS,
  fieldsOf,
  upstreamCodecOf,
  type ResolvedEndpoint,
} from '../../formats/index.js'
import type { PlatformTraits } from '../../formats/platform-codec.js'
import { SCALAR_NAMES, type ScalarField } from '../../formats/wire/scalar-fields.js'
import { CLIENTS } from './messages-clients.js'
import { REPLY_CONCEPTS, PLAIN_REPLY, type ReplyConcept } from './reply-concepts.js'
import type { RequestConcept } from './concepts.js'
import { REQUEST_GROUPS } from './request-concepts.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { PLAIN } from '../../config/presets.js'
import { GatewayError } from '../../errors.js'
import { render } from '../../gateway/attempts/render-for-upstream.js'
import { translateReply } from '../../gateway/streams/whole-reply.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'

/** A column of the page: a dialect and its example model. */
interface Column {
  readonly dialect: DialectName
  readonly title: string
  readonly model: string
  /** The platform of the upstream; default: the vendor's own API. */
  readonly traits?: PlatformTraits
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

/** A request without the concept. It has a token limit, since some encoders stream requests without one. */
export const PLAIN_REQUEST: JsonObject = {
  messages: [{ role: 'user', content: 'Hello.' }],
  max_completion_tokens: 200,
}

const SIGNS: Readonly<Record<Outcome, string>> = {
  kept: '●',
  emulated: '◐',
  lost: '○',
  rejected: '✕',
  needless: '·',
}

/** The outcome of a request's concept in a column. */
export function requestOutcome(
  { base, members }: RequestConcept,
  { dialect, model, traits }: Column,
  catalogue: Catalogue,
): TranslationOutcome {
  return translateRequestConcept({ ...PLAIN_REQUEST, ...base }, members, {
    dialect,
    facts: factsFor(catalogue, model),
    ...(traits !== undefined && { traits }),
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

/** The whole page, ending in a newline. */
export function dialectsPage(catalogue: Catalogue): string {
  const groups = REQUEST_GROUPS.flatMap(({ title, concepts }) => [
    `### ${title}`,
    '',
    ...table(COLUMNS, concepts, (concept, column) => requestCell(concept, column, catalogue)),
    '',
  ])
  const foreign = COLUMNS.filter(({ dialect }) => dialect !== 'openai-chat')
  const replies = table(foreign, REPLY_CONCEPTS, (concept, column) =>
    replyCell(concept, column, catalogue),
  )
  const models = COLUMNS.map(({ title, model }) => `${title}: \`${model}\``).join(', ')
  return [
    '<!-- Generated from src/cli/dialect-matrix by `npm run generate`; do not edit. -->',
    '',
    INTRODUCTION.trim(),
    '',
    `The example model of each column: ${models}. Other models can differ, as noted and as listed in the [catalogue](configuration.md#the-catalogue); \`sluice explain MODEL --body request.json\` shows the outcome for any request and model.`,
    '',
    '## Overview',
    '',
    ...overviewTable(catalogue),
    '',
    PAIRS_INTRODUCTION.trim(),
    '',
    ...pairs(catalogue),
    '',
    '## Requests',
    '',
    ...groups,
    ...clientTables(catalogue),
    '## Scalar fields',
    '',
    FIELDS_INTRODUCTION.trim(),
    '',
    ...fieldsTable(),
    '',
    '## Replies',
    '',
    REPLIES_INTRODUCTION.trim(),
    '',
    ...replies,
    '',
  ].join('\n')
}

const INTRODUCTION = `
# Dialects

Clients use one of several formats, and so do upstreams. This page shows the outcome of translations between them. The first
tables are for clients of chat completions; the other formats follow. The page is generated: each concept is sent through
the codecs, and a test fails if page and code disagree.

| sign | meaning |
| :---: | --- |
| ● | **kept**: it arrives; the path is where the provider finds it |
| ◐ | **emulated**: it arrives by other means, or as the nearest equivalent |
| ○ | **lost**: it does not arrive, and the reply's \`x-sluice-lost\` header, the log and \`sluice_translation_losses_total\` report it; with [\`on_loss: reject\`](configuration.md#the-file) the request is refused |
| ✕ | **rejected**: 400 \`untranslatable\` ([errors](errors.md)) naming the field, since a reply without it would be a different reply |
| · | **nothing to translate**: it is the default, or does not affect the reply |

Vendors whose chat completions differ in a few fields have [presets](configuration.md#presets) instead of dialects.
`

const REPLIES_INTRODUCTION = `
The outcome for replies, whole and streamed. Replies of OpenAI's chat completions are passed through unchanged. Losses of a
reply are reported in the log and the metric, and in the header of a whole reply.
`

const FIELDS_INTRODUCTION = `
The name of each scalar field in each format, with the values that the gateway accepts from clients and the default that it
assumes. A field that a format lacks is lost (○), refused (✕) or without effect (·), unless it has the default.
`

const PAIRS_INTRODUCTION = `
Every client format works with every upstream dialect. The numbers of concepts per format, in this order: ● kept, ◐ emulated,
○ lost, ✕ rejected, · nothing to translate. Between equal formats, requests and replies are passed through unchanged.
`

const WORDS: readonly Outcome[] = ['kept', 'emulated', 'lost', 'rejected', 'needless']

/** The number of concepts with each outcome, per pair of client format and upstream dialect. */
function pairs(catalogue: Catalogue): string[] {
  const chats = COLUMNS.map((column) =>
    countsOf(CHAT_CONCEPTS, (concept) =>
      shownOutcome(concept, column, requestOutcome(concept, column, catalogue)),
    ),
  )
  const rows = CLIENTS.map(({ title, path, plain, concepts }) => {
    const cells = COLUMNS.map(({ dialect, model }) => {
      const facts = factsFor(catalogue, model)
      return countsOf(
        concepts,
        ({ base, members }) =>
          translateRequestConcept({ ...plain, ...base }, members, { dialect, facts, path }).outcome,
      )
    })
    return `| ${title} | ${cells.join(' | ')} |`
  })
  return [
    `| client | ${COLUMNS.map(({ title }) => title).join(' | ')} |`,
    `| --- |${COLUMNS.map(() => ' --- |').join('')}`,
    `| Chat completions (\`POST /v1/chat/completions\`) | ${chats.join(' | ')} |`,
    ...rows,
  ]
}

function countsOf<T>(concepts: readonly T[], outcomeOf: (concept: T) => Outcome): string {
  const outcomes = concepts.map(outcomeOf)
  return WORDS.map((word) => outcomes.filter((outcome) => outcome === word).length).join(' / ')
}

const CHAT_CONCEPTS: readonly RequestConcept[] = REQUEST_GROUPS.flatMap(({ concepts }) => concepts)

/** Tables of the other client formats. */
function clientTables(catalogue: Catalogue): string[] {
  return CLIENTS.flatMap(({ title, path, plain, concepts }) => [
    `## Requests: ${title}`,
    '',
    ...table(COLUMNS, concepts, ({ base, members }, { dialect, model }) => {
      const facts = factsFor(catalogue, model)
      const found = translateRequestConcept({ ...plain, ...base }, members, {
        dialect,
        facts,
        path,
      })
      const isForeign =
        found.outcome === 'kept' && resolveEndpoint('POST', path)?.dialect !== dialect
      return joined(SIGNS[found.outcome], [isForeign ? pathsText(found.at) : undefined])
    }),
    '',
  ])
}

/** A row for each scalar member, from the tables that decoders and encoders read. */
function fieldsTable(): string[] {
  return [
    `| field | ${COLUMNS.map(({ title }) => title).join(' | ')} |`,
    `| --- |${COLUMNS.map(() => ' --- |').join('')}`,
    ...Object.entries(SCALAR_NAMES).map(([canonical, name]) => {
      const cells = COLUMNS.map(({ dialect }) =>
        fieldsOf(dialect)
          .filter((field) => field.canonical === canonical)
          .map(fieldText)
          .join('<br>'),
      )
      return `| \`${name}\` | ${cells.join(' | ')} |`
    }),
  ]
}

function fieldText({ wire, check, default: value, loss }: ScalarField): string {
  const standard = value === undefined ? [] : [`default ${JSON.stringify(value)}`]
  if (wire === null) {
    const sign =
      loss === 'none' ? SIGNS.needless : loss === 'reported' ? SIGNS.lost : SIGNS.rejected
    return joined(sign, standard)
  }
  const rule = check === null ? [] : [check.rule]
  return [`\`${wire}\``, ...rule, ...standard].join('; ')
}

/** The number of a chat request's concepts with each outcome. */
function overviewTable(catalogue: Catalogue): string[] {
  const concepts = CHAT_CONCEPTS
  const rows = COLUMNS.map((column) => {
    const counts = new Map<Outcome, number>()
    for (const concept of concepts) {
      const outcome = shownOutcome(concept, column, requestOutcome(concept, column, catalogue))
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    }
    return `| ${column.title} | ${WORDS.map((outcome) => counts.get(outcome) ?? 0).join(' | ')} |`
  })
  return [
    `| of ${concepts.length} concepts | ● kept | ◐ emulated | ○ lost | ✕ rejected | · nothing to translate |`,
    '| --- | --: | --: | --: | --: | --: |',
    ...rows,
  ]
}

/** A concept that arrives by other means is emulated, even if nothing is lost. */
function shownOutcome(
  { emulated }: RequestConcept,
  { dialect }: Column,
  { outcome }: TranslationOutcome,
): Outcome {
  return outcome === 'kept' && emulated?.[dialect] !== undefined ? 'emulated' : outcome
}

function table<T extends { readonly name: string }>(
  columns: readonly Column[],
  concepts: readonly T[],
  cell: (concept: T, column: Column) => string,
): string[] {
  return [
    `| | ${columns.map(({ title }) => title).join(' | ')} |`,
    `| --- |${columns.map(() => ' --- |').join('')}`,
    ...concepts.map(
      (concept) =>
        `| ${concept.name} | ${columns.map((column) => cell(concept, column)).join(' | ')} |`,
    ),
  ]
}

function requestCell(concept: RequestConcept, column: Column, catalogue: Catalogue): string {
  const found = requestOutcome(concept, column, catalogue)
  const outcome = shownOutcome(concept, column, found)
  const note = concept.notes?.[column.dialect]
  if (outcome === 'emulated')
    return joined(SIGNS.emulated, [concept.emulated?.[column.dialect], note])
  const showsPath = outcome === 'kept' && column.dialect !== 'openai-chat'
  return joined(SIGNS[outcome], [showsPath ? pathsText(found.at) : undefined, note])
}

function replyCell(concept: ReplyConcept, column: Column, catalogue: Catalogue): string {
  const found = replyOutcome(concept, column, catalogue)
  if (found === null) return ''
  const where = found.outcome === 'kept' ? pathsText(found.at) : undefined
  return joined(SIGNS[found.outcome], [where, concept.notes?.[column.dialect]])
}

/** The paths of a concept, without expected ones. */
function pathsText(at: readonly string[]): string | undefined {
  const paths = at
    .map((path) => path.replace(/^choices\./, ''))
    .filter((path) => !EXPECTED_PATHS.test(path))
  const [first, ...more] = paths
  if (first === undefined) return undefined
  return [first, ...more.slice(0, 1)].map((path) => `\`${path}\``).join(', ')
}

/** Paths that are not listed: messages and tools, and the endpoint's path, which differs for streams. */
const EXPECTED_PATHS =
  /^(?:path|messages|contents|input|tools|message\.content|usage\.total_tokens)(?:\.|$)/

function joined(sign: string, texts: readonly (string | undefined)[]): string {
  const parts = texts.filter((text) => text !== undefined)
  return parts.length === 0 ? sign : `${sign} ${parts.join('; ')}`
}

// Finds the outcome of a concept: it renders a request or translates a reply with and without the concept,
// and compares the results.

/**
 * `kept`: it arrives. `emulated`: an equivalent arrives. `lost`: it does not arrive, and is reported.
 * `rejected`: 400. `needless`: nothing is sent, since it is the default.
 */
type Outcome = 'kept' | 'emulated' | 'lost' | 'rejected' | 'needless'

/** An outcome, and the concept's paths in the other format. */
interface TranslationOutcome {
  readonly outcome: Outcome
  /** Paths without indices, shortest first. */
  readonly at: readonly string[]
  /** The reported losses, or the refused field. */
  readonly reported: readonly string[]
}

const CHAT = '/v1/chat/completions'

/** The formats between which a request is translated. */
interface RequestTranslation {
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
