/**
 * A guardrail and a condition of a route:
 *
 *   plugins: [examples/plugins/office-hours.mjs]
 *   guardrails: { names: { plugin: office.project_names } }
 *   routes: [{ prefix: gpt-, when: { plugin: office.closed }, upstream: cheap }, …]
 */
import { definePlugin } from 'sluice/pipeline'

const SECRET_PROJECTS = ['Blue Heron', 'Nightjar']

/** Masks the names of projects, and refuses requests for their launch dates. */
function judgeProjectNames({ text }) {
  const named = SECRET_PROJECTS.filter((name) => text.includes(name))
  if (named.length === 0) return undefined
  if (/\blaunch date\b/i.test(text)) return { block: 'Launch dates are confidential.' }
  return { mask: named.reduce((masked, name) => masked.replaceAll(name, '[project]'), text) }
}

export default definePlugin({
  api: 1,
  name: 'office',
  guardrails: { project_names: { judge: judgeProjectNames } },
  conditions: {
    /** On Saturdays and Sundays (UTC), and for keys with the label `batch`. */
    closed: (request) => request.labels.batch !== undefined || new Date().getUTCDay() % 6 === 0,
  },
})
