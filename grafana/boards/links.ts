/** Addresses of the boards within Grafana. They keep the time range and the variables. */

/** The boards, by title. */
export const BOARDS = {
  Overview: 'sluice-overview',
  Providers: 'sluice-providers',
  Streams: 'sluice-streams',
  'Gateway internals': 'sluice-internals',
  Runbook: 'sluice-runbook',
} as const

/** A board's title. */
export type BoardName = keyof typeof BOARDS

/** The variables of every board, in order. */
export const VARIABLES = ['datasource', 'instance', 'route', 'upstream', 'model', 'dashboard'] as const

/** The board that a link leads to. */
export interface Next {
  readonly board: BoardName
  /** By variable of that board: the label of the clicked series that it takes its value from. */
  readonly from?: { readonly route?: string; readonly upstream?: string; readonly model?: string }
}

/** The address of a board, with the time range and the variables of the board that links to it. */
export function boardUrl({ board, from = {} }: Next): string {
  const taken: Readonly<Record<string, string | undefined>> = from
  const variables = VARIABLES.map((name) => {
    const label = taken[name]
    return label === undefined ? `\${${name}:queryparam}` : `var-${name}=\${__field.labels.${label}}`
  })
  return `/d/${BOARDS[board]}?\${__url_time_range}&${variables.join('&')}`
}
