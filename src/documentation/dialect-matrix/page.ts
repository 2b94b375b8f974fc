/**
 * The text of `docs/reference/dialects.md`: every concept sent through every dialect, and what came of it.
 * Reads no file; the catalogue is handed in.
 */
import type { JsonObject } from '../../chat/json.js'
import type { Catalogue } from '../../config/config.js'
import { factsFor } from '../../config/catalogue.js'
import type { DialectName } from '../../dialects/dialect.js'
import { resolveEndpoint, EGRESSES } from '../../dialects/index.js'
import { CLIENTS } from './clients.js'
import { replyFate, requestFate, type Fate, type Found } from './fate.js'
import { PLAIN_REPLY, REPLY_CONCEPTS, type ReplyConcept } from './replies.js'
import { REQUEST_GROUPS, type RequestConcept } from './requests.js'

/** A dialect as the page shows it, and the model that stands for it. */
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
]

/** The dialects that upstreams can be spoken to in. */
export const COLUMNS: readonly Column[] = ALL_COLUMNS.filter(({ dialect }) =>
  EGRESSES.some((each) => each.dialect === dialect),
)

/** What a request without the concept has; without a limit some would be asked as streams. */
export const PLAIN_REQUEST: JsonObject = {
  messages: [{ role: 'user', content: 'Hello.' }],
  max_completion_tokens: 200,
}

const SIGNS: Readonly<Record<Fate, string>> = {
  kept: '●',
  emulated: '◐',
  lost: '○',
  rejected: '✕',
  needless: '·',
}

/** What becomes of a concept in a request for a column. */
export function fateOfRequest(
  { base, ask }: RequestConcept,
  { dialect, model }: Column,
  catalogue: Catalogue,
): Found {
  return requestFate({ ...PLAIN_REQUEST, ...base }, ask, dialect, factsFor(catalogue, model))
}

/** What becomes of a concept in a reply of a column; null where that format has no such thing. */
export function fateOfReply(
  { said, ask }: ReplyConcept,
  { dialect, model }: Column,
  catalogue: Catalogue,
): Found | null {
  const reply = said[dialect]
  if (dialect === 'openai-chat' || reply === undefined) return null
  const request = { ...PLAIN_REQUEST, ...ask }
  return replyFate(PLAIN_REPLY[dialect], reply, dialect, request, factsFor(catalogue, model))
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
    '<!-- Generated from src/documentation/dialect-matrix by `npm run generate`; do not edit. -->',
    '',
    INTRODUCTION.trim(),
    '',
    `The models that stand for each column: ${models}. Other models differ where a note says so and where the [catalogue](configuration.md#the-catalogue) does; \`sluice explain MODEL --body request.json\` tells of any request and model.`,
    '',
    '## At a glance',
    '',
    ...glance(catalogue),
    '',
    PAIRS_INTRODUCTION.trim(),
    '',
    ...pairs(catalogue),
    '',
    '## What a client asks',
    '',
    ...groups,
    ...clientTables(catalogue),
    '## What an upstream answers',
    '',
    REPLIES_INTRODUCTION.trim(),
    '',
    ...replies,
    '',
  ].join('\n')
}

const INTRODUCTION = `
# Dialects

Clients speak one of several formats, and so do upstreams. This page shows what survives the translation; the first tables are
for clients of chat completions, and the formats that follow have tables of their own. Nobody wrote the signs by hand: each concept is sent
through the codecs when the page is made, and a test fails where page and code disagree.

| sign | meaning |
| :---: | --- |
| ● | **kept**: it arrives; the path is where the provider finds it |
| ◐ | **emulated**: it arrives by other means, or the nearest to it does |
| ○ | **lost**: it does not arrive, and the answer's \`x-sluice-lost\` header, the log and \`sluice_translation_losses_total\` say so; with [\`on_loss: reject\`](configuration.md#the-file) the request is refused |
| ✕ | **rejected**: 400 \`untranslatable\` ([errors](errors.md)) naming the field, since an answer without it would be another answer |
| · | **nothing to carry**: it is what holds anyway, or cannot change the answer |

Vendors that speak chat completions with a few departures are not dialects but [presets](configuration.md#presets).
`

const REPLIES_INTRODUCTION = `
The same for answers, whole and streamed. A reply of OpenAI's chat completions passes as it is, byte for byte. Losses of an answer are in
the log and the metric, and in the header of a whole one.
`

const PAIRS_INTRODUCTION = `
Every client format works with every upstream dialect. Of the things that clients of each format may ask, in this order: ● kept, ◐ emulated,
○ lost, ✕ rejected, · nothing to carry. Between equal formats, requests and replies pass byte for byte.
`

