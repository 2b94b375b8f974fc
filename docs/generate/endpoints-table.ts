/**
 * Generates the table of endpoints in `docs/how-to/guardrails.md`: what guardrails, recordings, the cache and
 * shadows do for each operation. The places of texts are written here; the rest comes from the code.
 */
import { format, resolveConfig } from 'prettier'
import { isRecordable, isShadowable, OPERATIONS, type Operation } from '../../src/formats/chat/operations.js'
import { ENDPOINTS } from '../../src/formats/match-endpoint.js'

const PAGE = 'docs/how-to/guardrails.md'
const BEGIN = '<!-- Generated from src/formats/chat/operations.ts by `npm run generate`. -->'
const END = '<!-- End of the endpoints. -->'

/** The texts of an operation, and the parts of its requests that no guardrail reads. */
interface Texts {
  readonly request: string
  readonly reply: string
  readonly unseen: string
}

/** Operations that upstreams serve. */
type Served = Exclude<Operation, 'models' | 'stored' | 'stored-input' | 'files' | 'batches'>

const TEXTS: Readonly<Record<Served, Texts>> = {
  chat: {
    request: 'texts, reasoning, arguments and results of calls',
    reply: 'text, refusals, reasoning, calls',
    unseen: 'pictures, sound, files, and the members above',
  },
  completions: { request: '`prompt`', reply: 'text', unseen: '`suffix`, `stop`' },
  embeddings: { request: 'inputs', reply: '', unseen: 'token ids, `title`, media' },
  count: { request: 'as the chat', reply: '', unseen: 'as the chat' },
  rerank: { request: '`query`, documents', reply: '', unseen: 'pictures, other members of documents' },
  moderations: { request: 'texts', reply: '', unseen: 'pictures' },
  images: { request: '`prompt`', reply: '`revised_prompt`', unseen: '' },
  image_edits: { request: '`prompt`', reply: '`revised_prompt`', unseen: 'the files' },
  transcriptions: {
    request: '`prompt`, `keywords[]`, `known_speaker_names[]`',
    reply: 'text, segments, words, subtitles, events',
    unseen: 'the file, `known_speaker_references[]`',
  },
  translations: { request: '`prompt`', reply: 'text, segments, words, subtitles', unseen: 'the file' },
  speech: { request: '`input`, `instructions`', reply: '', unseen: '' },
}

const COLUMNS = [
  'endpoint',
  'judged in the request',
  'judged in the reply',
  '`unseen`',
  'recorded',
  'cached, as in `cache.methods`',
  'shadowed',
]

/** The page with the table in place. Throws if it lacks the marks. */
export async function withEndpointsTable(page: string): Promise<string> {
  const start = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (start < 0 || end < start) throw new Error(`${PAGE} lacks the marks of its table`)
  const head = [`| ${COLUMNS.join(' | ')} |`, `|${' --- |'.repeat(COLUMNS.length)}`]
  const rows = Object.keys(TEXTS).filter(isServed).map(row)
  const whole = `${page.slice(0, start)}${BEGIN}\n\n${[...head, ...rows].join('\n')}\n\n${page.slice(end)}`
  return format(whole, { ...(await resolveConfig(PAGE)), filepath: PAGE })
}

function isServed(name: string): name is Served {
  return Object.hasOwn(TEXTS, name)
}

function row(operation: Served): string {
  const { cacheMethod, judgesReply, unseenReply } = OPERATIONS[operation]
  const { request, reply, unseen } = TEXTS[operation]
  if ((reply !== '') !== (judgesReply === true))
    throw new Error(`the table and the code differ: ${operation}`)
  const unread = unseenReply === undefined ? '' : `the ${unseenReply} of the reply`
  const cells = [
    pathsOf(operation),
    request,
    reply,
    [unseen, unread].filter((each) => each !== '').join(', '),
    isRecordable(operation) ? 'yes' : 'no',
    cacheMethod === null ? 'no' : `\`${cacheMethod}\``,
    isShadowable(operation) ? 'yes' : 'no',
  ]
  return `| ${cells.map((cell) => (cell === '' ? '–' : cell)).join(' | ')} |`
}

/** The client's paths; of Gemini's the last part. */
function pathsOf(operation: Operation): string {
  const paths = ENDPOINTS.filter(({ endpoint }) => endpoint.operation === operation).map(({ path }) =>
    path.includes('{model}') ? path.slice(path.indexOf('}') + 1) : path,
  )
  return [...new Set(paths)].map((path) => `\`${path}\``).join(', ')
}
