/** The `server` section of the file: keys, rules and resolved values. */
import { DAY_MS } from '../../base/time-units.js'
import { isIP } from 'node:net'
import { availableParallelism, hostname } from 'node:os'
import { resolve } from 'node:path'
import * as z from 'zod'
import type { TlsFiles } from '../../http/read-tls-files.js'
import type { ReportFinding } from '../config-problem.js'
import { section } from './section.js'
import { GUESSABLE, isGuessable, whole } from './value-types.js'

/** The largest body that a gateway may accept, in bytes. */
export const MAX_BODY_BYTES = 268_435_456

/** Three thresholds, one per level. */
const steps = (bound: z.ZodNumber, defaults: [number, number, number]) =>
  z
    .array(bound)
    .length(3, { error: 'must have three numbers, one for each level' })
    .refine((values) => values.every((value, at) => at === 0 || value >= (values[at - 1] ?? 0)), {
      error: 'must be in ascending order',
    })
    .default(defaults)

const ms = z.int().min(1).max(3_600_000)
const share = z.number().min(0.01).max(1)

/** `server.overload:` */
const overloadSchema = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether requests are refused under overload.'),
    max_inflight: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe(
        'Requests in progress in one worker. Level 1 starts at 80 % of this, level 2 at 100 %, level 3 at 110 %.',
      ),
    delay_ms: steps(ms, [100, 250, 500]).describe(
      'Delay of the event loop by the process itself (its longest turn in 100 ms, without time in which the process did not run, averaged over about half a second) for levels 1, 2 and 3.',
    ),
    heap_share: steps(share, [0.8, 0.88, 0.93]).describe(
      'Used share of the heap limit for levels 1, 2 and 3.',
    ),
    open_files_share: steps(share, [0.8, 0.9, 0.95]).describe(
      'Used share of the limit of open files for levels 1, 2 and 3; Linux only.',
    ),
    rise_ms: z
      .int()
      .min(0)
      .max(60_000)
      .default(1_000)
      .describe('How long all readings must exceed a threshold before its level starts.'),
    hold_ms: z
      .int()
      .min(0)
      .max(600_000)
      .default(5_000)
      .describe('How long no reading may exceed a threshold before its level ends.'),
  })
  .prefault({})
  .describe(
    'Overload protection: level 1 closes connections after their reply and refuses keys with the label `priority=low` with 503, level 2 all keys without `priority=high`, level 3 all. Health and metrics are always served.',
  )

