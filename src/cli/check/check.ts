/**
 * `sluice check`: whether a configuration file would be taken, and if not, where and why.
 * Starts nothing and writes nothing.
 */
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { isConfigured } from '../../config/config.js'
import { excerpt } from '../../config/excerpt.js'
import { needsRestart } from '../../config/generations/values-in-force.js'
import { loadConfig, type LoadResult } from '../../config/load.js'
import { formatProblem, type ConfigProblem } from '../../config/problem.js'
import { Budgets } from '../keys/budget-terms.js'
import { findGateway, loadGeneration } from '../generations/running-gateway.js'
import { notesOf } from './check-notes.js'
import type { Command } from '../command.js'
import { configPath } from '../config-option.js'

/** `sluice check`. */
export const command: Command = {
  name: 'check',
  summary: 'say whether a configuration file is good, with file, line and column',
  help: `
Usage: sluice check [--config FILE] [--strict] [--json]

Checks the file as loading does, without starting anything. Exits with 0 if the file is good and with 1
if it is not. Notes name what is allowed and may not be meant: keys that are not set or stand in the file in
plain text, variables without braces, addresses that look wrong, routes that can never match, settings
without effect, models that no budget can bound, and what the other targets of a route cannot be sent
because they speak another dialect. If a gateway runs with the file, the settings that it takes over only
with a restart are listed, too.

Options:
  --config FILE   the configuration file; without it, the one that SLUICE_CONFIG names
  --strict        take notes as errors: exit with 1 if there are any
  --json          print one JSON object: { ok, file, errors: [{ file, line, column, path, message,
                  suggestion }] }, and for a file that loads file_hash, upstreams, routes, models, unbounded
                  (models whose cost a budget cannot bound), notes, and needs_restart; with --strict, errors
                  has the notes too

Example:
  sluice check --config config/gateway.yaml
`,
  async run(argv) {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        config: { type: 'string' },
        strict: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    const config = configPath(values.config, 'sluice check')
    const loaded = loadConfig(config, process.env)
    const notes = loaded.ok ? notesOf(loaded) : []
    const isGood = loaded.ok && !(values.strict && notes.length > 0)
    const found = { loaded, notes, isGood, restart: await restartOf(loaded) }
    console.log(values.json ? JSON.stringify(verdict(found)) : verdictText(found))
    return isGood ? 0 : 1
  },
}

interface Found {
  readonly loaded: LoadResult
  readonly notes: readonly string[]
  /** Not good: the file is refused, or notes are errors and there are some. */
  readonly isGood: boolean
  /** Settings that the running gateway takes over only with a restart; null if no gateway runs with the file. */
  readonly restart: readonly string[] | null
}

async function restartOf(loaded: LoadResult): Promise<readonly string[] | null> {
  if (!loaded.ok) return null
  const gateway = await findGateway(loaded, process.env)
  if (gateway === null) return null
  const started = await loadGeneration(loaded, gateway, gateway.startedGeneration)
  return started === null ? null : needsRestart(started, loaded.config)
}

function verdict({ loaded, notes, isGood, restart }: Found): object {
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
    ok: isGood,
    file,
    errors: isGood ? [] : notes.map((note) => problemOf(file, note)),
    file_hash: loaded.fileHash,
    upstreams,
    routes: loaded.config.routes.length,
    models: loaded.catalogue.models.length,
    unbounded: new Budgets(loaded.config, loaded.catalogue).unbounded(),
    notes,
    needs_restart: restart,
  }
}

/** A note as an error of the file as a whole. */
function problemOf(file: string, message: string): ConfigProblem {
  return { file, line: 1, column: 1, path: '', message, suggestion: null }
}

function verdictText({ loaded, notes, isGood, restart }: Found): string {
  if (!loaded.ok) return errorsText(loaded)
  const { config, catalogue } = loaded
  const upstreams = Object.values(config.upstreams)
  const opinion = isGood ? 'good' : 'refused, since --strict takes notes as errors'
  const kind = isGood ? 'note' : 'error'
  return [
    `${fromHere(loaded.sources.path)}: ${opinion} (${upstreams.length} upstreams, ${config.routes.length} routes, ${catalogue.models.length} models)`,
    ...notes.map((note) => `${kind}: ${note}`),
    ...(restart ?? []).map((name) => `restart: ${name} takes effect with "sluice restart"`),
  ].join('\n')
}

/** Each problem with its line of the file and a caret below the column. */
function errorsText({ errors, sources }: Extract<LoadResult, { ok: false }>): string {
  const blocks = errors.map((problem) => {
    const { file, line, column } = problem
    const text = file === sources.path ? sources.text : sources.files[file]
    const source = excerpt(text ?? '', line, column)
    return source === null ? problemLines([problem]) : `${problemLines([problem])}\n${source}`
  })
  return blocks.join('\n')
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
