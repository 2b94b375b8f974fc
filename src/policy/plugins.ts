/**
 * Loads the plugins of a generation and calls them. A plugin runs in the gateway's process and is trusted; a
 * call that throws, is late or returns another shape is an error, never a verdict.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { register } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Config, PluginConfig } from '../config/config.js'
import type { GuardrailConfig, GuardSide } from '../config/schema/guardrails-schema.js'
import type { ChatEvent } from '../formats/chat/event.js'
import { deepFreeze } from '../base/deep-freeze.js'
import { isObject } from '../base/json.js'
import type { ChatRequest } from '../formats/chat/request.js'
import type { Judge, JudgedRequest } from './guardrail.js'
import { GuardError, PASS, type Part, type Verdict } from './verdict.js'
import type {
  Plugin,
  PluginCondition,
  PluginContext,
  PluginEvent,
  PluginGuardrail,
  PluginObserver,
  PluginRequest,
  PluginSummary,
  PluginVerdict,
} from './plugin-interface.js'

const CONDITION_MS = 5
const CHECK_MS = 5_000
/** Consecutive errors after which an observer is skipped until the next generation. */
const MAX_OBSERVER_ERRORS = 10
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/

/** Counts errors of plugins, and writes their lines. */
interface PluginServices {
  pluginError(plugin: string, hook: string): void
}

/** Why a plugin does not load: `FILE:LINE: REASON`. */
export class PluginError extends Error {}

/** Loaded modules by file and content. */
const loaded = new Map<string, Plugin>()

function keyOf({ path, hash }: PluginConfig): string {
  return `${path} ${hash}`
}

/** Whether all plugins are loaded. */
export function arePluginsLoaded({ plugins }: Pick<Config, 'plugins'>): boolean {
  return plugins.every((plugin) => loaded.has(keyOf(plugin)))
}

/** Loads the plugins that are not loaded yet. Rejects with `PluginError`. */
export async function loadPlugins(config: Pick<Config, 'plugins' | 'guardrails' | 'routes'>): Promise<void> {
  for (const plugin of config.plugins) {
    const key = keyOf(plugin)
    if (!loaded.has(key)) loaded.set(key, await loadPlugin(plugin))
  }
  checkNames(config)
}

/** Adds the query of the importing module, which has the hash, to its relative imports. */
const HOOKS = `export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context)
  const query = /\\?content=\\w+$/.exec(context.parentURL ?? '')
  if (query === null || !/^\\.{1,2}\\//.test(specifier) || resolved.format === 'commonjs') return resolved
  return resolved.url.includes('?') ? resolved : { ...resolved, url: resolved.url + query[0] }
}`
let hasHooks = false

async function loadPlugin({ path, hash, files }: PluginConfig): Promise<Plugin> {
  let exported: unknown
  if (files.length > 1 && !hasHooks) {
    hasHooks = true
    register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)
  }
  try {
    // The hash makes each content a module of its own.
    const module = (await import(`${pathToFileURL(path).href}?content=${hash}`)) as object
    exported = Reflect.get(module, 'default')
  } catch (error) {
    const place = await placeOf(error, files)
    throw new PluginError(`${place}: ${reasonOf(error)}`, { cause: error })
  }
  const problem = problemOf(exported)
  if (problem === null && isPlugin(exported)) return exported
  throw new PluginError(`${path}:${exportLine(path)}: ${problem ?? 'is not a plugin'}`)
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? '') : ''
}

/** `FILE:LINE` of the file, of a plugin and what it imports, in which it failed. */
async function placeOf(error: unknown, files: readonly string[]): Promise<string> {
  for (const file of files) {
    const text = error instanceof SyntaxError ? await syntaxErrorOf(file) : stackOf(error)
    const line = lineIn(text, file)
    if (line !== null) return `${file}:${line}`
  }
  return `${files[0] ?? ''}:1`
}

/** Node reports the position of a syntax error only on the command line, which calls its input `[stdin]`. */
function syntaxErrorOf(path: string): Promise<string> {
  return new Promise((resolve) => {
    const args = ['--check', '--input-type=module', '-']
    const check = execFile(process.execPath, args, { timeout: CHECK_MS }, (_, __, stderr) => {
      resolve(stderr.replace('[stdin]', path))
    })
    check.stdin?.on('error', () => undefined).end(readFileSync(path))
  })
}

