/**
 * The endpoints of the ops port, for the OpenAPI document. A test compares them with what the port serves.
 */

/** One endpoint. */
export interface OpsEndpoint {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly summary: string
  readonly type: 'application/json' | 'text/plain'
  readonly needsToken: boolean
  /** What each status means. */
  readonly statuses: Readonly<Record<string, string>>
}

function page(path: string, summary: string, statuses: Readonly<Record<string, string>>): OpsEndpoint {
  return { method: 'GET', path, summary, type: 'application/json', needsToken: false, statuses }
}

/** All of them. */
export const OPS_ENDPOINTS: readonly OpsEndpoint[] = [
  {
    ...page('/metrics', 'Metrics in the text format of Prometheus', { 200: 'Metrics' }),
    type: 'text/plain',
  },
  page('/healthz', 'Whether the process is running', { 200: 'Running' }),
  page(
    '/readyz',
    'Whether the gateway can serve requests, with the result of each check; with `?strict`, 503 for degraded checks too',
    {
      200: 'Ready',
      503: 'Not ready',
    },
  ),
  page('/config', 'The configuration in force; secrets are masked', { 200: 'Configuration' }),
  page('/workers', 'The worker processes and the last rolling restart', { 200: 'Workers' }),
  page('/recent-requests', 'The last requests without their contents, for `sluice plan`', {
    200: 'Requests',
    403: 'Not from the same machine, and without `server.admin_token`',
  }),
  page('/generations', 'The kept generations of the configuration', { 200: 'Generations' }),
  page('/generations/{n}', 'One generation, with its files; secrets are masked', {
    200: 'The generation',
    404: 'Not kept',
  }),
  {
    ...page('/generations/{n}/rollback', 'Make the content of a generation the configuration in force', {
      200: 'The new generation is in force',
      401: 'Missing or wrong token',
      403: '`server.admin_token` is not set',
      404: 'Not kept',
    }),
    method: 'POST',
    needsToken: true,
  },
]
