/**
 * The text of `docs/reference/dialects.md`: every concept sent through every dialect, and what came of it.
 * Reads no file; the catalogue is handed in.
 */
import type { JsonObject } from '../../chat/json.js'
import type { Catalogue } from '../../config/config.js'
import { factsFor } from '../../config/catalogue.js'
import type { DialectName } from '../../dialects/dialect.js'
import { resolveEndpoint, EGRESSES } from '../../dialects/index.js'
import { CLIENTS } from './messages-clients.js'
import {
  translateReplyConcept,
  translateRequestConcept,
  type Outcome,
  type TranslationOutcome,
} from './translate-concept.js'
import { REPLY_CONCEPTS } from './replies.js'
import { PLAIN_REPLY, type ReplyConcept } from './reply-fragments.js'
import type { RequestConcept } from './concepts.js'
import { REQUEST_GROUPS } from './requests.js'

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

const SIGNS: Readonly<Record<Outcome, string>> = {
  kept: '●',
  emulated: '◐',
  lost: '○',
  rejected: '✕',
  needless: '·',
}

/** What becomes of a concept in a request for a column. */
export function requestOutcome(
  { base, members }: RequestConcept,
  { dialect, model }: Column,
  catalogue: Catalogue,
): TranslationOutcome {
  return translateRequestConcept(
    { ...PLAIN_REQUEST, ...base },
    members,
    dialect,
    factsFor(catalogue, model),
  )
}

/** What becomes of a concept in a reply of a column; null where that format has no such thing. */
export function replyOutcome(
  { replies, members }: ReplyConcept,
  { dialect, model }: Column,
  catalogue: Catalogue,
): TranslationOutcome | null {
  const reply = replies[dialect]
  if (dialect === 'openai-chat' || reply === undefined) return null
  const request = { ...PLAIN_REQUEST, ...members }
  return translateReplyConcept(
    PLAIN_REPLY[dialect],
    reply,
    dialect,
    request,
    factsFor(catalogue, model),
  )
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
    ...overviewTable(catalogue),
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

const WORDS: readonly Outcome[] = ['kept', 'emulated', 'lost', 'rejected', 'needless']

/** How many of a format's things meet each fate, for each pair of client format and upstream dialect. */
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
          translateRequestConcept({ ...plain, ...base }, members, dialect, facts, path).outcome,
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

/** What clients of the other formats ask, a table for each format. */
function clientTables(catalogue: Catalogue): string[] {
  return CLIENTS.flatMap(({ title, path, plain, concepts }) => [
    `## What a client asks: ${title}`,
    '',
    ...table(COLUMNS, concepts, ({ base, members }, { dialect, model }) => {
      const facts = factsFor(catalogue, model)
      const found = translateRequestConcept({ ...plain, ...base }, members, dialect, facts, path)
      const isForeign =
        found.outcome === 'kept' && resolveEndpoint('POST', path)?.dialect !== dialect
      return joined(SIGNS[found.outcome], [isForeign ? pathsText(found.at) : undefined])
    }),
    '',
  ])
}

/** How many concepts of a request meet each fate. */
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
    `| of ${concepts.length} things that a client may ask | ● kept | ◐ emulated | ○ lost | ✕ rejected | · nothing to carry |`,
    '| --- | --: | --: | --: | --: | --: |',
    ...rows,
  ]
}

/** What arrives by other means is emulated, though nothing is lost by it. */
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

/** Where it is, unless that goes without saying. */
function pathsText(at: readonly string[]): string | undefined {
  const paths = at
    .map((path) => path.replace(/^choices\./, ''))
    .filter((path) => !EXPECTED_PATHS.test(path))
  const [first, ...more] = paths
  if (first === undefined) return undefined
  return [first, ...more.slice(0, 1)].map((path) => `\`${path}\``).join(', ')
}

/** Messages and tools are where they are expected, and the model's path changes for streams. */
const EXPECTED_PATHS =
  /^(?:path|messages|contents|input|tools|message\.content|usage\.total_tokens)(?:\.|$)/

function joined(sign: string, texts: readonly (string | undefined)[]): string {
  const parts = texts.filter((text) => text !== undefined)
  return parts.length === 0 ? sign : `${sign} ${parts.join('; ')}`
}