/** The first line of the file that the text names; null if it names none. */
function lineIn(text: string, path: string): string | null {
  for (const prefix of [pathToFileURL(path).href, path]) {
    const at = text.indexOf(prefix)
    const line = at < 0 ? null : /^[^:\s]*:(\d+)/.exec(text.slice(at + prefix.length))
    if (line?.[1] !== undefined) return line[1]
  }
  return null
}

function exportLine(path: string): number {
  const lines = readFileSync(path, 'utf8').split('\n')
  return (
    Math.max(
      0,
      lines.findIndex((line) => line.startsWith('export default')),
    ) + 1
  )
}

function isPlugin(value: unknown): value is Plugin {
  return problemOf(value) === null
}

/** What is wrong with the default export; null if it is a plugin. */
function problemOf(value: unknown): string | null {
  if (!isObject(value)) return 'the default export must be a plain object'
  const { api, name, guardrails = {}, conditions = {}, observers = {} } = value
  if (api !== 1) return 'api must be 1'
  if (typeof name !== 'string' || !NAME.test(name)) {
    return 'name must be 1 to 64 letters, digits, dashes or underscores'
  }
  const hooks: readonly (readonly [string, unknown, (hook: unknown) => boolean])[] = [
    ['guardrails', guardrails, (hook) => isObject(hook) && typeof hook['judge'] === 'function'],
    ['conditions', conditions, (hook) => typeof hook === 'function'],
    ['observers', observers, isObserver],
  ]
  for (const [kind, map, isHook] of hooks) {
    if (!isObject(map)) return `${kind} must be an object`
    for (const [hook, each] of Object.entries(map)) {
      if (!NAME.test(hook)) return `${kind}: a name must be letters, digits, dashes or underscores`
      if (!isHook(each)) return `${kind}.${hook} has another form`
    }
  }
  return null
}

function isObserver(value: unknown): boolean {
  if (!isObject(value)) return false
  return (['request', 'event', 'end'] as const).every(
    (hook) => value[hook] === undefined || typeof value[hook] === 'function',
  )
}

/** Refuses duplicate plugins and names that no plugin has. */
function checkNames({
  plugins,
  guardrails,
  routes,
}: Pick<Config, 'plugins' | 'guardrails' | 'routes'>): void {
  const own = ownPlugins(plugins)
  const names = own.map(({ name }) => name)
  const double = names.find((name, index) => names.indexOf(name) < index)
  if (double !== undefined) throw new PluginError(`plugins: two plugins have the name "${double}"`)
  for (const { name, source } of guardrails) {
    if (source.kind === 'plugin') {
      assertHook(own, {
        place: `guardrails.${name}.plugin`,
        hook: source.plugin,
        kind: 'guardrails',
      })
    }
  }
  routes.forEach(({ when }, index) => {
    const hook = when?.plugin ?? null
    if (hook !== null) assertHook(own, { place: `routes[${index}].when.plugin`, hook, kind: 'conditions' })
  })
}

function assertHook(
  plugins: readonly Plugin[],
  of: { readonly place: string; readonly hook: string; readonly kind: 'guardrails' | 'conditions' },
): void {
  const { place, hook, kind } = of
  const [name = '', own = ''] = hook.split('.')
  const plugin = plugins.find((each) => each.name === name)
  const list = plugin === undefined ? null : Object.keys(plugin[kind] ?? {})
  if (list?.includes(own) === true) return
  const why =
    list === null ? `no plugin has the name "${name}"` : `the plugin "${name}" has no "${own}" in ${kind}`
  throw new PluginError(`${place}: ${why}`)
}

function ownPlugins(plugins: readonly PluginConfig[]): Plugin[] {
  return plugins.flatMap((plugin) => loaded.get(keyOf(plugin)) ?? [])
}

/** The request of a call. */
export interface CalledFor {
  readonly requestId: string
  readonly accountId: string
  readonly keyId: string
  readonly labels: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly log: (message: string) => void
}

