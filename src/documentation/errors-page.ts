/**
 * The text of `docs/reference/errors.md`, made from the table of errors.
 * Reads no file and writes none.
 */
import { ERRORS, type ErrorRow } from '../errors.js'
import { errorType } from '../wire/error-body.js'

const INTRODUCTION = `
Every error of the data plane is one of these kinds. The body has it as \`kind\`; the log line and the metrics have it as
\`outcome\`. An app should decide on \`kind\` or on the status, never on the message.

\`\`\`json
{ "error": { "message": "…", "type": "invalid_request_error", "code": 400, "kind": "malformed_request", "param": "messages[3].content" } }
\`\`\`

\`code\` is the status as a number. \`param\` names the request field at fault, where there is one. \`retry-after\` says when another
try makes sense; \`x-should-retry: false\` says that none does. An error after a streamed answer has begun comes as one
\`data: {"error":…}\` without \`[DONE]\`, and the connection is cut: such an answer is not complete.
`

const FAULT = { client: 'the caller', gateway: 'the gateway', upstream: 'the upstream' } as const

const RETRY = { never: 'no', 'before-first-byte': 'before the first byte' } as const

/** The whole page, ending in a newline. */
export function errorsPage(): string {
  const rows: [string, ErrorRow][] = Object.entries(ERRORS)
  return [
    '<!-- Generated from src/errors.ts by `npm run generate`; do not edit. -->',
    '',
    '# Errors',
    '',
    INTRODUCTION.trim(),
    '',
    '| kind | status | `type` | whose fault | another attempt may help | meaning |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(
      ([kind, { status, source, retry, meaning }]) =>
        `| \`${kind}\` | ${status} | \`${errorType(status)}\` | ${FAULT[source]} | ${RETRY[retry]} | ${meaning} |`,
    ),
    '',
  ].join('\n')
}
