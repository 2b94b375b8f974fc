/** `sluice import`: makes a configuration from that of another gateway. It fetches nothing. */
import { declare } from '../command.js'
import { importLiteLlm } from './litellm/import-litellm.js'
import { importPortkey } from './portkey/import-portkey.js'
import type { ImportSummary } from './report.js'
import { InvalidSource } from './source.js'
import { writeFiles, type OutputFile } from './write-files.js'

interface ImportOptions {
  readonly out: string
  readonly force?: true | undefined
  readonly json?: true | undefined
}

/** `sluice import`. */
export function command() {
  const all = declare({
    name: 'import',
    summary: 'make a configuration from that of LiteLLM or Portkey',
    description: `
Reads the configuration of another gateway and writes gateway.yaml, .env for the secrets that it has in
plain text, and report.md, which has the outcome of every line. Apps keep their keys if --keys has
LiteLLM's keys: 'sluice apply -f accounts.yaml' then makes them. Fetches nothing and opens no store.`,
    exitStatus: '0 written, also if parts were not carried; 1 a file is not valid, or exists; 2 wrong usage.',
    example:
      'sluice import litellm config.yaml --keys keys.jsonl --out sluice\nsluice import portkey portkey.json --out sluice',
  })
  all
    .command('litellm')
    .summary("LiteLLM's config.yaml, with its includes")
    .argument('<CONFIG>', 'the file, YAML or JSON')
    .option('--keys <FILE>', 'JSON lines with the rows of its tables of keys, teams, organizations and users')
    .option('--out <DIR>', 'the folder for the files', '.')
    .option('--force', 'replace files that exist')
    .option('--json', 'print the report as JSON')
    .action((config, options) => {
      const { keys = null } = options
      run(options, () => importLiteLlm({ config, keys, env: process.env, nowMs: Date.now() }))
    })
  all
    .command('portkey')
    .summary("one of Portkey's config objects")
    .argument('<CONFIG>', 'the file, JSON')
    .option('--out <DIR>', 'the folder for the files', '.')
    .option('--force', 'replace files that exist')
    .option('--json', 'print the report as JSON')
    .action((config, options) => {
      run(options, () => importPortkey({ config, env: process.env }))
    })
  return all
}

function run(
  { out, force, json }: ImportOptions,
  convert: () => { readonly files: readonly OutputFile[]; readonly summary: ImportSummary },
): void {
  try {
    const { files, summary } = convert()
    writeFiles(out, files, force === true)
    process.stdout.write(json === true ? `${JSON.stringify(summary)}\n` : shown(out, files, summary))
    process.exitCode = 0
  } catch (error) {
    if (!(error instanceof InvalidSource)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}

function shown(out: string, files: readonly OutputFile[], summary: ImportSummary): string {
  const { carried, changed, not_carried: missing, models, keys, items } = summary
  const ready = models.filter(({ status }) => status === 'ready').length
  const noKey = models.filter(({ status }) => status === 'no_key').length
  const lost = items.filter(({ outcome }) => outcome === 'not_carried')
  return [
    `Wrote ${files.map(({ name }) => name).join(', ')} in ${out}`,
    `${carried} carried, ${changed} changed, ${missing} not carried (report.md)`,
    `Models: ${ready} ready, ${noKey} without a key, ${models.length - ready - noKey} not carried`,
    ...(keys.read === 0 ? [] : [`Keys: ${keys.carried} of ${keys.read} carried`]),
    ...lost.slice(0, MAX_SHOWN).map(({ line, path, note }) => `  line ${line}: ${path}: ${note ?? ''}`),
    ...(lost.length > MAX_SHOWN ? [`  and ${lost.length - MAX_SHOWN} more`] : []),
    '',
  ].join('\n')
}

const MAX_SHOWN = 20
