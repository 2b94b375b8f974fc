/**
 * Generates the diagram of the states of an attempt in `docs/explanation/life-of-a-request.md`, and the
 * tables below it, from `src/gateway/attempts/attempt-states.ts`.
 */
import { format, resolveConfig } from 'prettier'
import { ATTEMPT_EVENTS, ATTEMPT_STATES, ATTEMPT_TABLE } from '../../src/gateway/attempts/attempt-states.js'

const PAGE = 'docs/explanation/life-of-a-request.md'
const BEGIN = '<!-- Generated from src/gateway/attempts/attempt-states.ts by `npm run generate`. -->'
const END = '<!-- End of the states. -->'

/** The page with the diagram in place. Throws if it lacks the marks. */
export async function withAttemptDiagram(page: string): Promise<string> {
  const start = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (start < 0 || end < start) throw new Error(`${PAGE} lacks the marks of the states`)
  const parts = [diagram(), statesTable(), eventsTable()].join('\n\n')
  const text = await format(parts, { ...(await resolveConfig(PAGE)), parser: 'markdown' })
  return `${page.slice(0, start)}${BEGIN}\n\n${text}\n${page.slice(end)}`
}

function diagram(): string {
  const arrows = Object.entries(ATTEMPT_TABLE).flatMap(([from, after]) =>
    Object.entries(after).map(([event, to]) => `    ${from} --> ${to}: ${event}`),
  )
  const lines = ['stateDiagram-v2', '    [*] --> connecting', ...arrows, '    over --> [*]']
  return ['```mermaid', ...lines, '```'].join('\n')
}

function statesTable(): string {
  const rows = Object.entries(ATTEMPT_STATES).map(([name, { means, timeout }]) => {
    return `| \`${name}\` | ${means} | ${timeout ?? ''} |`
  })
  return ['| state | the attempt | timeout |', '| --- | --- | --- |', ...rows].join('\n')
}

function eventsTable(): string {
  const rows = Object.entries(ATTEMPT_EVENTS).map(([name, means]) => `| \`${name}\` | ${means} |`)
  return ['| event | means |', '| --- | --- |', ...rows].join('\n')
}
