/**
 * Checks the rules of guardrails that span several keys, and reads the files of plugins. The schema is in
 * `guardrails-schema.ts`.
 */
import { createHash } from 'node:crypto'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { dirname, resolve } from 'node:path'
import { builtInRule } from '../policy/rules/built-in-rules.js'
import { compileExpression, ExpressionError, MAX_INSTRUCTIONS_TOGETHER } from '../policy/rules/expressions.js'
import type { PluginConfig } from './config.js'
import type { Path, ReportFinding } from './config-problem.js'
import { reportUnknown } from './check-routes.js'
import { checkProxy } from './upstream-settings.js'
import type { FileValues } from './schema/config-file-schema.js'
import type { GuardrailSource, GuardrailValues } from './schema/guardrails-schema.js'

type Kind = GuardrailSource['kind']

/** The keys that only some sources have. */
const KEYS_OF: Readonly<Record<string, readonly Kind[]>> = {
  protocol: ['server'],
  proxy: ['server'],
  headers: ['server'],
  params: ['server'],
  model: ['server'],
  thresholds: ['server'],
}

/** Reports problems of the guardrails, and of the lists that name them. */
export function checkGuardrails(values: FileValues, report: ReportFinding): void {
  for (const [name, guardrail] of Object.entries(values.guardrails)) {
    checkGuardrail(guardrail, ['guardrails', name], report)
  }
  const known = Object.keys(values.guardrails)
  const checkNames = (names: readonly string[], path: Path): void => {
    names.forEach((name, index) => {
      const at = [...path, index]
      if (!known.includes(name)) reportUnknown({ what: 'a guardrail', name, path: at }, known, report)
      else if (names.indexOf(name) < index) report(at, 'is a duplicate')
    })
  }
  values.routes.forEach((route, index) => {
    checkNames(route.guardrails, ['routes', index, 'guardrails'])
  })
  for (const [name, { guardrails = [] }] of Object.entries(values.upstreams)) {
    checkNames(guardrails, ['upstreams', name, 'guardrails'])
  }
  checkNative(values, report)
  if (values.plugins.length > 0) return
  for (const [name, { plugin }] of Object.entries(values.guardrails)) {
    if (plugin !== undefined) report(['guardrails', name, 'plugin'], NO_PLUGINS)
  }
  values.routes.forEach(({ when }, index) => {
    if (when?.plugin !== undefined) report(['routes', index, 'when', 'plugin'], NO_PLUGINS)
  })
}

const NO_PLUGINS = 'needs plugins: list the file of the plugin there'

/** Reads the files that a configuration names. */
export interface FileReader {
  readonly folder: string
  /** Null if the file is not readable. */
  readonly readFile: (path: string) => string | null
  readonly whyUnreadable: (path: string) => string
}

/** The plugins with absolute paths; reports those that cannot be read. */
export function pluginsOf(
  names: readonly string[],
  { folder, readFile, whyUnreadable }: FileReader,
  report: ReportFinding,
): PluginConfig[] {
  return names.flatMap((name, index) => {
    const path = resolve(folder, name)
    const text = readFile(path)
    if (text === null) {
      report(['plugins', index], `the file ${whyUnreadable(path)}`)
      return []
    }
    const texts = withImports(path, text, readFile)
    const hash = createHash('sha256').update(JSON.stringify([...texts]))
    return [{ path, files: [...texts.keys()], hash: hash.digest('hex').slice(0, 16) }]
  })
}

