/**
 * `sluice check`: whether a configuration file would be taken, and if not, where and why.
 * Starts nothing and writes nothing.
 */
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { isConfigured } from '../config/config.js'
import { loadConfig, type LoadResult } from '../config/load.js'
import { formatProblem, type ConfigProblem } from '../config/problem.js'
import { Budgets } from './budget-terms.js'
import { notesOf } from './check-notes.js'
import type { Command } from './command.js'
import { configPath } from './config-option.js'

/** `sluice check`. */
export const command: Command = {
  name: 'check',
  summary: 'say whether a configuration file is good, with file, line and column',
  help: `
Usage: sluice check [--config FILE] [--json]

Checks the file as loading does, without starting anything. Exits with 0 if the file is good and with 1
if it is not. Notes name what is allowed and may not be meant: keys that are not set, settings without
effect, and what the other targets of a route cannot be sent because they speak another dialect.

Options:
  --config FILE   the configuration file; without it, the one that SLUICE_CONFIG names
  --json          print one JSON object: { ok, file, errors: [{ file, line, column, path, message,
                  suggestion }] }, and for a good file file_hash, upstreams, routes, models, unbounded
                  (models whose cost a budget cannot bound) and notes

Example:
  sluice check --config config/gateway.yaml
`,
  run(argv) {
    const { values } = parseArgs({
      args: [...argv],
      options: { config: { type: 'string' }, json: { type: 'boolean', default: false } },
    })
    const config = configPath(values.config, 'sluice check')
    const loaded = loadConfig(config, process.env)
    console.log(values.json ? JSON.stringify(verdict(loaded)) : verdictText(loaded))
    return Promise.resolve(loaded.ok ? 0 : 1)
  },
}

function verdict(loaded: LoadResult): object {
  const file = loaded.sources.path
  if (!loaded.ok) return { ok: false, file, errors: loaded.errors }
  const upstreams = Object.values(loaded.config.upstreams).map((upstream) => {
    return {
      name: upstream.name,
      configured: isConfigured(upstream),
      api_key_source: upstream.apiKeySource,
    }
  })
  return {
    ok: true,
    file,
    errors: [],
    file_hash: loaded.fileHash,
    upstreams,
    routes: loaded.config.routes.length,
    models: loaded.catalogue.models.length,
    unbounded: new Budgets(loaded.config, loaded.catalogue).unbounded(),
    notes: notesOf(loaded.config, loaded.catalogue),
  }
}

function verdictText(loaded: LoadResult): string {
  if (!loaded.ok) return problemLines(loaded.errors)
  const { config, catalogue } = loaded
  const upstreams = Object.values(config.upstreams)
  const lines = [
    `${fromHere(loaded.sources.path)}: good (${upstreams.length} upstreams, ${config.routes.length} routes, ${catalogue.models.length} models)`,
  ]
  lines.push(...notesOf(config, catalogue).map((note) => `note: ${note}`))
  return lines.join('\n')
}

/** One line for each problem, files named from the working folder. */
export function problemLines(errors: readonly ConfigProblem[]): string {
  return errors
    .map((problem) => formatProblem({ ...problem, file: fromHere(problem.file) }))
    .join('\n')
}

function fromHere(file: string): string {
  const path = relative(process.cwd(), file)
  return path === '' || path.startsWith('..') ? file : path
}
