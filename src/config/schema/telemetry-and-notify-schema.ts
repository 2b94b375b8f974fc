/**
 * `telemetry:` and `notify:`: traces, and webhooks about budgets, failures and the configuration. Part of
 * `config-file-schema.ts`.
 */
import * as z from 'zod'
import { LABEL_NAME } from '../../accounts/labels.js'
import { NOTIFY_GROUPS } from '../../observe/notification.js'
import { secretProblem } from '../../observe/sign-webhook.js'
import type { Path, ReportFinding } from '../config-problem.js'
import { whole } from './value-types.js'

/** `telemetry:` */
export const telemetrySchema = z
  .strictObject({
    otlp: z
      .string()
      .max(2_048)
      .optional()
      .describe(
        'Base URL of an OTLP receiver over HTTP, as in `http://127.0.0.1:4318`; traces go to `/v1/traces` below it. Default: the environment variable OTEL_EXPORTER_OTLP_ENDPOINT, else no traces. The other OTEL_ variables apply as well.',
      ),
    capture_content: z
      .boolean()
      .default(false)
      .describe(
        'Whether spans contain prompts and replies, at most 64 KiB of each. Everyone with access to the traces can then read them.',
      ),
  })
  .prefault({})
  .describe('Traces (OpenTelemetry).')

/** Labels that series have already, or that Prometheus adds. */
const TAKEN = new Set(['label', 'value', 'upstream', 'cause', 'kind', 'instance', 'job', 'le'])
const MAX_LABELS = 10

/** `metrics:` */
export const metricsSchema = z
  .strictObject({
    labels: z
      .record(
        z.string().regex(LABEL_NAME, { error: 'must have 1 to 32 characters (a-z, 0-9, _ . -)' }),
        whole(1, 1_000),
      )
      .default({})
      .describe(
        'Labels of keys that have series of their own in `sluice_label_requests_total`, `sluice_label_cost_usd_total` and `sluice_label_limit_rejections_total`, and the number of their values: `{ team: 50 }` has series with `team="…"` for the first 50 values that this gateway sees, and `team="other"` for the rest. A dot or dash in the name becomes `_` in the series.',
      ),
  })
  .prefault({})
  .describe('Metrics (Prometheus).')

/** `notify:` */
export const notifySchema = z
  .array(
    z.strictObject({
      url: z.string().max(2_048).describe('The URL that webhooks are sent to: http or https.'),
      events: z
        .array(z.enum(NOTIFY_GROUPS))
        .min(1)
        .default([...NOTIFY_GROUPS])
        .describe(
          'Events: `budget` (50 %, 80 % and 100 % of a budget are used), `breaker` (a circuit breaker opens, half-opens or closes), `config` (a changed configuration is refused), `canary` (a canary is aborted), `error_rate` (5 % of the requests of a minute end with a 5xx reply), `credential` (an upstream refuses an API key of the gateway). Left out: all.',
        ),
      secret: z
        .string()
        .describe(
          'The secret for signing webhooks, as `${NAME}` or `${file:PATH}`: `whsec_` and 24 to 64 bytes in base64, or a text of 16 to 512 characters, of which the bytes are used.',
        ),
      allow_private_address: z
        .boolean()
        .optional()
        .describe(
          'Whether `url` may resolve to a loopback, private or link-local address. Default: true if its host is itself such an address or `localhost`, else false.',
        ),
    }),
  )
  .max(32)
  .default([])
  .describe('Webhooks, signed after the Standard Webhooks specification (docs/reference/webhooks.md).')