const WORDS: readonly Fate[] = ['kept', 'emulated', 'lost', 'rejected', 'needless']

/** How many of a format's things meet each fate, for each pair of client format and upstream dialect. */
function pairs(catalogue: Catalogue): string[] {
  const chats = COLUMNS.map((column) =>
    countsOf(CHAT_CONCEPTS, (concept) =>
      shownFate(concept, column, fateOfRequest(concept, column, catalogue)),
    ),
  )
  const rows = CLIENTS.map(({ title, path, plain, concepts }) => {
    const cells = COLUMNS.map(({ dialect, model }) => {
      const facts = factsFor(catalogue, model)
      return countsOf(
        concepts,
        ({ base, ask }) => requestFate({ ...plain, ...base }, ask, dialect, facts, path).fate,
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

function countsOf<T>(concepts: readonly T[], fateOf: (concept: T) => Fate): string {
  const fates = concepts.map(fateOf)
  return WORDS.map((word) => fates.filter((fate) => fate === word).length).join(' / ')
}

const CHAT_CONCEPTS: readonly RequestConcept[] = REQUEST_GROUPS.flatMap(({ concepts }) => concepts)

/** What clients of the other formats ask, a table for each format. */
function clientTables(catalogue: Catalogue): string[] {
  return CLIENTS.flatMap(({ title, path, plain, concepts }) => [
    `## What a client asks: ${title}`,
    '',
    ...table(COLUMNS, concepts, ({ base, ask }, { dialect, model }) => {
      const facts = factsFor(catalogue, model)
      const found = requestFate({ ...plain, ...base }, ask, dialect, facts, path)
      const isForeign = found.fate === 'kept' && resolveEndpoint('POST', path)?.dialect !== dialect
      return joined(SIGNS[found.fate], [isForeign ? placesText(found.at) : undefined])
    }),
    '',
  ])
}

/** How many concepts of a request meet each fate. */
function glance(catalogue: Catalogue): string[] {
  const concepts = CHAT_CONCEPTS
  const rows = COLUMNS.map((column) => {
    const counts = new Map<Fate, number>()
    for (const concept of concepts) {
      const fate = shownFate(concept, column, fateOfRequest(concept, column, catalogue))
      counts.set(fate, (counts.get(fate) ?? 0) + 1)
    }
    return `| ${column.title} | ${WORDS.map((fate) => counts.get(fate) ?? 0).join(' | ')} |`
  })
  return [
    `| of ${concepts.length} things that a client may ask | ● kept | ◐ emulated | ○ lost | ✕ rejected | · nothing to carry |`,
    '| --- | --: | --: | --: | --: | --: |',
    ...rows,
  ]
}

/** What arrives by other means is emulated, though nothing is lost by it. */
function shownFate({ emulated }: RequestConcept, { dialect }: Column, { fate }: Found): Fate {
  return fate === 'kept' && emulated?.[dialect] !== undefined ? 'emulated' : fate
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
  const found = fateOfRequest(concept, column, catalogue)
  const fate = shownFate(concept, column, found)
  const note = concept.notes?.[column.dialect]
  if (fate === 'emulated') return joined(SIGNS.emulated, [concept.emulated?.[column.dialect], note])
  const isPlace = fate === 'kept' && column.dialect !== 'openai-chat'
  return joined(SIGNS[fate], [isPlace ? placesText(found.at) : undefined, note])
}

function replyCell(concept: ReplyConcept, column: Column, catalogue: Catalogue): string {
  const found = fateOfReply(concept, column, catalogue)
  if (found === null) return ''
  const where = found.fate === 'kept' ? placesText(found.at) : undefined
  return joined(SIGNS[found.fate], [where, concept.notes?.[column.dialect]])
}

/** Where it is, unless that goes without saying. */
function placesText(at: readonly string[]): string | undefined {
  const places = at
    .map((path) => path.replace(/^choices\./, ''))
    .filter((path) => !MEANT.test(path))
  const [first, ...more] = places
  if (first === undefined) return undefined
  return [first, ...more.slice(0, 1)].map((path) => `\`${path}\``).join(', ')
}

/** Messages and tools are where they are expected, and the model's path changes for streams. */
const MEANT = /^(?:path|messages|contents|input|tools|message\.content|usage\.total_tokens)(?:\.|$)/

function joined(sign: string, texts: readonly (string | undefined)[]): string {
  const said = texts.filter((text) => text !== undefined)
  return said.length === 0 ? sign : `${sign} ${said.join('; ')}`
}
