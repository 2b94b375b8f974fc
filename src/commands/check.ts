/**
 * `sluice check`: whether a configuration file would be taken, and if not, where and why.
 * Starts nothing and writes nothing.
 */
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { baseUrlNote } from '../config/base-url.js'
import { isConfigured, type Catalogue, type Config } from '../config/config.js'
import { loadConfig, type LoadResult } from '../config/load.js'
import { formatProblem, type ConfigProblem } from '../config/problem.js'
import { createRouter } from '../routing/router.js'
import { Budgets, hasBudget, termsText } from './budget-terms.js'
import type { Command } from './command.js'
import { configPath } from './config-option.js'

/** `sluice check`. */
export const command: Command = {
  name: 'check',
  summary: 'say whether a configuration file is good, with file, line and column',
  help: `
Usage: sluice check [--config FILE] [--json]

Gives the verdict that loading the file would give, without starting anything. Exits with 0 where
the file is good and with 1 where it is not.

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
    notes: notesOn(loaded.config, loaded.catalogue),
  }
}

function verdictText(loaded: LoadResult): string {
  if (!loaded.ok) return problemLines(loaded.errors)
  const { config, catalogue } = loaded
  const upstreams = Object.values(config.upstreams)
  const lines = [
    `${fromHere(loaded.sources.path)}: good (${upstreams.length} upstreams, ${config.routes.length} routes, ${catalogue.models.length} models)`,
  ]
  for (const upstream of upstreams) {
    if (isConfigured(upstream)) continue
    const source = upstream.apiKeySource ?? ''
    lines.push(
      `note: upstream ${upstream.name} has no key: ${source} is not set; it would answer 503`,
    )
  }
  lines.push(...notesOn(config, catalogue).map((note) => `note: ${note}`))
  return lines.join('\n')
}

/** More models than this are counted, not named. */
const MAX_NAMED = 20

/** What is allowed and may not be meant. */
function notesOn(config: Config, catalogue: Catalogue): string[] {
  const router = createRouter(config)
  const notes: string[] = []
  for (const upstream of Object.values(config.upstreams)) {
    const note = baseUrlNote(upstream)
    if (note !== null) notes.push(`upstream ${upstream.name}: ${note}`)
  }
  for (const { name, models } of Object.values(config.upstreams)) {
    for (const { id } of models) {
      const routes = router.all(id).flatMap(({ targets, fallback }) => [...targets, ...fallback])
      if (routes.some(({ upstream }) => upstream.name === name)) continue
      notes.push(`no route leads to upstream ${name} for its model ${id}; clients do not see it`)
    }
  }
  if (!hasBudget(config)) return notes
  const unbounded = new Budgets(config, catalogue).unbounded()
  for (const { model, upstream, terms } of unbounded.slice(0, MAX_NAMED)) {
    const what = termsText(terms, config)
    notes.push(`a budget cannot bound ${model} of upstream ${upstream}: ${what}`)
  }
  const more = unbounded.length - MAX_NAMED
  if (more > 0) notes.push(`a budget cannot bound ${more} more models; see --json`)
  return notes
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
