/**
 * Generates the table of failures in `docs/how-to/fallback-and-retries.md`. The descriptions of failures are
 * written here; what follows each comes from the code.
 */
import { format, resolveConfig } from 'prettier'
import { ERRORS, type ErrorKind } from '../../src/errors.js'
import { reactionTo, type Failure, type Reaction } from '../../src/gateway/attempts/retry-or-fallback.js'

const REACTIONS: Readonly<Record<Reaction, string>> = {
  retry: 'a retry on the same target if `retry` allows it, then the next target',
  next: 'the next target',
  if_repeatable: 'the next target, only with `non_idempotent: true` or an `idempotency-key` header',
  never: 'the client gets the error',
}

/** A row: failures of a kind that have one reaction. */
interface Row {
  readonly kind: ErrorKind
  readonly text: string
  readonly covers: (failure: Failure) => boolean
}

const always = (): boolean => true
const isTransient = ({ status }: Failure): boolean =>
  status !== null && (status === 408 || status === 429 || status >= 500)
const isRefusal = (failure: Failure): boolean =>
  failure.status !== null && failure.status >= 400 && !isTransient(failure)
/** The connection was lost before any byte of a reply, and before the whole request was sent. */
const isUnread = ({ status, wasSent, wasFullySent, hasReplied }: Failure): boolean =>
  status === null && !(wasSent && (wasFullySent || hasReplied))

const ROWS: readonly Row[] = [
  {
    kind: 'upstream_unreachable',
    text: 'no connection: refused, timed out, TLS',
    covers: always,
  },
  {
    kind: 'upstream_busy',
    text: '429, 503, 529: a rate limit or an overload, also if the stream reports it',
    covers: (failure) => !isRefusal(failure),
  },
  { kind: 'upstream_busy', text: 'the same with another status, such as 402', covers: isRefusal },
  {
    kind: 'upstream_failed',
    text: '500, 502 and others from 500, or the same in a reply with status 200; a connection lost before the whole request was sent',
    covers: (failure) => isUnread(failure) || failure.status === 200 || isTransient(failure),
  },
  {
    kind: 'upstream_failed',
    text: 'a connection lost after the whole request was sent, or within the head of the reply',
    covers: (failure) => failure.status === null && !isUnread(failure),
  },
  { kind: 'upstream_failed', text: 'the same with another status, such as 499', covers: isRefusal },
  {
    kind: 'upstream_timeout',
    text: 'a timeout before anything was sent; 408, 504',
    covers: (failure) => !failure.wasSent || isRefusal(failure) || isTransient(failure),
  },
  {
    kind: 'upstream_timeout',
    text: 'a timeout after that',
    covers: (failure) => failure.wasSent && (failure.status ?? 200) === 200,
  },
  {
    kind: 'upstream_truncated',
    text: 'a stream that ends before its first content',
    covers: ({ isStreamed }) => isStreamed,
  },
  {
    kind: 'upstream_truncated',
    text: 'a whole reply that ends early',
    covers: ({ isStreamed }) => !isStreamed,
  },
  {
    kind: 'upstream_malformed',
    text: 'a stream that is not valid in its format',
    covers: ({ isStreamed }) => isStreamed,
  },
  {
    kind: 'upstream_malformed',
    text: 'a whole reply that is not valid in its format',
    covers: ({ isStreamed }) => !isStreamed,
  },
  { kind: 'upstream_denied', text: '401, 403', covers: always },
  { kind: 'upstream_misconfigured', text: '404 for the endpoint, not the model', covers: always },
  {
    kind: 'upstream_credential',
    text: "the cloud's token endpoint gives no credentials",
    covers: always,
  },
  {
    kind: 'overloaded',
    text: 'all connections to the upstream are in use',
    covers: ({ wasSent }) => !wasSent,
  },
]

/** Every failure that the code distinguishes. */
const FAILURES: readonly Failure[] = [null, 200, 402, 408, 429, 499, 500, 529].flatMap((status) =>
  Array.from({ length: 16 }, (_, bits) => ({
    status,
    wasSent: (bits & 1) > 0,
    wasFullySent: (bits & 2) > 0,
    hasReplied: (bits & 4) > 0,
    isStreamed: (bits & 8) > 0,
  })),
)

/** The page with its table as the code has it. */
export async function withReactionTable(page: string): Promise<string> {
  const options = await resolveConfig('docs/how-to/fallback-and-retries.md')
  const table = await format(tableLines().join('\n'), { ...options, parser: 'markdown' })
  const found = /^<!-- Generated from src\/gateway\/attempts\/.* -->\n\n/m.exec(page)
  if (found === null) throw new Error('The page has no mark for the table')
  const start = found.index + found[0].length
  return page.slice(0, start) + page.slice(start).replace(/^(?:\|.*\n)*/, () => table)
}

function tableLines(): string[] {
  const kinds = Object.keys(ERRORS) as ErrorKind[]
  const rowsOf = (kind: ErrorKind): Row[] => ROWS.filter((row) => row.kind === kind)
  const final = kinds.filter((kind) => ERRORS[kind].source === 'upstream' && rowsOf(kind).length === 0)
  for (const kind of kinds) {
    const missing = FAILURES.filter((failure) => !rowsOf(kind).some(({ covers }) => covers(failure)))
    if (reactionsTo(kind, missing).some((reaction) => reaction !== 'never'))
      throw new Error(`No row explains every ${kind}`)
  }
  return [
    '| failure before the first content | kind | what follows |',
    '| --- | --- | --- |',
    ...ROWS.map(({ kind, text, covers }) => {
      const [reaction, ...more] = reactionsTo(kind, FAILURES.filter(covers))
      if (reaction === undefined || more.length > 0) throw new Error(`${kind}, ${text}: not one reaction`)
      return `| ${text} | \`${kind}\` | ${REACTIONS[reaction]} |`
    }),
    `| 400, 404 for the model, 413, 422 | ${final.map((kind) => `\`${kind}\``).join(', ')} and all others | ${REACTIONS.never} |`,
  ]
}

/** The reactions of the code to a kind of error in these failures, each once. */
function reactionsTo(kind: ErrorKind, failures: readonly Failure[]): Reaction[] {
  return [...new Set(failures.map((failure) => reactionTo({ kind, message: '' }, failure)))]
}