/** An address, or a name with one: `Sluice <sluice@example.com>`. */
const SENDER = /^(?:[^<>\r\n"]{1,100} <[^\s<>@]{1,64}@[^\s<>@]{1,255}>|[^\s<>@]{1,64}@[^\s<>@]{1,255})$/

/** `smtp:` */
export const smtpSchema = z
  .strictObject({
    url: z
      .string()
      .max(2_048)
      .describe(
        'The mail server: `smtp://[USER:PASSWORD@]HOST[:PORT]` (port 587; TLS if the server offers it, and always with a password) or `smtps://…` (port 465). Write the password as `${NAME}` or `${file:PATH}`, percent-encoded.',
      ),
    from: z
      .string()
      .regex(SENDER, { error: 'must be an e-mail address, or a name and <address>' })
      .describe('The sender, such as `Sluice <sluice@example.com>`.'),
  })
  .optional()
  .describe(
    'Mails to the owners of an account when 50 %, 80 % and 100 % of one of its budgets are used, and one-time links to those who set a password with them. Without it, none are sent, and the maker of a link hands it over.',
  )

/** Reports problems of the sections. */
export function checkTelemetry(
  {
    telemetry: { otlp },
    notify,
    smtp,
  }: {
    readonly telemetry: z.output<typeof telemetrySchema>
    readonly notify: z.output<typeof notifySchema>
    readonly smtp?: z.output<typeof smtpSchema>
  },
  report: ReportFinding,
): void {
  if (smtp !== undefined && !isMailServer(smtp.url)) {
    report(['smtp', 'url'], 'must be smtp://[USER:PASSWORD@]HOST[:PORT] or smtps://…')
  }
  if (otlp !== undefined) checkUrl(otlp, ['telemetry', 'otlp'], report)
  for (const [index, { url, secret }] of notify.entries()) {
    checkUrl(url, ['notify', index, 'url'], report)
    const problem = secretProblem(secret)
    if (problem !== null) report(['notify', index, 'secret'], problem)
  }
}

/** Reports names that two labels, or a label and the series, would share. */
export function checkMetrics(values: z.output<typeof metricsSchema>, report: ReportFinding): void {
  const names = Object.keys(values.labels)
  const path = ['metrics', 'labels']
  if (names.length > MAX_LABELS) report(path, `must have at most ${MAX_LABELS} entries`)
  const firsts = new Map<string, string>()
  for (const name of names) {
    const series = seriesOf(name)
    const first = firsts.get(series)
    if (TAKEN.has(series)) report([...path, name], 'is the name of a label that all series have')
    else if (first !== undefined) {
      report([...path, name], `has the same name in series as "${first}": ${series}`)
    }
    firsts.set(series, name)
  }
}

/** The resolved section; only for values without findings of `checkMetrics`. */
export function metricsOf({ labels }: z.output<typeof metricsSchema>) {
  return {
    /** `series`: the name of the label in series; `values`: how many have series of their own. */
    labels: Object.entries(labels).map(([name, values]) => {
      return { name, series: seriesOf(name), values }
    }),
  }
}

/** A name that Prometheus accepts. */
function seriesOf(name: string): string {
  return name.replaceAll(/[.-]/g, '_').replace(/^(?=\d|__)/, 'label_')
}

function isMailServer(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(text)
  const isPlain = pathname.replace('/', '') === '' && search === '' && hash === ''
  const hasBoth = (username === '') === (password === '')
  return /^smtps?:$/.test(protocol) && hostname !== '' && isPlain && hasBoth
}

function checkUrl(text: string, path: Path, report: ReportFinding): void {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    report(path, 'must be a URL that starts with https:// or http://')
  } else if (url.username !== '' || url.password !== '') {
    report(path, 'must not contain a user or password')
  } else if (url.hash !== '') report(path, 'must not have a fragment')
}

/** The resolved section, only for values without findings; `isPrivate` decides about a host name. */
export function notifyOf(values: z.output<typeof notifySchema>, isPrivate: (hostname: string) => boolean) {
  return values.map(({ url, events, secret, allow_private_address }) => ({
    url,
    events: [...new Set(events)],
    secret,
    allowPrivateAddress: allow_private_address ?? isPrivate(new URL(url).hostname),
  }))
}
