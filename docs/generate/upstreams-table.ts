/**
 * Generates the table of endpoints beside chat by upstream in `docs/how-to/pictures-and-sound.md`, from the
 * presets and the usual forms of each dialect and cloud.
 */
import { format, resolveConfig } from 'prettier'
import { PRESET_NAMES, PRESETS } from '../../src/config/presets.js'
import { TASK_NAMES, usualBatchForm, usualForms, type TaskForms } from '../../src/formats/chat/operations.js'

const PAGE = 'docs/how-to/pictures-and-sound.md'
const BEGIN = '<!-- Generated from src/config/presets.ts by `npm run generate`. -->'
const END = '<!-- End of the upstreams. -->'

/** An upstream as the file names it. */
export interface UpstreamKind {
  /** As Markdown. */
  readonly name: string
  /** Its settings besides the URL and the key. */
  readonly settings: Readonly<Record<string, string>>
  readonly forms: TaskForms
  /** The form of its batches; `none`: they are refused. */
  readonly batch: string
}

const DIALECTS = ['openai', 'openai-chat', 'openai-responses', 'anthropic', 'gemini'] as const
const CLOUDS = [
  { platform: 'azure', dialect: 'openai' },
  { platform: 'bedrock', dialect: 'converse' },
  { platform: 'bedrock', dialect: 'anthropic' },
  { platform: 'vertex', dialect: 'gemini' },
  { platform: 'vertex', dialect: 'anthropic' },
] as const

/** Every preset, every dialect without one, and every cloud. */
export function upstreamKinds(): UpstreamKind[] {
  return [
    ...DIALECTS.map((dialect): UpstreamKind => {
      const served = { dialect, platform: null }
      const batch = usualBatchForm(served, null)
      return { name: `dialect \`${dialect}\``, settings: { dialect }, forms: usualForms(served), batch }
    }),
    ...CLOUDS.map(({ platform, dialect }): UpstreamKind => {
      const served = { dialect, platform }
      const name = `platform \`${platform}\` with \`${dialect}\``
      return { name, settings: served, forms: usualForms(served), batch: usualBatchForm(served, null) }
    }),
    ...PRESET_NAMES.map((preset): UpstreamKind => {
      const { dialect = 'openai-chat', operations } = PRESETS[preset]
      const served = { dialect, platform: null }
      const forms = operations ?? usualForms(served)
      return { name: `\`${preset}\``, settings: { preset }, forms, batch: usualBatchForm(served, preset) }
    }),
  ]
}

/** The page with the table in place. Throws if it lacks the marks. */
export async function withUpstreamsTable(page: string): Promise<string> {
  const start = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (start < 0 || end < start) throw new Error(`${PAGE} lacks the marks of its table`)
  const rows = new Map<string, string[]>()
  for (const { name, forms, batch } of upstreamKinds()) {
    const cells = [...TASK_NAMES.map((task) => forms[task]), batch]
      .map((form) => (form === 'none' ? 'refused' : `\`${form}\``))
      .join(' | ')
    rows.set(cells, [...(rows.get(cells) ?? []), name])
  }
  const columns = ['upstream', ...TASK_NAMES.map((task) => `\`${task}\``), '`batch`']
  const lines = [
    `| ${columns.join(' | ')} |`,
    `|${' --- |'.repeat(columns.length)}`,
    ...Array.from(rows, ([cells, names]) => `| ${names.join(', ')} | ${cells} |`),
  ]
  const whole = `${page.slice(0, start)}${BEGIN}\n\n${lines.join('\n')}\n\n${page.slice(end)}`
  return format(whole, { ...(await resolveConfig(PAGE)), filepath: PAGE })
}
