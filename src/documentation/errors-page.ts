/**
 * The text of `docs/reference/errors.md`, made from the table of errors.
 * Reads no file and writes none.
 */
import { causeOf } from '../error-cause.js'
import { ERRORS, type ErrorKind, type ErrorRow } from '../errors.js'
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

\`cause\` is who has to act on it, as the log line has it: \`client\` (the request, its key or its connection), \`limits\` (a rate limit or
budget of the gateway), \`gateway\` (the gateway or its configuration) or \`provider\` (the upstream).
`

const RETRY = { never: 'no', 'before-first-byte': 'before the first byte' } as const

/** The whole page, ending in a newline. */
export function errorsPage(): string {
  const kinds = Object.keys(ERRORS) as ErrorKind[]
  const rows = kinds.map((kind): [ErrorKind, ErrorRow] => [kind, ERRORS[kind]])
  return [
    '<!-- Generated from src/errors.ts by `npm run generate`; do not edit. -->',
    '',
    '# Errors',
    '',
    INTRODUCTION.trim(),
    '',
    '| kind | status | `type` | `fault` | another attempt may help | meaning |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(
      ([kind, { status, retry, meaning }]) =>
        `| \`${kind}\` | ${status} | \`${errorType(status)}\` | \`${causeOf(kind) ?? ''}\` | ${RETRY[retry]} | ${meaning} |`,
    ),
    '',
  ].join('\n')
}