/** As browsers send it; apps have their own schemes. */
const ORIGIN = /^[a-z][a-z0-9+.-]{0,63}:\/\/[^\s/?#@A-Z]{1,255}$/
const HOST_NAME = /^[\w-]+(?:\.[\w-]+)*\.?$/
const path = z.string().min(1).max(4_096)

const network = z
  .string()
  .max(64)
  .refine((text) => isNetwork(text), {
    error: 'must be an IP address or a network in CIDR notation, as in 10.0.0.0/8',
  })

const host = z
  .string()
  .min(1)
  .max(255)
  .refine((text) => isIP(text) !== 0 || HOST_NAME.test(text), {
    error: 'must be an IP address or a host name without scheme and port, as in 127.0.0.1',
  })

const origin = z
  .string()
  .max(300)
  .refine((text) => text === '*' || ORIGIN.test(text), {
    error: 'must be * or an origin in lower case without a path, as in https://app.example.com',
  })

const tls = z.strictObject({
  cert: path.describe('PEM file of the certificate with its intermediates.'),
  key: path.describe('PEM file of its private key, without a passphrase.'),
  client_ca: path.optional().describe('PEM file of a CA: clients must present a certificate that it signed.'),
})

const GATEWAY_NAME = /^[A-Za-z0-9._:-]{1,100}$/
const MAX_NAME_CHARS = 100

const adminTokenSchema = z
  .string()
  .regex(/^[!-~]{12,4096}$/, {
    error: 'must be 12 to 4,096 printable ASCII characters without spaces',
  })
  .refine((token) => !isGuessable(token), { error: GUESSABLE })

/** `server:` */
export const serverSchema = z.strictObject({
  name: z
    .string()
    .regex(GATEWAY_NAME, {
      error: 'must be 1 to 100 letters, digits, "-", "_", "." or ":", as in gateway-1',
    })
    .optional()
    .describe(
      'The name of this gateway in ledger entries (`gateway`), log lines, the fleet and answers of rollbacks; unique among the gateways of a store. Use a variable, as in `${GATEWAY_NAME}`, so that their files stay the same. Default: the name of the host.',
    ),
  host: host.default('0.0.0.0').describe('Address that the API and the dashboard listen on.'),
  port: whole(0, 65_535).default(8_080).describe('Port of the API and the dashboard; 0: any free port.'),
  ops_host: host
    .default('127.0.0.1')
    .describe('Address of `/metrics`, `/healthz`, `/readyz` and `/config`; loopback by default.'),
  ops_port: whole(0, 65_535).default(9_464).describe('Port of these pages; 0: any free port.'),
  ops_hosts: z
    .array(host)
    .max(1_000)
    .default([])
    .describe(
      'Host names under which clients reach the ops port, such as `sluice.monitoring.svc`. IP addresses, `localhost` and `ops_host` are always served; other names are refused with 403, since a web page could use one to read the port through a browser (DNS rebinding).',
    ),
  workers: z
    .union([z.literal('auto'), whole(1, 1_024)], {
      error: 'must be auto or a whole number from 1 to 1,024',
    })
    .default('auto')
    .describe(
      'Worker processes that share the port: a number, or `auto` for one per core. With 1 the gateway is a single process, which is not restarted after a crash.',
    ),
  drain_ms: whole(0, 3_600_000)
    .default(30_000)
    .describe('How long running requests may continue after a signal to stop.'),
  max_body_bytes: whole(1, MAX_BODY_BYTES)
    .default(33_554_432)
    .describe('Maximum request body; a larger one is refused with 413.'),
  max_upload_bytes: whole(1, 1_099_511_627_776)
    .default(2_147_483_648)
    .describe('Maximum body of a multipart form (sound, pictures); a larger one is refused with 413.'),
  upload_hold_bytes: whole(0, 268_435_456)
    .default(26_214_400)
    .describe(
      'Multipart forms up to this size are held in memory while they are sent, so that fields may come after the file and a retry can send them again. Larger ones are passed on while they arrive: one attempt, and `model` within the first 64 KiB. 0: all forms above 64 KiB.',
    ),
  max_connections: whole(1, 1_000_000)
    .default(10_000)
    .describe('Maximum client connections of one worker; further ones are refused with 503 and closed.'),
  headers_timeout_ms: whole(100, DAY_MS)
    .default(10_000)
    .describe(
      'Maximum time for the headers of a request, from its first byte or from the connection. A body that takes longer than this must arrive at 1 KiB/s. Violations are refused with 408.',
    ),
  keep_alive_ms: whole(100, DAY_MS)
    .default(65_000)
    .describe(
      'How long an idle client connection stays open; set it longer than the timeout of a proxy in front.',
    ),
  client_stall_ms: whole(100, DAY_MS)
    .default(60_000)
    .describe('Time after which a client that reads no byte of a reply is disconnected.'),
  trusted_proxies: z
    .array(network)
    .max(1_000)
    .default([])
    .describe(
      'Addresses and networks of reverse proxies in front. For a connection from one of them, the client address is the rightmost entry of `X-Forwarded-For` that is not one of them.',
    ),
  bare_paths: z
    .boolean()
    .default(false)
    .describe(
      "Whether the endpoints are also served without `/v1` (`/chat/completions`), at `/anthropic/v1/messages`, `/anthropic/v1/files` and `/anthropic/v1/models`, and at Azure's `/openai/…`, `/openai/deployments/{model}/…` and `/engines/{model}/…`, whose model is that of the request; keys are also read from `api-key` and `x-litellm-api-key`. For apps that move from LiteLLM or Azure.",
    ),
  cors: z
    .strictObject({
      origins: z
        .array(origin)
        .max(1_000)
        .default([])
        .describe(
          'Origins whose pages may call the API from a browser, such as `https://app.example.com`, or `*` for all. Empty: none. The dashboard is not affected.',
        ),
    })
    .prefault({}),
  overload: overloadSchema,
  admin_token: adminTokenSchema
    .optional()
    .describe(
      'The token that a rollback on the ops port needs (`Authorization: Bearer TOKEN`), as `${NAME}` or `${file:PATH}`: 12 or more printable characters that are hard to guess. Without it, rollbacks on the ops port are refused; administrators can still use the dashboard.',
    ),
  tls: tls
    .optional()
    .describe(
      'HTTPS and HTTP/2 on `port`; without it, HTTP/1.1. Changed files take effect within seconds; relative paths start at this file.',
    ),
})

type ServerValues = z.output<typeof serverSchema>
/** Returns the problem of certificate files and its setting; null if they are valid. */
type TlsCheck = (files: TlsFiles) => { readonly setting: string; readonly message: string } | null

/** Inputs for checking the section, besides its values. */
export interface ServerContext {
  /** The folder of the file, absolute. */
  readonly folder: string
  /** Reads the certificate files. */
  readonly checkTls: TlsCheck
}

/** Reports problems of the section besides its schema. */
export function checkServer(
  server: ServerValues,
  { folder, checkTls }: ServerContext,
  report: ReportFinding,
): void {
  const { host, port, ops_host: opsHost, ops_port: opsPort } = server
  const sameHost = host === opsHost || ['0.0.0.0', '::'].some((any) => any === host || any === opsHost)
  if (port !== 0 && port === opsPort && sameHost) {
    report(['server', 'ops_port'], 'must differ from server.port')
  }
  const files = tlsFilesOf(server, folder)
  const problem = files === null ? null : checkTls(files)
  if (problem !== null) report(['server', 'tls', problem.setting], problem.message)
}

/** The resolved section; the certificate files have absolute paths. */
export function serverOf(server: ServerValues, folder: string) {
  return {
    ...section(serverSchema, server),
    name: server.name ?? hostname().slice(0, MAX_NAME_CHARS),
    workers: server.workers === 'auto' ? availableParallelism() : server.workers,
    overload: section(overloadSchema.unwrap(), server.overload),
    tls: tlsFilesOf(server, folder),
  }
}

function tlsFilesOf({ tls: files }: ServerValues, folder: string): TlsFiles | null {
  if (files === undefined) return null
  const { cert, key, client_ca: clientCa } = files
  return {
    cert: resolve(folder, cert),
    key: resolve(folder, key),
    clientCa: clientCa === undefined ? null : resolve(folder, clientCa),
  }
}

/** True for an address, or a network in CIDR notation. */
function isNetwork(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more !== undefined) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 6 ? 128 : 32))
}
