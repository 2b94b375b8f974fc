/** Generates the table of clients in `docs/reference/clients.md` from the settings of `sluice connect`. */
import { format, resolveConfig } from 'prettier'
import { CLIENTS, KEY_ENV, type Client } from '../../src/config/client-settings.js'

const PAGE = 'docs/reference/clients.md'
const BEGIN = '<!-- Generated from src/config/client-settings.ts by `npm run generate`. -->'
const END = '<!-- End of the clients. -->'

/** The page with the table in place. Throws if it lacks the marks. */
export async function withClientsTable(page: string): Promise<string> {
  const start = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (start < 0 || end < start) throw new Error(`${PAGE} lacks the marks of its table`)
  const table = [
    '| `connect` | client | base URL | variables | files, or steps |',
    '| --- | --- | --- | --- | --- |',
  ]
  const text = [...table, ...CLIENTS.map(row)].join('\n')
  const whole = `${page.slice(0, start)}${BEGIN}\n\n${text}\n\n${page.slice(end)}`
  return format(whole, { ...(await resolveConfig(PAGE)), filepath: PAGE })
}

function row({ name, title, settings }: Client): string {
  const target = { url: 'U', keyEnv: KEY_ENV, models: [{ id: 'M' }] as const, hasBudget: null }
  const { baseUrl, env, files, steps } = settings(target)
  const variables = Object.entries(env).map(([variable, value]) => {
    return value === `\${${variable}}` ? `\`${variable}\`` : `\`${variable}=${value}\``
  })
  const places = files.map(({ path }) => `\`${path}\``)
  const ways = places.length > 0 ? places : [`${String(steps.length)} steps`]
  return `| \`${name}\` | ${title} | \`${baseUrl}\` | ${variables.join(', ')} | ${ways.join(', ')} |`
}
