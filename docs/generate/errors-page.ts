/**
 * Generates `docs/reference/errors.md` from the table of errors.
 */
import { causeOf, ERRORS, type ErrorKind, type ErrorRow } from '../../src/errors.js'
import { errorCode, errorType } from '../../src/formats/wire/openai/error-body.js'

const INTRODUCTION = `
Every error of the data plane is one of these kinds. The body contains it as \`kind\`; the log line and the metrics as
\`outcome\`. An app should decide on \`kind\` or on the status, never on the message.

\`\`\`json
{ "error": { "message": "…", "type": "invalid_request_error", "code": null, "kind": "malformed_request", "param": "messages[3].content" } }
\`\`\`

\`code\` is the string that OpenAI's API has for the case, or null; in a 401 it is the number 401. The code of an
upstream with OpenAI's formats is kept. \`param\` is the path of the invalid request field, if there is one. \`retry-after\` is the time
in seconds after which a retry makes sense; \`x-should-retry: false\` advises against one: every kind with "no" in the table has it, and no \`retry-after\`. An error after the start of a stream
is one \`data: {"error":…}\` without \`[DONE]\`, and the connection is closed: such a reply is incomplete.

\`cause\` of the log line is the side that has to act: \`client\` (the request, its key or its connection), \`limits\` (a rate limit
or budget of the gateway), \`gateway\` (the gateway or its configuration) or \`provider\` (the upstream).
`

const RETRY = {
  never: 'no',
  'by-client': 'of the client, later',
  'before-first-byte': 'before the first byte',
} as const

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
    '| kind | status | `type` | `code` | `fault` | another attempt may help | meaning |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows.map(
      ([kind, { status, retry, meaning }]) =>
        `| \`${kind}\` | ${status} | \`${errorType(status, kind)}\` | ${codeOf(kind)} | \`${causeOf(kind) ?? ''}\` | ${RETRY[retry]} | ${meaning} |`,
    ),
    '',
  ].join('\n')
}

/** `code` of the kind, if it does not depend on the case. */
function codeOf(kind: ErrorKind): string {
  const code = kind === 'unauthenticated' ? 401 : errorCode({ kind, message: '' })
  return code === null ? '' : `\`${code}\``
}
