/**
 * `sluice check`: validates a configuration file, and prints each problem with its position. No side effects.
 */
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { isConfigured } from '../../config/config.js'
import { excerpt } from '../../config/excerpt.js'
import { needsRestart } from '../../config/generations/values-in-force.js'
import { loadConfig, type LoadResult } from '../../config/load-config.js'
import { formatProblem, type ConfigProblem } from '../../config/problem.js'
import { Budgets } from '../explain/explain-budgets.js'
import { findGateway, loadGeneration } from '../generations/running-gateway.js'
import { notesOf } from './check-notes.js'
import type { Command } from '../command.js'
import { configPath } from '../config-option.js'

/** `sluice check`. */
export const command: Command = {
  name: 'check',
  summary: 'validate a configuration file, with file, line and column of each problem',
  help: `
Usage: sluice check [--config FILE] [--strict] [--json]

Validates the file as the gateway does when it loads it. No side effects.
Notes list settings that are allowed but may be mistakes: API keys that are not set or are in the file in plain
text, variables without braces, suspicious URLs, routes that can never match, settings without effect,
models that no budget can bound, and features that a route's other targets lack because of their dialect.
If a gateway runs with the file, the changes that need a restart are listed as well.

Options:
  --config FILE   the configuration file (default: the variable SLUICE_CONFIG)
  --strict        treat notes as errors: exit 1 if there are any
  --json          print one JSON object: { ok, file, errors: [{ file, line, column, path, message,
                  suggestion }] }, and for a valid file file_hash, upstreams, routes, models, unbounded
                  (models whose cost a budget cannot bound), notes, and needs_restart; with --strict, errors
                  contains the notes

Exit status: 0 the file is valid, 1 it is not (with --strict also if there are notes), 2 wrong usage.

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
    const isAccepted = loaded.ok && !(values.strict && notes.length > 0)
    const found = { loaded, notes, isAccepted, restart: await restartSettingsOf(loaded) }
    console.log(values.json ? JSON.stringify(resultOf(found)) : resultText(found))
    return isAccepted ? 0 : 1
  },
}

interface Found {
  readonly loaded: LoadResult
  readonly notes: readonly string[]
  /** False if the file is not valid, or if notes count as errors and there are some. */
  readonly isAccepted: boolean
  /**
   * Settings that take effect with a restart of the running gateway; null if no gateway runs with the file.
   */
  readonly restart: readonly string[] | null
}

async function restartSettingsOf(loaded: LoadResult): Promise<readonly string[] | null> {
  if (!loaded.ok) return null
  const gateway = await findGateway(loaded, process.env)
  if (gateway === null) return null
  const started = await loadGeneration(loaded, gateway, gateway.startedGeneration)
  return started === null ? null : needsRestart(started.config, loaded.config)
}

function resultOf({ loaded, notes, isAccepted, restart }: Found): object {
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
    ok: isAccepted,
    file,
    errors: isAccepted ? [] : notes.map((note) => problemOf(file, note)),
    file_hash: loaded.fileHash,
    upstreams,
    routes: loaded.config.routes.length,
    models: loaded.catalogue.models.length,
    unbounded: new Budgets(loaded.config, loaded.catalogue).unbounded(),
    notes,
    needs_restart: restart,
  }
}

/** A note as an error about the file. */
function problemOf(file: string, message: string): ConfigProblem {
  return { file, line: 1, column: 1, path: '', message, suggestion: null }
}

function resultText({ loaded, notes, isAccepted, restart }: Found): string {
  if (!loaded.ok) return errorsText(loaded)
  const { config, catalogue } = loaded
  const upstreams = Object.values(config.upstreams)
  const result = isAccepted ? 'valid' : 'refused: --strict treats notes as errors'
  const kind = isAccepted ? 'note' : 'error'
  return [
    `${relativeName(loaded.sources.path)}: ${result} (${counted(upstreams.length, 'upstream')}, ${counted(config.routes.length, 'route')}, ${counted(catalogue.models.length, 'model')})`,
    ...notes.map((note) => `${kind}: ${note}`),
    ...(restart ?? []).map((name) => `restart: ${name} takes effect with "sluice restart"`),
  ].join('\n')
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Each problem with its line of the file and a caret under the column. */
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
    .map((problem) => formatProblem({ ...problem, file: relativeName(problem.file) }))
    .join('\n')
}

function relativeName(file: string): string {
  const path = relative(process.cwd(), file)
  return path === '' || path.startsWith('..') ? file : path
}