function contextOf({ requestId, accountId, keyId, labels, signal, log }: CalledFor): PluginContext {
  return Object.freeze({
    request_id: requestId,
    account_id: accountId,
    key_id: keyId,
    labels: Object.freeze({ ...labels }),
    log,
    signal,
  })
}

/** A frozen copy, so that a plugin changes nothing. */
function requestOf(
  { model, stream, messages, tools }: ChatRequest,
  labels: Readonly<Record<string, string>>,
): PluginRequest {
  const isSystem = (role: string): boolean => role === 'system' || role === 'developer'
  const copy = structuredClone({
    model,
    stream,
    system: messages.filter(({ role }) => isSystem(role)),
    messages: messages.filter(({ role }) => !isSystem(role)),
    tools,
    labels: { ...labels },
  })
  return deepFreeze(copy)
}

/** An observer with its errors in this generation. */
interface OwnObserver {
  readonly plugin: string
  readonly hook: string
  readonly observer: PluginObserver
  errors: number
}

/** The plugins of one generation. */
export class Plugins {
  private readonly plugins: readonly Plugin[]
  private readonly observers: readonly OwnObserver[]
  private readonly services: PluginServices

  /** Only after `loadPlugins`. */
  constructor(plugins: readonly PluginConfig[], services: PluginServices) {
    this.plugins = ownPlugins(plugins)
    this.services = services
    this.observers = this.plugins.flatMap((plugin) =>
      Object.entries(plugin.observers ?? {}).map(([name, observer]) => {
        return { plugin: plugin.name, hook: `observers.${name}`, observer, errors: 0 }
      }),
    )
  }

  /** The judge of a guardrail. */
  judge(config: GuardrailConfig, hook: string): Judge {
    const [name = '', own = ''] = hook.split('.')
    const guardrail = this.plugins.find((plugin) => plugin.name === name)?.guardrails?.[own]
    const failed = (): void => this.services.pluginError(name, `guardrails.${own}`)
    return new PluginJudge(guardrail ?? null, config.timeoutMs, failed)
  }

  /** Whether the request meets a condition; false if the condition fails. */
  matches(hook: string, request: ChatRequest, of: CalledFor): boolean {
    const [name = '', own = ''] = hook.split('.')
    const condition: PluginCondition | undefined = this.plugins.find((plugin) => plugin.name === name)
      ?.conditions?.[own]
    if (condition === undefined) return false
    const given = requestOf(request, of.labels)
    const beganMs = performance.now()
    try {
      const matches: unknown = condition(given, contextOf(of))
      const isLate = performance.now() - beganMs > CONDITION_MS
      if (typeof matches === 'boolean' && !isLate) return matches
    } catch {
      // Counted below: the message may have text of the request.
    }
    this.services.pluginError(name, `conditions.${own}`)
    return false
  }

  /** Whether any observer sees requests or replies. */
  get observes(): boolean {
    return this.observers.length > 0
  }

  /** The observers of one request; calls their `request` hooks. */
  observe(request: ChatRequest, of: CalledFor): ObservedExchange {
    return new ObservedExchange(this.observers, this.services, { request, of })
  }
}

/** A guardrail of a plugin. */
class PluginJudge implements Judge {
  private readonly guardrail: PluginGuardrail | null
  private readonly timeoutMs: number
  private readonly failed: () => void

  constructor(guardrail: PluginGuardrail | null, timeoutMs: number, failed: () => void) {
    this.guardrail = guardrail
    this.timeoutMs = timeoutMs
    this.failed = failed
  }

  async judge(parts: readonly Part[], on: GuardSide, of: JudgedRequest): Promise<Verdict> {
    const { guardrail } = this
    try {
      if (guardrail === null) throw new GuardError('no such guardrail')
      return await this.judgeAll(guardrail, parts, { on, of })
    } catch (error) {
      this.failed()
      if (error instanceof GuardError) throw error
      throw new GuardError('the plugin failed', { cause: error })
    }
  }

