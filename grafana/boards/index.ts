/** All boards, as the files that Grafana reads. */
import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard'
import { internalsBoard } from './internals.js'
import { overviewBoard } from './overview.js'
import { providersBoard } from './providers.js'
import { runbookBoard } from './runbook.js'
import { streamsBoard } from './streams.js'

/** A file below `grafana/dashboards/`. */
export interface BoardFile {
  readonly path: string
  readonly text: string
}

const BOARD_FILES: readonly (readonly [string, () => DashboardBuilder])[] = [
  ['overview.json', overviewBoard],
  ['providers.json', providersBoard],
  ['streams.json', streamsBoard],
  ['internals.json', internalsBoard],
  ['runbook.json', runbookBoard],
]

/** Every generated file with its contents. The text ends with a line break. */
export function boardFiles(): BoardFile[] {
  return BOARD_FILES.map(([name, make]) => ({
    path: `grafana/dashboards/${name}`,
    text: `${JSON.stringify(make().build(), null, 2)}\n`,
  }))
}