/** Relative paths in `import … from`, `export … from`, `import '…'` and `import('…')`. */
const IMPORTED = /\b(?:from|import)(?:\s*\()?\s*(['"])(\.{1,2}\/[^'"\n]+)\1/g
const MAX_PLUGIN_FILES = 100

/** The texts of a module and of those that it imports by relative paths, by path. */
function withImports(
  path: string,
  text: string,
  readFile: FileReader['readFile'],
): ReadonlyMap<string, string> {
  const texts = new Map([[path, text]])
  // A map visits what is added while it is walked.
  for (const [file, content] of texts) {
    for (const [, , name = ''] of content.matchAll(IMPORTED)) {
      const imported = resolve(dirname(file), name)
      if (texts.has(imported) || texts.size >= MAX_PLUGIN_FILES) continue
      const own = readFile(imported)
      if (own !== null) texts.set(imported, own)
    }
  }
  return texts
}

/** The kinds of sources that the guardrail has. */
function kindsOf({ patterns, detect, deny_tools, url, plugin }: GuardrailValues): Kind[] {
  const kinds: Kind[] = []
  if (patterns !== undefined || detect !== undefined) kinds.push('rules')
  if (deny_tools !== undefined) kinds.push('tools')
  if (url !== undefined) kinds.push('server')
  if (plugin !== undefined) kinds.push('plugin')
  return kinds
}

function checkGuardrail(guardrail: GuardrailValues, path: Path, report: ReportFinding): void {
  const [kind, ...others] = kindsOf(guardrail)
  if (kind === undefined) {
    report(path, 'has no source: add patterns, detect, deny_tools, url or plugin')
    return
  }
  if (others.length > 0) {
    report(path, 'must have one source: patterns and detect, deny_tools, url, or plugin')
    return
  }
  for (const [key, kinds] of Object.entries(KEYS_OF)) {
    if (key in guardrail && !kinds.includes(kind)) report([...path, key], 'is only for a url')
  }
  checkAction(guardrail, kind, path, report)
  checkPatterns(guardrail, path, report)
  if (kind === 'server') checkServer(guardrail, path, report)
  const { window_chars: window, overlap_chars: overlap, on } = guardrail
  if (overlap !== undefined && overlap >= window) {
    report([...path, 'overlap_chars'], `must be less than window_chars (${window})`)
  }
  const { apply_to } = guardrail
  if (apply_to !== undefined && Object.keys(apply_to).length !== 1) {
    report([...path, 'apply_to'], 'must have one of all, labels and accounts')
  }
  if (on !== undefined && new Set(on).size < on.length) report([...path, 'on'], 'has a duplicate')
}

function checkAction(
  { action, on, protocol }: GuardrailValues,
  kind: Kind,
  path: Path,
  report: ReportFinding,
): void {
  const at = [...path, 'action']
  if (kind === 'tools') {
    if (action === 'mask') report(at, 'must be block or report: the call of a tool cannot be masked')
    if (on?.includes('request') === true) {
      report([...path, 'on'], 'must be [response]: only replies call tools')
    }
  } else if (kind === 'server' && protocol === 'moderations' && action === 'mask') {
    report(at, 'must be report or absent: moderations cannot mask')
  } else if (kind !== 'rules' && action !== undefined && action !== 'report') {
    report(at, 'must be report or absent: the verdict decides')
  }
}

function checkPatterns(
  { patterns = [], deny_tools: denied = [] }: GuardrailValues,
  path: Path,
  report: ReportFinding,
): void {
  let instructions = 0
  patterns.forEach((pattern, index) => {
    const program = programOrProblem(pattern)
    if (typeof program === 'string') report([...path, 'patterns', index], program)
    else instructions += program
  })
  if (instructions > MAX_INSTRUCTIONS_TOGETHER) {
    report([...path, 'patterns'], 'are too large together: use fewer or smaller repetitions')
  }
  denied.forEach((tool, index) => {
    const star = tool.indexOf('*')
    if (star >= 0 && star < tool.length - 1) {
      report([...path, 'deny_tools', index], 'may have a * only at the end')
    }
  })
}

/** The number of instructions of a pattern, or why it cannot be used. */
function programOrProblem(pattern: string): number | string {
  try {
    const { expression = pattern } = builtInRule(pattern) ?? {}
    return compileExpression(expression).instructions.length
  } catch (error) {
    if (error instanceof ExpressionError) return error.message
    throw error
  }
}

function checkServer(guardrail: GuardrailValues, path: Path, report: ReportFinding): void {
  const { url = '', protocol, headers = {}, proxy } = guardrail
  if (proxy !== undefined) checkProxy(proxy, [...path, 'proxy'], report)
  const address = URL.canParse(url) ? new URL(url) : null
  if (address === null || !/^https?:$/.test(address.protocol)) {
    report([...path, 'url'], 'must be an http or https URL')
  } else if (address.username !== '' || address.password !== '' || /[?#]/.test(url)) {
    report([...path, 'url'], 'must have no user, query or fragment: use headers for a credential')
  }
  if (protocol === undefined) report([...path, 'protocol'], 'is required with url')
  if ('params' in guardrail && protocol !== 'litellm') {
    report([...path, 'params'], 'is only for the protocol litellm')
  }
  for (const key of ['model', 'thresholds'] as const) {
    if (key in guardrail && protocol !== 'moderations') {
      report([...path, key], 'is only for the protocol moderations')
    }
  }
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      report([...path, 'headers', name], 'is not a valid header')
    }
  }
}

/** Ends of POST rules whose bodies are known JSON. */
const KNOWN_ENDS = [
  '/chat/completions',
  '/completions',
  '/responses',
  '/embeddings',
  '/messages',
  '/messages/count_tokens',
  ':generateContent',
  ':streamGenerateContent',
  ':countTokens',
  ':embedContent',
  ':batchEmbedContents',
]

/** Native access is never exempt from guardrails in silence. */
function checkNative(values: FileValues, report: ReportFinding): void {
  const appliesAnywhere = Object.entries(values.guardrails).find(
    ([, { apply_to }]) => apply_to !== undefined,
  )?.[0]
  for (const [name, { native, guardrails }] of Object.entries(values.upstreams)) {
    if (native.length === 0) continue
    const guarded = guardedRouteOf(values.routes, name)
    const path = ['upstreams', name]
    if (guardrails === undefined) {
      const why =
        guarded !== null
          ? `routes[${guarded}] has guardrails and uses it`
          : appliesAnywhere === undefined
            ? null
            : `the guardrail ${appliesAnywhere} has apply_to`
      if (why === null) continue
      report(
        [...path, 'native'],
        `the upstream ${name} has native access, and ${why}: add a list guardrails to the upstream, [] for none`,
      )
    } else if (guardrails.length > 0) {
      native.forEach((rule, index) => {
        if (isKnownBody(rule)) return
        report(
          [...path, 'native', index],
          `the upstream ${name} has guardrails, which cannot read the bodies of this native rule: remove it, or set guardrails to []`,
        )
      })
    }
  }
}

function isKnownBody(rule: string): boolean {
  return rule.startsWith('POST ') && KNOWN_ENDS.some((end) => rule.endsWith(end))
}

/** The index of a route with guardrails that uses the upstream; null if there is none. */
function guardedRouteOf(routes: FileValues['routes'], upstream: string): number | null {
  const index = routes.findIndex(
    ({ guardrails, upstream: only, targets = [], fallback, shadow }) =>
      guardrails.length > 0 &&
      (only === upstream ||
        shadow?.upstream === upstream ||
        [...targets, ...fallback].some((target) => target.upstream === upstream)),
  )
  return index < 0 ? null : index
}