  private async judgeAll(
    guardrail: PluginGuardrail,
    parts: readonly Part[],
    { on, of }: { readonly on: GuardSide; readonly of: JudgedRequest },
  ): Promise<Verdict> {
    const ctx = contextOf(of)
    const texts: string[] = []
    let isMasked = false
    let isReported = false
    for (const [index, { kind, role, text, tool }] of parts.entries()) {
      const part = Object.freeze({ on, kind, role, text, tool })
      const verdict = await inTime(() => guardrail.judge(part, ctx), this.timeoutMs)
      texts.push(text)
      if (verdict === undefined) continue
      const { block, mask, report } = membersOf(verdict)
      if (block !== undefined) return { kind: 'block', reason: block, index }
      if (mask !== undefined) texts[index] = mask
      isMasked ||= mask !== undefined
      isReported ||= report !== undefined
    }
    if (isMasked) return { kind: 'mask', texts }
    return isReported ? { kind: 'report' } : PASS
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** The one member of a verdict. Throws `GuardError` for another shape. */
function membersOf(verdict: unknown): { block?: string; mask?: string; report?: string } {
  const entries = isObject(verdict) ? Object.entries(verdict) : []
  const [name, text] = entries[0] ?? []
  if (entries.length !== 1 || typeof text !== 'string') throw new GuardError('another shape')
  if (name === 'block') return { block: text }
  if (name === 'mask') return { mask: text }
  if (name === 'report') return { report: text }
  throw new GuardError('another shape')
}

/** The result of a call. Rejects with `GuardError` if it is late, also if it blocked the event loop. */
async function inTime(
  call: () => PluginVerdict | Promise<PluginVerdict>,
  timeoutMs: number,
): Promise<PluginVerdict> {
  const beganMs = performance.now()
  const called = call()
  if (!(called instanceof Promise)) {
    if (performance.now() - beganMs > timeoutMs) throw new GuardError('it was late')
    return called
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new GuardError('it was late')), timeoutMs)
  })
  try {
    return await Promise.race([called, late])
  } finally {
    clearTimeout(timer)
  }
}

/** What observers see of one request. */
export class ObservedExchange {
  private readonly observers: readonly OwnObserver[]
  private readonly services: PluginServices
  private readonly context: PluginContext
  private call: { name: string; json: string } | null = null

  constructor(
    observers: readonly OwnObserver[],
    services: PluginServices,
    { request, of }: { readonly request: ChatRequest; readonly of: CalledFor },
  ) {
    this.observers = observers
    this.services = services
    this.context = contextOf(of)
    const seen = requestOf(request, of.labels)
    this.each(({ observer }) => observer.request?.(seen, this.context))
  }

  /** Whether any of them sees events of replies. */
  get readsEvents(): boolean {
    return this.observers.some(({ observer }) => observer.event !== undefined)
  }

  event(event: ChatEvent): void {
    const shown = this.shown(event)
    if (shown === null) return
    Object.freeze(shown)
    this.each(({ observer }) => observer.event?.(shown, this.context))
  }

  end(summary: PluginSummary): void {
    Object.freeze(summary)
    this.each(({ observer }) => observer.end?.(summary, this.context))
  }

  private each(call: (own: OwnObserver) => void): void {
    for (const own of this.observers) {
      if (own.errors >= MAX_OBSERVER_ERRORS) continue
      try {
        call(own)
        own.errors = 0
      } catch {
        own.errors += 1
        this.services.pluginError(own.plugin, own.hook)
      }
    }
  }

  private shown(event: ChatEvent): PluginEvent | null {
    switch (event.type) {
      case 'start':
        return { type: 'start', model: event.model }
      case 'text-delta':
        return { type: 'text', text: event.text }
      case 'refusal-delta':
        return { type: 'refusal', text: event.text }
      case 'thinking-delta':
        return { type: 'reasoning', text: event.text }
      case 'tool-start':
        this.call = { name: event.name, json: '' }
        return null
      case 'tool-delta':
        if (this.call !== null) this.call.json += event.json
        return null
      case 'tool-end': {
        const { name, json } = this.call ?? { name: '', json: '' }
        this.call = null
        return { type: 'tool_call', name, arguments: json }
      }
      case 'usage':
        return { type: 'usage', usage: Object.freeze({ ...event.usage }) }
      case 'finish':
        return { type: 'finish', reason: event.reason }
      case 'error':
        return { type: 'error', kind: event.error.kind }
      default:
        return null
    }
  }
}
