/** Texts about failures: the cause, and advice for each error kind. Pure. */
import type { Cause, RequestRow } from '../../../control/dashboard/schema/schema.js'

/** The causes of failures, in display order. */
export const CAUSES: readonly Cause[] = ['client', 'limits', 'gateway', 'provider']

/** The names of the causes in charts, columns and filters. */
export const CAUSE_NAMES: Readonly<Record<Cause, string>> = {
  client: 'Client',
  limits: 'Gateway limits',
  gateway: 'Gateway',
  provider: 'Provider',
}

/** The cause in a sentence. */
export function causeText({ cause, upstream }: Pick<RequestRow, 'cause' | 'upstream'>): string {
  switch (cause) {
    case null:
      return ''
    case 'client':
      return 'The client: its request, or its connection.'
    case 'limits':
      return 'A limit of the gateway refused the request.'
    case 'gateway':
      return 'The gateway: its configuration, its store or the program.'
    case 'provider':
      return upstream === null ? 'The provider.' : `The provider behind the upstream "${upstream}".`
  }
}

/** Advice by error kind; self-explanatory kinds have none. `[text](target)` is a link. */
const ADVICE: Readonly<Record<string, string>> = {
  rate_limited: 'Wait until the limit resets, or [raise the limit](limit).',
  budget_exceeded: 'Wait until the budget renews, or [raise it](limit).',
  unknown_model:
    'Use a model id from the [Models page](models), or [add a route](configuration) for this one.',
  forbidden: 'Use a key that is allowed to use this model, or [allow it](key) for this key.',
  malformed_request: 'Correct the field that the message names.',
  untranslatable: 'Remove the field that the message names, or use a model whose provider supports it.',
  guardrail_blocked:
    'The message names the guardrail, and where it found what it refuses. Change the request, or the rule.',
  guardrail_unavailable:
    'Check the guard server or plugin, or set on_error: open. Nothing was sent to the upstream again.',
  context_too_long: 'Shorten the conversation, or use a model with a larger context.',
  upstream_rejected: 'Correct the request. The message of the provider names the problem.',
  upstream_busy: 'Retry later, or [add a fallback](configuration) to the route.',
  upstream_failed: 'Retry the request, or [add a fallback](configuration) to the route.',
  upstream_timeout: 'Retry the request, or [raise the timeout](configuration) of the upstream.',
  upstream_truncated: 'Discard the partial reply and retry the request.',
  upstream_unreachable: 'Check the address of the [upstream](upstream) and the network of the gateway.',
  upstream_denied: 'Correct the API key of the [upstream](upstream) in the configuration.',
  upstream_misconfigured: 'Correct the base_url or dialect of the [upstream](upstream) in the configuration.',
  upstream_credential:
    'Check the identity of the [upstream](upstream) (auth) and the token endpoint of its cloud; the log has the reason.',
  upstream_unconfigured: 'Set the variable that holds the API key of the [upstream](upstream).',
  upstream_malformed: 'Retry the request, and report the reply to the provider.',
  client_gone: 'No action is needed if the user cancelled; else raise the timeout of the client.',
  client_stalled: 'Read the stream faster, or raise client_stall_ms.',
  store_unavailable: 'Check the store of the gateway.',
  overloaded: 'Retry after a moment, or add workers.',
  lost: 'The process that served the request ended. See the log of the gateway.',
  bug: 'See the log of the gateway for this request id.',
}

/** The error kinds with advice, sorted. */
export const KINDS: readonly string[] = Object.keys(ADVICE).sort()

const TARGETS = ['limit', 'key', 'models', 'upstream', 'configuration'] as const

/** What an advice links to. */
export type AdviceTarget = (typeof TARGETS)[number]

interface AdvicePart {
  readonly text: string
  /** Null: plain text. */
  readonly target: AdviceTarget | null
}

/** The advice for a failure, in parts; none for a self-explanatory kind. */
export function adviceFor(outcome: string): readonly AdvicePart[] {
  const parts = (ADVICE[outcome] ?? '').split(/(\[[^[\]]*\]\([a-z]+\))/)
  return parts.flatMap((part) => {
    const [, text = part, name] = /^\[(.*)\]\((.*)\)$/.exec(part) ?? []
    const target = TARGETS.find((each) => each === name) ?? null
    return text === '' ? [] : [{ text, target }]
  })
}

/** The display text of an error kind: `upstream busy`. */
export function kindText(outcome: string): string {
  return outcome.replaceAll('_', ' ')
}

/** One attempt of a request. */
export interface AttemptRow {
  readonly upstream: string
  readonly outcome: string
  /** Duration up to the first content or the failure; null: not recorded. */
  readonly ms: number | null
}

/** The attempts of a request, in order. */
export function attemptsOf({
  attempted,
  attemptMs,
}: Pick<RequestRow, 'attempted' | 'attemptMs'>): AttemptRow[] {
  return (attempted ?? '')
    .split(', ')
    .filter((text) => text !== '')
    .map((text, at) => {
      const end = text.lastIndexOf(':')
      const ms = attemptMs?.[at] ?? null
      return { upstream: text.slice(0, end), outcome: text.slice(end + 1), ms }
    })
}
